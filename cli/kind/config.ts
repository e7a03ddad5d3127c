// The configuration that `kind create cluster` is given.
import { stringify } from 'yaml';
import { diskThresholds } from '../../localnode/node/disk/thresholds.ts';
import { node } from '../../localnode/node/settings.ts';
import type { GatewayPorts } from '../../localnode/node/gateway/ports.ts';

/** What the kubelet of the one-machine node has too: kind's own never evicts and counts no processes. */
function kubelet(diskBytes: number) {
  const { eviction, ...imageCollection } = diskThresholds(diskBytes);
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
 * Quotas learn of a new resource at the next of these rounds. The default of five minutes is longer than anyone waits
 * for the first app.
 */
const controllerManager = { 'resource-quota-sync-period': '10s', 'terminated-pod-gc-threshold': '200' };

/** Where the node sees the folder of patches for the control plane's pods. */
const patchesMount = '/kind/moorage-patches';

/** kubeadm reads one of two versions of its configuration, and each spells arguments its own way. */
function kubeadmPatches(diskBytes: number): string[] {
  const args = Object.entries(controllerManager).map(([name, value]) => ({ name, value }));
  return [
    { kind: 'KubeletConfiguration', apiVersion: 'kubelet.config.k8s.io/v1beta1', ...kubelet(diskBytes) },
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
 * Section names of version 2 of the format, in which kind's own file is written. What an image declares as a VOLUME
 * stays in the container's own layer, where it is counted. The pod network's configuration lies in a folder that is
 * empty after each start of the node, so that no pod starts before its policies are enforced again.
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

/** One node whose network is ours, with the gateway's two ports published on this machine's loopback address. */
export function clusterConfig({ image, ports, patches, diskBytes }: NodeOptions): string {
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
    kubeadmConfigPatches: kubeadmPatches(diskBytes),
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
