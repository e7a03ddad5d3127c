// Removes images that nothing names from the storage of a stopped registry. Its own garbage collection comes after.
import { readdir, readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { protectRecent, recentUploads } from './recent.ts';

const manifest = z.object({ manifests: z.array(z.object({ digest: z.string() })).optional() });

/** Below this many bytes `up` removes nothing. */
export const limitBytes = 5 * 1024 ** 3;

/**
 * What was written in this time stays, whatever names it: a push writes its layers first and names them last, and what
 * it pushed is named by an object of the cluster a moment later. One that takes longer may be refused its manifest: the
 * build is tried again then, and nothing that was stored is lost.
 */
export const graceMs = 15 * 60_000;

/** The objects of a cluster that name images, as arguments of `kubectl get`. */
export const imageUsers = ['pods,replicasets,deployments,daemonsets,jobs,happ', '--all-namespaces', '-o', 'json'];

/** Every image digest and every UID that stands anywhere in a text. */
export function namesIn(text: string): Set<string> {
  return new Set(text.match(/sha256:[0-9a-f]{64}|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g) ?? []);
}

async function entries(...path: string[]): Promise<string[]> {
  return await readdir(join(...path)).catch(() => []);
}

async function textOf(...path: string[]): Promise<string | undefined> {
  return await readFile(join(...path), 'utf8').catch(() => undefined);
}

/** Images of Moorage itself get a tag a version; only the one in use is kept. */
const ownRepositories = ['moorage', 'moorage-workers', 'moorage-pipeline', 'git-server', 'node-network'].map(
  (name) => `moorage/${name}`,
);

/** The storage of one registry; `root` is its root directory. What was written after `since` (milliseconds) stays. */
class Storage {
  readonly #folder: string;
  readonly #since: number;
  constructor(root: string, since: number) {
    this.#folder = join(root, 'docker', 'registry', 'v2');
    this.#since = since;
  }

  async #isRecent(...path: string[]): Promise<boolean> {
    return ((await stat(join(...path)).catch(() => undefined))?.mtimeMs ?? 0) > this.#since;
  }

  #manifests(repository: string): string {
    return join(this.#folder, 'repositories', repository, '_manifests');
  }

  /** Names like `apps/hello`; repositories here have two parts. */
  async repositories(): Promise<string[]> {
    const found: string[] = [];
    for (const owner of await entries(this.#folder, 'repositories')) {
      for (const name of await entries(this.#folder, 'repositories', owner))
        if (!name.startsWith('_')) found.push(`${owner}/${name}`);
    }
    return found.sort();
  }

  async #digestOf(repository: string, tag: string): Promise<string | undefined> {
    return (await textOf(this.#manifests(repository), 'tags', tag, 'current', 'link'))?.trim();
  }

  async #tagged(repository: string): Promise<string[]> {
    const tags = await entries(this.#manifests(repository), 'tags');
    const digests = await Promise.all(tags.map((tag) => this.#digestOf(repository, tag)));
    return digests.filter((digest) => digest !== undefined);
  }

  /** An index keeps the manifests that it lists. */
  async #withChildren(digests: ReadonlySet<string>): Promise<Set<string>> {
    const all = new Set(digests);
    for (const digest of digests) {
      const hex = digest.slice('sha256:'.length);
      const text = await textOf(this.#folder, 'blobs', 'sha256', hex.slice(0, 2), hex, 'data');
      if (text === undefined || text.length > 1_000_000 || !text.startsWith('{')) continue;
      for (const child of manifest.parse(JSON.parse(text)).manifests ?? []) all.add(child.digest);
    }
    return all;
  }

  async dropOldTags(repository: string, used: ReadonlySet<string>): Promise<void> {
    for (const tag of await entries(this.#manifests(repository), 'tags')) {
      const folder = join(this.#manifests(repository), 'tags', tag);
      const digest = await this.#digestOf(repository, tag);
      if ((digest !== undefined && used.has(digest)) || (await this.#isRecent(folder, 'current', 'link'))) continue;
      await rm(folder, { recursive: true, force: true });
    }
  }

  async dropRevisions(repository: string, used: ReadonlySet<string>): Promise<number> {
    const keep = await this.#withChildren(new Set([...used, ...(await this.#tagged(repository))]));
    const revisions = join(this.#manifests(repository), 'revisions', 'sha256');
    let removed = 0;
    for (const hex of await entries(revisions)) {
      if (keep.has(`sha256:${hex}`) || (await this.#isRecent(revisions, hex, 'link'))) continue;
      await rm(join(revisions, hex), { recursive: true, force: true });
      removed += 1;
    }
    return removed;
  }

  /** Uploads that a build began and never finished. */
  async dropOldUploads(repository: string): Promise<void> {
    const uploads = join(this.#folder, 'repositories', repository, '_uploads');
    for (const id of await entries(uploads)) {
      const isUsed = (await this.#isRecent(uploads, id, 'data')) || (await this.#isRecent(uploads, id, 'startedat'));
      if (!isUsed) await rm(join(uploads, id), { recursive: true, force: true });
    }
  }
}

/**
 * True for images and build cache of an app that is gone: `apps/<name>.<UID>`, `cache/<name>.<UID>`. One without a UID
 * is of an older version.
 */
function isOfNobody(repository: string, used: ReadonlySet<string>): boolean {
  const [owner = '', name = ''] = repository.split('/');
  return ['apps', 'cache'].includes(owner) && !used.has(name.slice(name.indexOf('.') + 1));
}

/**
 * Removes images that neither a tag nor `used` (digests and UIDs) names, and uploads that nobody goes on with; and has
 * the registry's garbage collection keep the blobs of pushes in progress. Returns how many images.
 */
export async function removeUnused(root: string, used: ReadonlySet<string>, since: number): Promise<number> {
  const storage = new Storage(root, since);
  let removed = 0;
  for (const repository of await storage.repositories()) {
    if (repository === recentUploads) continue;
    if (ownRepositories.includes(repository) || isOfNobody(repository, used))
      await storage.dropOldTags(repository, used);
    removed += await storage.dropRevisions(repository, used);
    await storage.dropOldUploads(repository);
  }
  await protectRecent(root, since);
  return removed;
}
