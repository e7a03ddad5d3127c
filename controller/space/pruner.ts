// Removes the images and caches of an app that are no longer kept from the registry: after each pipeline and rollout, in the
// background, and when the app is deleted.
import { z } from 'zod';
import type { HistoryEntry, HostedAppStatus } from '../../crds/hosted-app.ts';
import {
  formatCacheRepository,
  formatImageRepository,
  parseCacheTag,
  parseImageTag,
  type RepositoryOwner,
} from '../../crds/names.ts';
import { createPruneToken } from '../../lib/app-tokens.ts';
import { toErrorMessage, type Logger } from '../../lib/kubernetes/index.ts';
import { createTimeLimit } from '../../lib/values.ts';
import { isRunning } from '../build-queue/build-queue.ts';
import type { Deployment, HostedAppObject, Job } from '../objects/kinds.ts';
import { createBackgroundLookups } from '../reconcile/controller.ts';
import type { SpaceMetrics } from './space.ts';

export interface PrunerOptions extends PruneOptions {
  /** Its pipeline Jobs, as they are now. */
  readonly listJobs: (app: string) => readonly Job[];
  readonly log: Logger;
  readonly metrics: SpaceMetrics;
}

/** An app with what runs it. */
export interface PruneSubject {
  readonly name: string;
  readonly namespace: string;
  readonly uid: string;
  readonly status: HostedAppStatus;
  readonly deployment: Deployment | undefined;
}

export interface Pruner {
  /** Prunes the app, unless that was done since its last pipeline and rollout, or a pipeline of it runs. */
  schedule(app: PruneSubject): void;
  /** Removes all that an app that is being deleted has in the registry. False: it is to be tried again. */
  removeApp(app: HostedAppObject, signal: AbortSignal): Promise<boolean>;
  /** Forgets an app. */
  forget(key: string): void;
}

/** Apps that are pruned at the same time. */
const maximumPrunes = 2;
/** A deleted app waits no longer than this for a registry that does not answer. */
const patienceMs = 10 * 60_000;

interface Query {
  readonly key: string;
  readonly identity: string;
  readonly owner: { readonly name: string; readonly uid: string };
  readonly records: ImageRecords;
}

/** Creates a pruner that has pruned nothing yet: after a start of the operator, each app is checked once. */
export function createPruner(options: PrunerOptions): Pruner {
  const { log, metrics, listJobs } = options;
  const pruned = new Map<string, string>();
  const isIdle = (app: string): boolean => !listJobs(app).some(isRunning);

  async function run({ key, identity, owner, records }: Query): Promise<'ended'> {
    const { name: app } = owner;
    try {
      const { removed, bytes } = await pruneApp(owner, records, options, () => isIdle(app));
      metrics.removed.inc(removed);
      metrics.stored.set({ app, kind: 'images' }, bytes.images);
      metrics.stored.set({ app, kind: 'cache' }, bytes.cache);
      if (removed > 0) log.info({ app, removed }, 'removed unneeded images from the registry');
      pruned.set(key, identity);
    } catch (error) {
      metrics.failures.inc({ of: 'registry' });
      log.warn({ app, error: toErrorMessage(error) }, 'could not remove unneeded images');
      // The registry would refuse again; the next pipeline leads to another try.
      if (error instanceof RemovalRefused) pruned.set(key, identity);
    }
    return 'ended';
  }

  const prunes = createBackgroundLookups<Query, 'ended'>({
    run,
    group: () => 'registry',
    limit: maximumPrunes,
    onResult: () => undefined,
  });

  return {
    schedule({ name, namespace, uid, status, deployment }) {
      const { history = [], built, served, releases } = status;
      const key = `${namespace}/${name}`;
      const images = [built?.image, built?.components, served?.image, releases, deployment];
      const needed = findDigests(JSON.stringify(images));
      const identity = [uid, history[0]?.number, ...needed].join(' ');
      if (history.length === 0 || pruned.get(key) === identity || !isIdle(name)) return;
      // Forgets a failed prune, so that it is retried.
      prunes.take(key, identity);
      prunes.start(key, identity, { key, identity, owner: { name, uid }, records: { needed, history } });
    },
    async removeApp({ metadata }, signal) {
      const { name, uid, deletionTimestamp = '' } = metadata;
      metrics.stored.remove({ app: name, kind: 'images' });
      metrics.stored.remove({ app: name, kind: 'cache' });
      try {
        metrics.removed.inc(await removeAllManifests({ name, uid }, options, signal));
        return true;
      } catch (error) {
        const isFinal = error instanceof RemovalRefused || Date.now() - Date.parse(deletionTimestamp) > patienceMs;
        metrics.failures.inc({ of: 'registry' });
        const outcome = isFinal ? 'they are left in the registry' : 'it is tried again';
        log.warn(
          { app: name, uid, error: toErrorMessage(error), outcome },
          'could not remove the images of a deleted app',
        );
        return isFinal;
      }
    },
    forget(key) {
      pruned.delete(key);
      prunes.forget(key);
    },
  };
}

