// Removes images from the node's registry that nothing in the cluster refers to any more.
import { join } from 'node:path';
import type { Kubectl } from '../../kubectl.ts';
import { namesIn, imageUsers, limitBytes, removeUnused } from '../../registry/storage.ts';
import { run } from '../../shell.ts';
import { unpackedFolder } from '../daemons/packages.ts';
import { ensureProcess, stopProcess } from '../daemons/processes.ts';
import { registryConfig, registryFolder, registrySpec } from './registry.ts';
import { processFolders } from '../settings.ts';

async function size(): Promise<number> {
  return Number((await run('du', ['-sb', registryFolder])).split('\t')[0]);
}

/**
 * Removes images that neither a tag nor an object of the cluster refers to, when the registry exceeds the limit. The
 * registry is stopped meanwhile, since a push at the same time could lose its layers; builds push again.
 */
export async function cleanRegistry(kubectl: Kubectl, limit = limitBytes): Promise<string> {
  const before = await size();
  if (before < limit) return `${Math.round(before / 1024 ** 2)} MiB`;
  const used = namesIn(await kubectl(['get', ...imageUsers]));
  await stopProcess(processFolders, 'registry');
  let removed: number;
  try {
    removed = await removeUnused(join(registryFolder, 'blobs'), used);
    await run(join(unpackedFolder('docker-registry'), 'usr/bin/docker-registry'), ['garbage-collect', registryConfig]);
  } finally {
    await ensureProcess(processFolders, await registrySpec());
  }
  return `removed ${removed} images, ${Math.round((before - (await size())) / 1024 ** 2)} MiB`;
}
