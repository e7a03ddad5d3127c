// The kind cluster itself: made, started again, recognized as unfinished, and removed.
import { chmod, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { writeText } from '../../localnode/files.ts';
import type { Kubectl } from '../../localnode/kubectl.ts';
import type { GatewayPorts } from '../../localnode/node/gateway/ports.ts';
import { paths } from '../../localnode/paths.ts';
import { run, succeeds } from '../../localnode/shell.ts';
import { waitFor } from '../../localnode/wait.ts';
import { clusterConfig } from './config.ts';
import { containers, containerExists, docker, ensurePulled, startContainer } from './docker.ts';
import { nodeImage } from './versions.ts';

/** kubectl inside the node, so that it fits the cluster and the machine needs none. */
export const nodeKubectl: Kubectl = (args, input) =>
  docker(
    [
      ...['exec', ...(input === undefined ? [] : ['-i']), containers.node],
      ...['kubectl', '--kubeconfig=/etc/kubernetes/admin.conf', ...args],
    ],
    input === undefined ? {} : { input },
  );

/** In the node; a cluster without it is one that `create` did not finish, with nothing of anyone's in it. */
const finishedMark = '/kind/moorage-finished';

async function deleteCluster(kind: string): Promise<void> {
  await run(kind, ['delete', 'cluster', '--name', containers.cluster, '--kubeconfig', paths.kubeconfig]);
}

async function isFinished(): Promise<boolean> {
  if (!(await containerExists(containers.node))) return false;
  await startContainer(containers.node);
  return await succeeds('docker', ['exec', containers.node, 'test', '-e', finishedMark]);
}

/** On a disk that is nearly full the kubelet would remove what came with the node image and no registry here holds. */
const pinImages =
  'for image in $(ctr -n k8s.io images ls -q); do ctr -n k8s.io images label "$image" io.cri-containerd.pinned=pinned; done';

/** Docker's disk, which may be that of a virtual machine: asked where the node will see it. */
async function diskBytes(): Promise<number> {
  const df = ['--entrypoint', 'df', nodeImage, '--block-size=1', '--output=size', '/'];
  const size = Number((await docker(['run', '--rm', '--network', 'none', ...df])).split('\n').at(-1));
  if (!(size > 0)) throw new Error(`the size of Docker's disk could not be read: docker run ${df.join(' ')}`);
  return size;
}

async function createCluster(kind: string, ports: GatewayPorts): Promise<void> {
  await ensurePulled(nodeImage);
  const patches = join(import.meta.dirname, 'patches');
  const config = clusterConfig({ image: nodeImage, ports, patches, diskBytes: await diskBytes() });
  await run(
    kind,
    // The node becomes Ready with its network, which comes later.
    ['create', 'cluster', '--name', containers.cluster, '--kubeconfig', paths.kubeconfig, '--wait', '0s', '--config=-'],
    { input: config },
  );
  await docker(['exec', containers.node, 'sh', '-c', pinImages]);
  await docker(['exec', containers.node, 'touch', finishedMark]);
}

/** A kubectl for the person: the node's own on Linux, elsewhere a script that runs it in the node. */
async function writeKubectl(): Promise<void> {
  if (process.platform === 'linux') {
    await rm(paths.kubectl, { force: true });
    await docker(['cp', '--follow-link', `${containers.node}:/usr/bin/kubectl`, paths.kubectl]);
    return;
  }
  const script = `#!/bin/sh\nexec docker exec -i ${containers.node} kubectl --kubeconfig=/etc/kubernetes/admin.conf "$@"\n`;
  await writeText(paths.kubectl, script, 0o755);
}

/** Makes the cluster, or starts the one that is there, and waits until its API answers. */
export async function ensureCluster(kind: string, ports: GatewayPorts): Promise<string> {
  const exists = await isFinished();
  if (!exists) {
    // Harmless where there is none; what a stopped `create` left is removed.
    await deleteCluster(kind);
    await createCluster(kind, ports);
  }
  await run(kind, ['export', 'kubeconfig', '--name', containers.cluster, '--kubeconfig', paths.kubeconfig]);
  await chmod(paths.kubeconfig, 0o600);
  await waitFor('an answer of the API server', async () => (await nodeKubectl(['get', '--raw=/readyz'])) === 'ok', {
    seconds: 180,
    every: 1000,
  });
  await writeKubectl();
  return exists ? 'runs' : 'created';
}

/** Two copies of the DNS server are more than one node needs. */
export async function shrinkDns(): Promise<undefined> {
  const patch = {
    spec: {
      replicas: 1,
      template: { spec: { containers: [{ name: 'coredns', resources: { requests: { cpu: '20m' } } }] } },
    },
  };
  await nodeKubectl(['-n', 'kube-system', 'patch', 'deployment', 'coredns', '--patch', JSON.stringify(patch)]);
  return undefined;
}

/** Removes the cluster; does nothing when there is none. */
export async function removeCluster(kind: string): Promise<undefined> {
  await deleteCluster(kind);
  return undefined;
}
