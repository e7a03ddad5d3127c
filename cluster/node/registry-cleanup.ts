// Removes images from the registry that nothing in the cluster refers to any more.
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { readText } from '../files.ts';
import type { Kubectl } from '../kubectl.ts';
import { run } from '../shell.ts';
import { unpackedFolder } from './packages.ts';
import { ensureProcess, stopProcess } from './processes.ts';
import { registryConfig, registryFolder, registrySpec } from './registry.ts';
import { processFolders } from './settings.ts';

/** Below this many bytes nothing is removed: an older image may be needed for a rollback. */
const limitBytes = 5 * 1024 ** 3;

const storage = join(registryFolder, 'blobs', 'docker', 'registry', 'v2');
const manifest = z.object({ manifests: z.array(z.object({ digest: z.string() })).optional() });

/** Every image digest anywhere in a text. */
export function digestsIn(text: string): Set<string> {
  return new Set(text.match(/sha256:[0-9a-f]{64}/g) ?? []);
}

async function entries(...path: string[]): Promise<string[]> {
  return await readdir(join(...path)).catch(() => []);
}

/** Names like `apps/hello`; repositories here have one or two parts. */
async function repositories(): Promise<string[]> {
  const found: string[] = [];
  for (const owner of await entries(storage, 'repositories')) {
    for (const name of await entries(storage, 'repositories', owner))
      if (!name.startsWith('_')) found.push(`${owner}/${name}`);
  }
  return found.sort();
}

async function taggedIn(repository: string): Promise<Set<string>> {
  const tags = join(storage, 'repositories', repository, '_manifests', 'tags');
  const links = await Promise.all((await entries(tags)).map((tag) => readText(join(tags, tag, 'current', 'link'))));
  return new Set(links.flatMap((link) => (link === undefined ? [] : [link.trim()])));
}

/** An index keeps the manifests that it lists. */
async function withChildren(digests: ReadonlySet<string>): Promise<Set<string>> {
  const all = new Set(digests);
  for (const digest of digests) {
    const hex = digest.slice('sha256:'.length);
    const text = await readText(join(storage, 'blobs', 'sha256', hex.slice(0, 2), hex, 'data'));
    if (text === undefined || text.length > 1_000_000 || !text.startsWith('{')) continue;
    for (const child of manifest.parse(JSON.parse(text)).manifests ?? []) all.add(child.digest);
  }
  return all;
}

const isOwn = (repository: string): boolean => ['moorage/moorage', 'moorage/moorage-pipeline'].includes(repository);

/** True for the build cache of an app of which no image is left. Apps come before caches. */
async function isCacheOfNone(repository: string): Promise<boolean> {
  const [owner, name = ''] = repository.split('/');
  return (
    owner === 'cache' &&
    (await entries(storage, 'repositories', 'apps', name, '_manifests', 'revisions', 'sha256')).length === 0
  );
}

/** Moorage's own images get a tag a version; only the one in use is kept. */
async function dropOldTags(repository: string, used: ReadonlySet<string>): Promise<void> {
  const tags = join(storage, 'repositories', repository, '_manifests', 'tags');
  for (const tag of await entries(tags)) {
    const digest = (await readText(join(tags, tag, 'current', 'link')))?.trim();
    if (digest === undefined || !used.has(digest)) await rm(join(tags, tag), { recursive: true, force: true });
  }
}

async function dropRevisions(repository: string, used: ReadonlySet<string>): Promise<number> {
  const keep = await withChildren(new Set([...used, ...(await taggedIn(repository))]));
  const revisions = join(storage, 'repositories', repository, '_manifests', 'revisions', 'sha256');
  const unused = (await entries(revisions)).filter((hex) => !keep.has(`sha256:${hex}`));
  for (const hex of unused) await rm(join(revisions, hex), { recursive: true, force: true });
  return unused.length;
}

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
  const objects = await kubectl(['get', 'pods,replicasets,deployments,jobs,happ', '--all-namespaces', '-o', 'json']);
  const used = digestsIn(objects);
  await stopProcess(processFolders, 'registry');
  let removed = 0;
  try {
    for (const repository of await repositories()) {
      if (isOwn(repository) || (await isCacheOfNone(repository))) await dropOldTags(repository, used);
      removed += await dropRevisions(repository, used);
    }
    await run(join(unpackedFolder('docker-registry'), 'usr/bin/docker-registry'), ['garbage-collect', registryConfig]);
  } finally {
    await ensureProcess(processFolders, await registrySpec());
  }
  return `removed ${removed} images, ${Math.round((before - (await size())) / 1024 ** 2)} MiB`;
}
