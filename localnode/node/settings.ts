// Defines the addresses, ports and names that several components of the one-machine node share, the reserved CPU and
// memory, and its kubectl.
import { join } from 'node:path';
import { availableParallelism, totalmem } from 'node:os';
import { getBinariesFolder, getBinaryPath } from '../binaries/build.ts';
import { paths } from '../paths.ts';
import type { ControlPlaneOptions } from './control-plane/control-plane.ts';
import { createKubectl, type Kubectl } from '../kubectl.ts';

export const node = {
  name: 'moorage',
  bridge: 'moorage0',
  bridgeMac: '0a:58:0a:f4:00:01',
  /** On the bridge, so that it stays the same in any network. */
  address: '10.244.0.1',
  podCidr: '10.244.0.0/16',
  /** The part of it for pods of this node. */
  nodePodCidr: '10.244.0.0/24',
  serviceCidr: '10.96.0.0/16',
  dnsAddress: '10.96.0.10',
  clusterDomain: 'cluster.local',
  apiPort: 6443,
  kubeletPort: 10250,
  registryPort: 5000,
  baseDomain: 'moorage.localhost',
  /** Not below the API's domain, so that cookies that an app sets for its domain never reach the API. */
  appsDomain: 'moorage-apps.localhost',
  /** Of the Gateways and certificates of own domains of apps, as the chart names it. */
  domainsNamespace: 'moorage-domains',
  /** The issuer that they name, which is a process of this machine. */
  domainsIssuer: 'moorage-local',
  /** The registry's name for pods, builds and the kubelet. */
  registryHost: 'registry.moorage-system.svc:5000',
} as const;

export const processFolders = { run: join(paths.run, 'processes'), logs: paths.logs };

export const containerdSocket = join(paths.run, 'containerd', 'containerd.sock');

export const buildControlPlaneOptions = (): ControlPlaneOptions => ({
  binaries: getBinariesFolder('kubernetes'),
  folder: paths.state,
  address: node.address,
  apiPort: node.apiPort,
  etcdPort: 2379,
  etcdPeerPort: 2380,
  serviceCidr: node.serviceCidr,
});

const mebibyte = 1024 * 1024;

/** Reserved for the system through the kubelet's systemReserved. */
export const reserved = { cpuMilli: 200, memoryMebibytes: 1024 };
interface Share {
  readonly cpuMilli: number;
  readonly memoryMebibytes: number;
}

/**
 * Total requests of the platform's pods (`kubectl describe node`), with some room for updates, without the services
 * behind tools.
 */
const platform = { cpuMilli: 650, memoryMebibytes: 1_792 };
/**
 * Total requests of the maximum number of concurrent builds; see values.local.yaml and controller/steps/build/job.ts.
 */
const builds = { cpuMilli: 3 * 175, memoryMebibytes: 3 * 768 };

/**
 * Chart settings that make apps leave room for builds, so that builds run however many apps there are. Empty on a
 * machine so small that nothing would be left for apps.
 */
export function computeAppsQuota(
  tools: Share,
  cores: number = availableParallelism(),
  memoryBytes: number = totalmem(),
): readonly string[] {
  const reservations = [reserved, platform, builds, tools];
  const cpu = reservations.reduce((left, { cpuMilli }) => left - cpuMilli, cores * 1000);
  const memory = reservations.reduce(
    (left, { memoryMebibytes }) => left - memoryMebibytes,
    Math.floor(memoryBytes / mebibyte),
  );
  if (cpu < 200 || memory < 1024) return [];
  return [String.raw`apps.quota.requests\.cpu=${cpu}m`, String.raw`apps.quota.requests\.memory=${memory}Mi`];
}

export const nodeKubectl: Kubectl = createKubectl(getBinaryPath('kubectl', 'kubectl'), paths.kubeconfig);
