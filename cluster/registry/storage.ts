// Removes images that nothing names from the storage of a stopped registry. Its own garbage collection comes after.
import { readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';

const manifest = z.object({ manifests: z.array(z.object({ digest: z.string() })).optional() });

/** Below this many bytes nothing is removed: an older image may be wanted for going back. */
export const limitBytes = 5 * 1024 ** 3;

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
const ownRepositories = ['moorage', 'moorage-pipeline', 'git-server', 'node-network'].map((name) => `moorage/${name}`);

/** The storage of one registry; `root` is its root directory. */
class Storage {
  readonly #folder: string;
  constructor(root: string) {
    this.#folder = join(root, 'docker', 'registry', 'v2');
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
      const digest = await this.#digestOf(repository, tag);
      if (digest === undefined || !used.has(digest))
        await rm(join(this.#manifests(repository), 'tags', tag), { recursive: true, force: true });
    }
  }

  async dropRevisions(repository: string, used: ReadonlySet<string>): Promise<number> {
    const keep = await this.#withChildren(new Set([...used, ...(await this.#tagged(repository))]));
    const revisions = join(this.#manifests(repository), 'revisions', 'sha256');
    const unused = (await entries(revisions)).filter((hex) => !keep.has(`sha256:${hex}`));
    for (const hex of unused) await rm(join(revisions, hex), { recursive: true, force: true });
    return unused.length;
  }
}

/** True for the build cache of an app that is gone: `cache/<name>.<UID>`. One without a UID is of an older version. */
function isUnusedCache(repository: string, used: ReadonlySet<string>): boolean {
  const [owner, name = ''] = repository.split('/');
  return owner === 'cache' && !used.has(name.slice(name.indexOf('.') + 1));
}

/** Removes images that neither a tag nor `used` (digests and UIDs) names. Returns how many. */
export async function removeUnused(root: string, used: ReadonlySet<string>): Promise<number> {
  const storage = new Storage(root);
  let removed = 0;
  for (const repository of await storage.repositories()) {
    if (ownRepositories.includes(repository) || isUnusedCache(repository, used))
      await storage.dropOldTags(repository, used);
    removed += await storage.dropRevisions(repository, used);
  }
  return removed;
}