// Pruning one app: images beyond the limit, and a cache that is too large.

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
 * Prunes both repositories of an app. `mayRemove` is called before each removal: a build that starts meanwhile may push
 * the same image again, and would find it gone.
 *
 * @throws Error if the registry does not answer, RemovalRefused if it does not allow removals
 */
export async function pruneApp(
  owner: RepositoryOwner,
  records: ImageRecords,
  options: PruneOptions,
  mayRemove: () => boolean,
): Promise<PruneResult> {
  const { images, cache } = openRepositories(owner, options);
  let removed = 0;
  const remove = async (from: Repository, digests: readonly string[]): Promise<void> => {
    for (const digest of digests) {
      if (!mayRemove()) return;
      await from.remove(digest);
      removed += 1;
    }
  };

  const stored = await listManifests(images);
  const tagged = stored.map(({ tag, manifest }) => ({ tag, digest: manifest.digest }));
  const unwanted = selectRemovable(tagged, records, options.imageLimit);
  await remove(images, unwanted);

  const caches = await listManifests(cache);
  const keptCaches = selectCaches(caches, options.cacheBytes);
  const keptDigests = new Set(keptCaches.map(({ manifest }) => manifest.digest));
  const over = caches.map(({ manifest }) => manifest.digest).filter((digest) => !keptDigests.has(digest));
  await remove(cache, [...new Set(over)]);

  const remaining = stored.filter(({ manifest }) => !unwanted.includes(manifest.digest));
  return { removed, bytes: { images: countBytes(remaining), cache: countBytes(keptCaches) } };
}

/** Removes all that an app that is deleted has in the registry. Returns how many manifests there were. */
export async function removeAllManifests(
  owner: RepositoryOwner,
  options: Pick<PruneOptions, 'url' | 'tokenSecret'>,
  signal?: AbortSignal,
): Promise<number> {
  const { images, cache } = openRepositories(owner, options, signal);
  let removed = 0;
  for (const repository of [images, cache]) {
    const digests = new Set((await listManifests(repository)).map(({ manifest }) => manifest.digest));
    for (const digest of digests) await repository.remove(digest);
    removed += digests.size;
  }
  return removed;
}

function openRepositories(
  owner: RepositoryOwner,
  { url, tokenSecret }: Pick<PruneOptions, 'url' | 'tokenSecret'>,
  signal?: AbortSignal,
): { images: Repository; cache: Repository } {
  const token = createPruneToken(owner, tokenSecret);
  const open = (name: string): Repository => openRepository(url, name, token, signal);
  return { images: open(formatImageRepository(owner)), cache: open(formatCacheRepository(owner)) };
}

interface StoredImage {
  readonly tag: string;
  readonly manifest: StoredManifest;
}

async function listManifests(repository: Repository): Promise<StoredImage[]> {
  const stored: StoredImage[] = [];
  for (const tag of await repository.listTags()) {
    const manifest = await repository.readManifest(tag);
    if (manifest !== undefined) stored.push({ tag, manifest });
  }
  return stored;
}

/**
 * Selects the caches to keep. Those of an image's own layers take no extra space, whatever their size. Of those of all
 * steps, one for each component, the smallest are kept as long as all of them together fit.
 */
export function selectCaches(caches: readonly StoredImage[], maximum: number): StoredImage[] {
  const keptCaches = caches.filter(({ tag }) => parseCacheTag(tag) === 'image');
  const whole = caches
    .filter(({ tag }) => parseCacheTag(tag) === 'all')
    .toSorted((one, other) => countBytes([one]) - countBytes([other]));
  const fitting = whole.filter((_, index) => countBytes(whole.slice(0, index + 1)) <= maximum);
  return [...keptCaches, ...fitting];
}

/** Bytes of all blobs, each counted once. */
function countBytes(stored: readonly StoredImage[]): number {
  const blobs = new Map(stored.flatMap(({ manifest }) => [...manifest.blobs]));
  return [...blobs.values()].reduce((sum, bytes) => sum + bytes, 0);
}

// Selects the images to remove: never one that serves or is about to, nor the newest ones before it.

/** An image in the registry. */
export interface TaggedImage {
  readonly tag: string;
  readonly digest: string;
}

/** What is known of an app's images. */
export interface ImageRecords {
  /** Digests that its status and its Deployment name. */
  readonly needed: ReadonlySet<string>;
  /** Past pipelines; none of them is in progress. */
  readonly history: readonly Pick<HistoryEntry, 'number' | 'image'>[];
}

/** Every image digest in a text. */
export function findDigests(text: string): Set<string> {
  return new Set(text.match(/sha256:[0-9a-f]{64}/g) ?? []);
}

/**
 * Selects the digests to remove, each once. Besides those needed, the newest `limit` images are kept. Images that failed
 * pipelines left behind are removed, and so are tags that no pipeline makes; an image of a pipeline that is not recorded
 * yet stays.
 */
