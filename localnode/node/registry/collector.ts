// The collector as a process of the node: frees the space of the registry while the cluster runs.
import { join } from 'node:path';
import { folderKey, readText } from '../../files.ts';
import { paths } from '../../paths.ts';
import { findProcess, stopProcess, type ProcessSpec } from '../daemons/processes.ts';
import { processFolders } from '../settings.ts';

export const collectorName = 'registry-collector';

export async function collectorSpec(): Promise<ProcessSpec> {
  const sources = ['localnode/registry', 'localnode/node/registry'];
  return {
    name: collectorName,
    command: process.execPath,
    args: [join(paths.root, 'localnode', 'node', 'registry', 'main.ts')],
    env: { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', MOORAGE_CACHE: paths.cache },
    inputs: [
      (await readText(paths.kubeconfig)) ?? '',
      ...(await Promise.all(sources.map((folder) => folderKey(join(paths.root, folder))))),
    ],
    ready: async () => (await findProcess(processFolders, collectorName)) !== undefined,
  };
}

/** Before the registry is started or stopped by another hand. A collection in progress is brought to its end. */
export async function stopCollector(): Promise<string> {
  const isRunning = (await findProcess(processFolders, collectorName)) !== undefined;
  await stopProcess(processFolders, collectorName, 300);
  return isRunning ? 'stopped' : 'not running';
}
