// The NetworkPolicy enforcer as a process of the node.
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { folderKey, readText } from '../../files.ts';
import { paths } from '../../paths.ts';
import { componentKubeconfig, type ControlPlane } from '../control-plane/control-plane.ts';
import type { ProcessSpec } from '../daemons/processes.ts';
import { node, processFolders } from '../settings.ts';

const status = z.object({ state: z.string() });
const statusFile = join(paths.run, 'network-policy.json');

async function modified(file: string): Promise<number> {
  return (await stat(file).catch(() => undefined))?.mtimeMs ?? 0;
}

async function isEnforcing(): Promise<boolean> {
  const text = await readText(statusFile);
  return text !== undefined && status.parse(JSON.parse(text)).state === 'enforcing';
}

export async function networkPolicySpec(plane: ControlPlane): Promise<ProcessSpec> {
  const kubeconfig = await componentKubeconfig(plane, paths.state, {
    name: 'network-policy',
    commonName: 'moorage:network-policy',
  });
  const sources = ['localnode/network-policy', 'lib'];
  return {
    name: 'network-policy',
    command: process.execPath,
    args: [join(paths.root, 'localnode', 'network-policy', 'main.ts')],
    env: {
      PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
      KUBECONFIG: kubeconfig.path,
      NODE_NAME: node.name,
      POD_BRIDGE: node.bridge,
      POD_CIDR: node.podCidr,
      STATUS_FILE: statusFile,
    },
    inputs: [kubeconfig.text, ...(await Promise.all(sources.map((folder) => folderKey(join(paths.root, folder)))))],
    // A file from before this start belongs to another process.
    ready: async () =>
      (await modified(statusFile)) > (await modified(join(processFolders.run, 'network-policy.pid'))) &&
      (await isEnforcing()),
  };
}
