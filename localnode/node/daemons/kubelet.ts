// Runs the kubelet and kube-proxy as processes, with the cgroups of the pods.
import { readFile, statfs, access, mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { getBinaryPath } from '../../binaries/build.ts';
import { readText } from '../../files.ts';
import { paths } from '../../paths.ts';
import { ensureCertificate } from '../control-plane/certificates.ts';
import { ensureComponentKubeconfig, type ControlPlane } from '../control-plane/control-plane.ts';
import { computeDiskThresholds } from '../disk/space.ts';
import { reserved, containerdSocket, node } from '../settings.ts';
import { isAnswering } from './probe.ts';
import { writeConfigFile, type ProcessSpec } from './processes.ts';

export const kubeletRoot = join(paths.state, 'kubelet');

const path = { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' };

/** Finds the resolver file that pods inherit: systemd-resolved's stub on loopback does not work inside a pod. */
async function findResolverFile(): Promise<string> {
  const upstream = '/run/systemd/resolve/resolv.conf';
  return (await readText(upstream)) === undefined ? '/etc/resolv.conf' : upstream;
}

async function renderKubeletConfig(
  certificate: { certificate: string; key: string },
  authority: string,
): Promise<string> {
  const { bsize, blocks } = await statfs(paths.state);
  const { eviction, ...imageCollection } = computeDiskThresholds(bsize * blocks);
  return stringify({
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    address: node.address,
    port: node.kubeletPort,
    readOnlyPort: 0,
    healthzBindAddress: '127.0.0.1',
    authentication: { anonymous: { enabled: false }, webhook: { enabled: true }, x509: { clientCAFile: authority } },
    authorization: { mode: 'Webhook' },
    tlsCertFile: certificate.certificate,
    tlsPrivateKeyFile: certificate.key,
    clusterDNS: [node.dnsAddress],
    clusterDomain: node.clusterDomain,
    resolvConf: await findResolverFile(),
    containerRuntimeEndpoint: `unix://${containerdSocket}`,
    cgroupDriver: 'cgroupfs',
    cgroupRoot,
    // Some machines only have cgroup v1; Kubernetes just warns about it.
    failCgroupV1: false,
    failSwapOn: false,
    makeIPTablesUtilChains: false,
    seccompDefault: true,
    maxPods: 250,
    podPidsLimit: 2048,
    // Without a limit, a dozen fork bombs would use up the kernel's 32768 process ids.
    systemReserved: { cpu: `${reserved.cpuMilli}m`, memory: `${reserved.memoryMebibytes}Mi`, pid: '4096' },
    // Unused images are removed before the disk is full, and in any case after a week.
    ...imageCollection,
    imageMaximumGCAge: '168h',
    evictionHard: {
      'memory.available': '200Mi',
      'nodefs.available': eviction,
      'nodefs.inodesFree': '3%',
      'imagefs.available': eviction,
    },
    containerLogMaxSize: '10Mi',
    containerLogMaxFiles: 3,
    // An app that floods its log fills the disk until the next check; this is the shortest interval.
    containerLogMonitorInterval: '3s',
    serializeImagePulls: false,
    maxParallelImagePulls: 3,
    volumePluginDir: join(kubeletRoot, 'volume-plugins'),
    podLogsDir: join(paths.logs, 'pods'),
  });
}

export async function buildKubeletSpec(plane: ControlPlane): Promise<ProcessSpec> {
  const serving = await ensureCertificate(plane.certificates, plane.authority, {
    name: 'kubelet',
    commonName: node.name,
    names: [node.name],
    addresses: [node.address],
    usage: ['serverAuth'],
  });
  await ensureCgroups();
  const identity = { name: 'kubelet-node', commonName: `system:node:${node.name}`, organization: 'system:nodes' };
  const kubeconfig = await ensureComponentKubeconfig(plane, paths.state, identity);
  const file = join(paths.state, 'kubelet.yaml');
  const text = await writeConfigFile(file, await renderKubeletConfig(serving, plane.authority.certificate));
  return {
    name: 'kubelet',
    command: getBinaryPath('kubernetes', 'kubelet'),
    args: [
      `--config=${file}`,
      `--kubeconfig=${kubeconfig.path}`,
      `--root-dir=${kubeletRoot}`,
      `--hostname-override=${node.name}`,
      `--node-ip=${node.address}`,
    ],
    env: path,
    inputs: [text, kubeconfig.text, await readFile(serving.certificate, 'utf8')],
    isReady: () => isAnswering('http://127.0.0.1:10248/healthz'),
  };
}

export async function buildKubeProxySpec(plane: ControlPlane): Promise<ProcessSpec> {
  const kubeconfig = await ensureComponentKubeconfig(plane, paths.state, {
    name: 'kube-proxy',
    commonName: 'system:kube-proxy',
  });
  const file = join(paths.state, 'kube-proxy.yaml');
  const text = await writeConfigFile(
    file,
    stringify({
      apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
      kind: 'KubeProxyConfiguration',
      mode: 'nftables',
      clusterCIDR: node.podCidr,
      clientConnection: { kubeconfig: kubeconfig.path },
      hostnameOverride: node.name,
      bindAddress: node.address,
      healthzBindAddress: '127.0.0.1:10256',
      metricsBindAddress: '127.0.0.1:10249',
      nodePortAddresses: [`${node.address}/32`],
      // Zero leaves the machine's own settings as they are.
      conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeout: '0s', tcpCloseWaitTimeout: '0s' },
      nftables: { syncPeriod: '30s', minSyncPeriod: '100ms' },
    }),
  );
  return {
    name: 'kube-proxy',
    command: getBinaryPath('kubernetes', 'kube-proxy'),
    args: [`--config=${file}`],
    env: path,
    inputs: [text, kubeconfig.text],
    isReady: () => isAnswering('http://127.0.0.1:10256/livez'),
  };
}

const mount = '/sys/fs/cgroup';

/** The cgroup of all pods, in the format of the kubelet's cgroupRoot. Cgroups of another kubelet are never touched. */
export const cgroupRoot = '/moorage';

async function isThere(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  );
}

/**
 * Lists the roots of the machine's hierarchies: one on a system with only cgroup v2, otherwise one per v1 controller
 * plus the unified one.
 */
async function listHierarchies(): Promise<string[]> {
  if (await isThere(join(mount, 'cgroup.controllers'))) return [mount];
  const entries = await readdir(mount, { withFileTypes: true });
  return entries.filter((entry) => entry.isDirectory()).map((entry) => join(mount, entry.name));
}

/**
 * How many processes outside the pods all pods together weigh as much as, in the files of cgroup v1 and v2. By default it
 * is one, so a compiler on the same machine takes the time in which the operator has to renew its lease.
 */
const weights: readonly (readonly [string, number])[] = [
  ['cpu.shares', 8 * 1024],
  ['cpu.weight', 8 * 100],
];

/** Creates the node's cgroup in each hierarchy, with its weight. The kubelet does not start without it. */
export async function ensureCgroups(): Promise<void> {
  for (const hierarchy of await listHierarchies()) {
    const cgroup = join(hierarchy, cgroupRoot);
    await mkdir(cgroup, { recursive: true });
    for (const [file, weight] of weights)
      if (await isThere(join(cgroup, file))) await writeFile(join(cgroup, file), String(weight));
  }
}

/** Lists the node's existing cgroups. */
export async function listNodeCgroups(): Promise<string[]> {
  const cgroups: string[] = [];
  for (const hierarchy of await listHierarchies())
    if (await isThere(join(hierarchy, cgroupRoot))) cgroups.push(join(hierarchy, cgroupRoot));
  return cgroups;
}
