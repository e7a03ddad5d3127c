// Creates, starts and removes the kind cluster, and recognizes one whose creation did not finish.
import { chmod, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { writeText } from '../../localnode/files.ts';
import type { Kubectl } from '../../localnode/kubectl.ts';
import type { GatewayPorts } from '../../localnode/node/gateway/ports.ts';
import { paths } from '../../localnode/paths.ts';
import { run, canRun, waitFor } from '../../localnode/shell.ts';
import { containers, hasContainer, runDocker, ensurePulled, startContainer, nodeImage } from './docker.ts';
import { computeDiskThresholds } from '../../localnode/node/disk/space.ts';
import { node } from '../../localnode/node/settings.ts';

/** kubectl inside the node, so that it fits the cluster and the machine needs none. */
export const runNodeKubectl: Kubectl = (args, input) =>
  runDocker(
    [
      ...['exec', ...(input === undefined ? [] : ['-i']), containers.node],
      ...['kubectl', '--kubeconfig=/etc/kubernetes/admin.conf', ...args],
    ],
    input === undefined ? {} : { input },
  );

/** A file in the node. Without it, `create` did not finish, and nobody's data is in the cluster. */
const finishedMark = '/kind/moorage-finished';

async function deleteCluster(kind: string): Promise<void> {
  await run(kind, ['delete', 'cluster', '--name', containers.cluster, '--kubeconfig', paths.kubeconfig]);
}

async function isFinished(): Promise<boolean> {
  if (!(await hasContainer(containers.node))) return false;
  await startContainer(containers.node);
  return await canRun('docker', ['exec', containers.node, 'test', '-e', finishedMark]);
}

/** On a nearly full disk the kubelet would remove images that came with the node image and that no registry here has. */
const pinImages =
  'for image in $(ctr -n k8s.io images ls -q); do ctr -n k8s.io images label "$image" io.cri-containerd.pinned=pinned; done';

/** Size of Docker's disk, which may be that of a virtual machine, as the node will see it. */
async function readDiskBytes(): Promise<number> {
  const df = ['--entrypoint', 'df', nodeImage, '--block-size=1', '--output=size', '/'];
  const size = Number((await runDocker(['run', '--rm', '--network', 'none', ...df])).split('\n').at(-1));
  if (!(size > 0)) throw new Error(`the size of Docker's disk could not be read: docker run ${df.join(' ')}`);
  return size;
}

async function createCluster(kind: string, ports: GatewayPorts): Promise<void> {
  await ensurePulled(nodeImage);
  const patches = join(import.meta.dirname, 'patches');
  const config = formatClusterConfig({ image: nodeImage, ports, patches, diskBytes: await readDiskBytes() });
  await run(
    kind,
    // The node becomes Ready with its network, which is installed later.
    ['create', 'cluster', '--name', containers.cluster, '--kubeconfig', paths.kubeconfig, '--wait', '0s', '--config=-'],
    { input: config },
  );
  await runDocker(['exec', containers.node, 'sh', '-c', pinImages]);
  await runDocker(['exec', containers.node, 'touch', finishedMark]);
}

/** Writes a kubectl for the user: the node's own on Linux, elsewhere a script that runs it in the node. */
async function writeKubectl(): Promise<void> {
  if (process.platform === 'linux') {
    await rm(paths.kubectl, { force: true });
    await runDocker(['cp', '--follow-link', `${containers.node}:/usr/bin/kubectl`, paths.kubectl]);
    return;
  }
  const script = `#!/bin/sh\nexec docker exec -i ${containers.node} kubectl --kubeconfig=/etc/kubernetes/admin.conf "$@"\n`;
  await writeText(paths.kubectl, script, 0o755);
}

/** Creates the cluster, or starts the existing one, and waits until its API answers. */
export async function ensureCluster(kind: string, ports: GatewayPorts): Promise<string> {
  const exists = await isFinished();
  if (!exists) {
    // Removes what an interrupted `create` left; harmless otherwise.
    await deleteCluster(kind);
    await createCluster(kind, ports);
  }
  await run(kind, ['export', 'kubeconfig', '--name', containers.cluster, '--kubeconfig', paths.kubeconfig]);
  await chmod(paths.kubeconfig, 0o600);
  await waitFor('an answer of the API server', async () => (await runNodeKubectl(['get', '--raw=/readyz'])) === 'ok', {
    seconds: 180,
    every: 1000,
  });
  await writeKubectl();
  return exists ? 'runs' : 'created';
}

/** Scales the DNS server to one replica: two are more than one node needs. */
export async function shrinkDns(): Promise<undefined> {
  const patch = {
    spec: {
      replicas: 1,
      template: { spec: { containers: [{ name: 'coredns', resources: { requests: { cpu: '20m' } } }] } },
    },
  };
  await runNodeKubectl(['-n', 'kube-system', 'patch', 'deployment', 'coredns', '--patch', JSON.stringify(patch)]);
  return undefined;
}

/** Removes the cluster, if there is one. */
export async function removeCluster(kind: string): Promise<undefined> {
  await deleteCluster(kind);
  return undefined;
}

// The configuration for `kind create cluster`.

/** The same kubelet settings as on the one-machine node: kind's own never evict and do not limit processes. */
function buildKubeletSettings(diskBytes: number) {
  const { eviction, ...imageCollection } = computeDiskThresholds(diskBytes);
  return {
    failCgroupV1: false,
    seccompDefault: true,
    maxPods: 200,
    podPidsLimit: 2048,
    ...imageCollection,
    imageMaximumGCAge: '168h',
    evictionHard: {
      'memory.available': '200Mi',
      'nodefs.available': eviction,
      'nodefs.inodesFree': '3%',
      'imagefs.available': eviction,
    },
  };
}

/**
 * Quotas learn of a new resource in the next sync. The default of five minutes is too long to wait for the first app.
 */
const controllerManager = { 'resource-quota-sync-period': '10s', 'terminated-pod-gc-threshold': '200' };

/** Path in the node of the folder with patches for the control plane's pods. */
const patchesMount = '/kind/moorage-patches';

/** kubeadm reads one of two versions of its configuration, which write arguments differently. */
function formatKubeadmPatches(diskBytes: number): string[] {
  const args = Object.entries(controllerManager).map(([name, value]) => ({ name, value }));
  return [
    { kind: 'KubeletConfiguration', apiVersion: 'kubelet.config.k8s.io/v1beta1', ...buildKubeletSettings(diskBytes) },
    {
      kind: 'ClusterConfiguration',
      apiVersion: 'kubeadm.k8s.io/v1beta3',
      controllerManager: { extraArgs: controllerManager },
    },
    { kind: 'ClusterConfiguration', apiVersion: 'kubeadm.k8s.io/v1beta4', controllerManager: { extraArgs: args } },
    ...['v1beta3', 'v1beta4'].map((version) => ({
      kind: 'InitConfiguration',
      apiVersion: `kubeadm.k8s.io/${version}`,
      patches: { directory: patchesMount },
    })),
  ].map((patch) => stringify(patch));
}

/**
 * Section names of version 2 of the format, which kind's own file uses. Data in a VOLUME of an image stays in the
 * container's own layer, where it is counted. The pod network's configuration is in a folder that is empty after each
 * start of the node, so that no pod starts before its policies are enforced again.
 */
const containerd = `[plugins."io.containerd.grpc.v1.cri"]
ignore_image_defined_volumes = true
[plugins."io.containerd.grpc.v1.cri".registry]
config_path = "/etc/containerd/certs.d"
[plugins."io.containerd.grpc.v1.cri".cni]
conf_dir = "/run/moorage/cni"
`;

interface NodeOptions {
  image: string;
  ports: GatewayPorts;
  /** Folder of patches for the control plane's pods, on this machine. */
  patches: string;
  /** Size of the disk that the node's pods and images are on. */
  diskBytes: number;
}

/** One node with our own network, and the gateway's two ports published on this machine's loopback address. */
export function formatClusterConfig({ image, ports, patches, diskBytes }: NodeOptions): string {
  const published = [
    [80, ports.http],
    [443, ports.https],
  ].map(([containerPort, hostPort]) => ({ containerPort, hostPort, listenAddress: '127.0.0.1' }));
  return stringify({
    kind: 'Cluster',
    apiVersion: 'kind.x-k8s.io/v1alpha4',
    networking: {
      disableDefaultCNI: true,
      kubeProxyMode: 'nftables',
      podSubnet: node.podCidr,
      serviceSubnet: node.serviceCidr,
    },
    containerdConfigPatches: [containerd],
    kubeadmConfigPatches: formatKubeadmPatches(diskBytes),
    nodes: [
      {
        role: 'control-plane',
        image,
        extraPortMappings: published,
        extraMounts: [{ hostPath: patches, containerPath: patchesMount, readOnly: true }],
      },
    ],
  });
}
