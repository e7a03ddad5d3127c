// Removes from the registry what of an app is no longer kept: images beyond the limit, and a cache that is too large.
import { cacheRepository, cacheTags, imageRepository, type RepositoryOwner } from '../../../crds/names.ts';
import { createPruneToken } from '../../../lib/app-tokens.ts';
import { removable, type ImageRecords } from './keep.ts';
import { openRepository, type Repository, type StoredManifest } from './repository.ts';

export interface PruneOptions {
  /** Base URL of the registry proxy. */
  readonly url: string;
  readonly tokenSecret: string;
  /** Images that are kept besides those in use. */
  readonly imageLimit: number;
  /** Maximum bytes of a cache. */
  readonly cacheBytes: number;
}

/** What a prune removed, and the bytes of what an app has left in the registry. */
export interface PruneResult {
  readonly removed: number;
  readonly bytes: { readonly images: number; readonly cache: number };
}

/**
 * Prunes both repositories of an app. `mayRemove` is asked before each removal: a build that starts meanwhile may push
 * the same image again, and would find it gone.
 *
 * @throws Error where the registry cannot be asked, RemovalRefused where it removes nothing.
 */
export async function pruneApp(
  owner: RepositoryOwner,
  records: ImageRecords,
  options: PruneOptions,
  mayRemove: () => boolean,
): Promise<PruneResult> {
  const { images, cache } = repositoriesOf(owner, options);
  let removed = 0;
  const remove = async (from: Repository, digests: readonly string[]): Promise<void> => {
    for (const digest of digests) {
      if (!mayRemove()) return;
      await from.remove(digest);
      removed += 1;
    }
  };

  const stored = await manifestsOf(images);
  const tagged = stored.map(({ tag, manifest }) => ({ tag, digest: manifest.digest }));
  const unwanted = removable(tagged, records, options.imageLimit);
  await remove(images, unwanted);

  const caches = await manifestsOf(cache);
  const kept = caches.filter(({ tag, manifest }) => isKeptCache(tag, manifest, options.cacheBytes));
  const keptDigests = new Set(kept.map(({ manifest }) => manifest.digest));
  const over = caches.map(({ manifest }) => manifest.digest).filter((digest) => !keptDigests.has(digest));
  await remove(cache, [...new Set(over)]);

  const left = stored.filter(({ manifest }) => !unwanted.includes(manifest.digest));
  return { removed, bytes: { images: bytesOf(left), cache: bytesOf(kept) } };
}

/** Removes all that an app that is deleted has in the registry. Returns how many manifests there were. */
export async function emptyRepositories(
  owner: RepositoryOwner,
  options: Pick<PruneOptions, 'url' | 'tokenSecret'>,
  signal?: AbortSignal,
): Promise<number> {
  const { images, cache } = repositoriesOf(owner, options, signal);
  let removed = 0;
  for (const repository of [images, cache]) {
    const digests = new Set((await manifestsOf(repository)).map(({ manifest }) => manifest.digest));
    for (const digest of digests) await repository.remove(digest);
    removed += digests.size;
  }
  return removed;
}

function repositoriesOf(
  owner: RepositoryOwner,
  { url, tokenSecret }: Pick<PruneOptions, 'url' | 'tokenSecret'>,
  signal?: AbortSignal,
): { images: Repository; cache: Repository } {
  const token = createPruneToken(owner, tokenSecret);
  const open = (name: string): Repository => openRepository(url, name, token, signal);
  return { images: open(imageRepository(owner)), cache: open(cacheRepository(owner)) };
}

interface Stored {
  readonly tag: string;
  readonly manifest: StoredManifest;
}

async function manifestsOf(repository: Repository): Promise<Stored[]> {
  const stored: Stored[] = [];
  for (const tag of await repository.tags()) {
    const manifest = await repository.manifest(tag);
    if (manifest !== undefined) stored.push({ tag, manifest });
  }
  return stored;
}

/** The layers of the image alone take no space of their own, whatever their size. */
function isKeptCache(tag: string, { blobs }: StoredManifest, maximum: number): boolean {
  if (tag === cacheTags.image) return true;
  return tag === cacheTags.all && [...blobs.values()].reduce((sum, bytes) => sum + bytes, 0) <= maximum;
}

/** Bytes of all blobs, each counted once. */
function bytesOf(stored: readonly Stored[]): number {
  const blobs = new Map(stored.flatMap(({ manifest }) => [...manifest.blobs]));
  return [...blobs.values()].reduce((sum, bytes) => sum + bytes, 0);
}