export function selectRemovable(
  images: readonly TaggedImage[],
  { needed, history }: ImageRecords,
  limit: number,
): string[] {
  const lastRecorded = Math.max(0, ...history.map(({ number }) => number));
  const pending = images.filter(({ tag }) => (parseImageTag(tag) ?? 0) > lastRecorded).map(({ digest }) => digest);
  const before = history
    .toSorted((a, b) => b.number - a.number)
    .flatMap(({ image }) => [...findDigests(image ?? '')])
    .filter((digest) => !needed.has(digest));
  const keptDigests = new Set([...needed, ...pending, ...[...new Set(before)].slice(0, limit)]);
  return [...new Set(images.map(({ digest }) => digest))].filter((digest) => !keptDigests.has(digest));
}

// One repository of an app, reached through the registry proxy with a token that can list and remove, but neither push
// nor read a layer.

export interface Repository {
  /** All of its tags; none where there is no such repository. */
  listTags(): Promise<string[]>;
  /** What a tag names; undefined when it is gone. */
  readManifest(tag: string): Promise<StoredManifest | undefined>;
  /** Removes a manifest by its digest, with all its tags. One that is gone already is no error. */
  remove(digest: string): Promise<void>;
}

export interface StoredManifest {
  readonly digest: string;
  /** Bytes of each blob that it refers to, and its own. */
  readonly blobs: ReadonlyMap<string, number>;
}

/** The registry does not remove manifests, or not for this account. */
export class RemovalRefused extends Error {
  override readonly name = 'RemovalRefused';
}

const tagList = z.object({ tags: z.array(z.string()).nullish() });
const descriptor = z.object({ digest: z.string(), size: z.int().min(0) });
/** Programs in Go write an empty list as null: an image FROM scratch may have no layer. */
const descriptors = z
  .array(descriptor)
  .nullish()
  .transform((list) => list ?? []);
const manifest = z.object({ config: descriptor.optional(), layers: descriptors, manifests: descriptors });
const accept = [
  'application/vnd.oci.image.manifest.v1+json',
  'application/vnd.oci.image.index.v1+json',
  'application/vnd.docker.distribution.manifest.v2+json',
  'application/vnd.docker.distribution.manifest.list.v2+json',
].join(', ');

const askMilliseconds = 30_000;
const maximumPages = 100;

/** The methods throw if the registry does not answer. @param url of the registry proxy, without a path */
export function openRepository(url: string, name: string, token: string, signal?: AbortSignal): Repository {
  const authorization = `Basic ${Buffer.from(`operator:${token}`).toString('base64')}`;
  const ask = async (method: string, path: string): Promise<Response> => {
    const ended = createTimeLimit(askMilliseconds);
    return await fetch(new URL(path, url), {
      method,
      headers: { authorization, accept },
      signal: signal === undefined ? ended : AbortSignal.any([signal, ended]),
    });
  };
  const createRefusal = async (what: string, answer: Response): Promise<Error> =>
    new Error(
      `${what} of ${name}: the registry answered ${answer.status} ${(await answer.text()).slice(0, 200).trim()}`,
    );

  return {
    async listTags() {
      const tags: string[] = [];
      let path: string | undefined = `/v2/${name}/tags/list`;
      for (let page = 0; path !== undefined && page < maximumPages; page += 1) {
        const answer = await ask('GET', path);
        if (answer.status === 404) break;
        if (!answer.ok) throw await createRefusal('the tags', answer);
        tags.push(...(tagList.parse(await answer.json()).tags ?? []));
        path = /<([^>]+)>;\s*rel="?next"?/.exec(answer.headers.get('link') ?? '')?.[1];
      }
      return tags;
    },
    async readManifest(tag) {
      const answer = await ask('GET', `/v2/${name}/manifests/${tag}`);
      if (answer.status === 404) return undefined;
      if (!answer.ok) throw await createRefusal(`the manifest ${tag}`, answer);
      const digest = answer.headers.get('docker-content-digest');
      const text = await answer.text();
      if (digest === null) throw new Error(`the manifest ${tag} of ${name}: the registry did not say its digest`);
      const { config, layers, manifests } = manifest.parse(JSON.parse(text));
      const blobs = [...(config === undefined ? [] : [config]), ...layers, ...manifests];
      return {
        digest,
        blobs: new Map([[digest, Buffer.byteLength(text)], ...blobs.map((each) => [each.digest, each.size] as const)]),
      };
    },
    async remove(digest) {
      const answer = await ask('DELETE', `/v2/${name}/manifests/${digest}`);
      if (answer.ok || answer.status === 404) {
        await answer.body?.cancel();
        return;
      }
      const error = await createRefusal(`removing ${digest}`, answer);
      throw [403, 405].includes(answer.status) ? new RemovalRefused(error.message) : error;
    },
  };
}
