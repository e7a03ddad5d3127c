// Addresses, ports and names of the one-machine node that several components must agree on.
import { join } from 'node:path';
import { binariesOf } from '../binaries/build.ts';
import { paths } from '../paths.ts';
import type { ControlPlaneOptions } from './control-plane/control-plane.ts';

export const node = {
  name: 'moorage',
  bridge: 'moorage0',
  bridgeMac: '0a:58:0a:f4:00:01',
  /** On the bridge, so that it stays the same whatever network the machine is in. */
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
  /** No part of the name of the API: what an app sets for its own domain does not reach the API. */
  appsDomain: 'moorage-apps.localhost',
  /** The registry's one name, for pods, builds and the kubelet alike. */
  registryHost: 'registry.moorage-system.svc:5000',
} as const;

export const processFolders = { run: join(paths.run, 'processes'), logs: paths.logs };

export const containerdSocket = join(paths.run, 'containerd', 'containerd.sock');

export const controlPlaneOptions = (): ControlPlaneOptions => ({
  binaries: binariesOf('kubernetes'),
  folder: paths.state,
  address: node.address,
  apiPort: node.apiPort,
  etcdPort: 2379,
  etcdPeerPort: 2380,
  serviceCidr: node.serviceCidr,
});
