// Frees the disk of the node's registry of images that nothing in the cluster refers to any more.
import { join } from 'node:path';
import type { Kubectl } from '../../kubectl.ts';
import { collect, isWorthwhile } from '../../registry/collect.ts';
import { graceMs, imageUsers, namesIn } from '../../registry/storage.ts';
import { run } from '../../shell.ts';
import { unpackedFolder } from '../daemons/packages.ts';
import { ensureProcess, stopProcess } from '../daemons/processes.ts';
import { registryConfig, registryFolder, registrySpec } from './registry.ts';
import { processFolders } from '../settings.ts';

/** Bytes on the disk, which is what is short. */
export async function registryBytes(): Promise<number> {
  return Number((await run('du', ['-sk', registryFolder])).split('\t')[0]) * 1024;
}

export interface Cleanup {
  /** What the registry takes now. */
  readonly bytes: number;
  readonly isCollected: boolean;
  /** What happened, for people. */
  readonly text: string;
}

/** Requests in progress may end; longer than that, only a push that stands still takes. */
const drainSeconds = 40;

/**
 * Removes images that neither a tag nor an object of the cluster refers to, when the registry has grown since it had
 * `before` bytes. Pushes go on after it: the registry proxy waits while the registry is stopped.
 */
export async function cleanRegistry(kubectl: Kubectl, before: number): Promise<Cleanup> {
  const bytes = await registryBytes();
  if (!isWorthwhile(bytes, before)) return { bytes, isCollected: false, text: `${Math.round(bytes / 1024 ** 2)} MiB` };
  const begun = { at: 0, ms: 0 };
  const removed = await collect(
    {
      root: join(registryFolder, 'blobs'),
      used: async () => namesIn(await kubectl(['get', ...imageUsers])),
      whileStopped: async (work) => {
        await stopProcess(processFolders, 'registry', drainSeconds);
        begun.at = Date.now();
        try {
          return await work();
        } finally {
          await ensureProcess(processFolders, await registrySpec());
          begun.ms = Date.now() - begun.at;
        }
      },
      collectGarbage: async () => {
        await run(join(unpackedFolder('docker-registry'), 'usr/bin/docker-registry'), [
          'garbage-collect',
          registryConfig,
        ]);
      },
    },
    Date.now() - graceMs,
  );
  const left = await registryBytes();
  const freed = Math.round((bytes - left) / 1024 ** 2);
  const text = `removed ${removed} images, ${freed} MiB, in ${(begun.ms / 1000).toFixed(1)} s without the registry`;
  return { bytes: left, isCollected: true, text };
}
