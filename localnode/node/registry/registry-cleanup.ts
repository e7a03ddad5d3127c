// Runs the collector process, which removes images that the cluster no longer refers to from the node's registry.
import { join } from 'node:path';
import type { Kubectl } from '../../kubectl.ts';
import { collect, isWorthwhile, graceMs, imageUsers, extractNames } from '../../registry/storage.ts';
import { run } from '../../shell.ts';
import { getUnpackedFolder } from '../daemons/packages.ts';
import { buildProgramSpec, ensureProcess, stopProcess, findProcess, type ProcessSpec } from '../daemons/processes.ts';
import { registryConfig, registryFolder, buildRegistrySpec } from './registry.ts';
import { processFolders } from '../settings.ts';

/** Returns the registry's disk use in bytes. */
export async function measureRegistryBytes(): Promise<number> {
  return Number((await run('du', ['-sk', registryFolder])).split('\t')[0]) * 1024;
}

export interface Cleanup {
  /** The registry's current disk use. */
  readonly bytes: number;
  readonly isCollected: boolean;
  /** A summary for people. */
  readonly text: string;
}

/** Time for requests in progress to finish. Only a stalled push takes longer. */
const drainSeconds = 40;

/**
 * Removes images that neither a tag nor an object of the cluster refers to, if the registry has grown beyond `bytesBefore`
 * bytes. Pushes continue afterwards: the registry proxy waits while the registry is stopped.
 */
export async function cleanRegistry(kubectl: Kubectl, bytesBefore: number): Promise<Cleanup> {
  const bytes = await measureRegistryBytes();
  if (!isWorthwhile(bytes, bytesBefore))
    return { bytes, isCollected: false, text: `${Math.round(bytes / 1024 ** 2)} MiB` };
  const begun = { at: 0, ms: 0 };
  const removed = await collect(
    {
      root: join(registryFolder, 'blobs'),
      listUsed: async () => extractNames(await kubectl(['get', ...imageUsers])),
      runWhileStopped: async (work) => {
        await stopProcess(processFolders, 'registry', drainSeconds);
        begun.at = Date.now();
        try {
          return await work();
        } finally {
          await ensureProcess(processFolders, await buildRegistrySpec());
          begun.ms = Date.now() - begun.at;
        }
      },
      collectGarbage: async () => {
        await run(join(getUnpackedFolder('docker-registry'), 'usr/bin/docker-registry'), [
          'garbage-collect',
          registryConfig,
        ]);
      },
    },
    Date.now() - graceMs,
  );
  const remainingBytes = await measureRegistryBytes();
  const freed = Math.round((bytes - remainingBytes) / 1024 ** 2);
  const text = `removed ${removed} images, ${freed} MiB, in ${(begun.ms / 1000).toFixed(1)} s without the registry`;
  return { bytes: remainingBytes, isCollected: true, text };
}

export const collectorName = 'registry-collector';

export function buildCollectorSpec(): Promise<ProcessSpec> {
  return buildProgramSpec(processFolders, collectorName, {
    main: 'localnode/node/registry/main.ts',
    sources: ['localnode/registry', 'localnode/node/registry'],
  });
}

/** Call this before starting or stopping the registry elsewhere. A collection in progress runs to its end. */
export async function stopCollector(): Promise<string> {
  const isRunning = (await findProcess(processFolders, collectorName)) !== undefined;
  await stopProcess(processFolders, collectorName, 300);
  return isRunning ? 'stopped' : 'not running';
}
