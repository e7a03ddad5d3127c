// Removes unreferenced images from the storage of a stopped registry, before the registry's own garbage collection, and
// reads image sizes from manifests.
import { readdir, readFile, rm, stat, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createHash } from 'node:crypto';
import { z } from 'zod';

const manifest = z.object({ manifests: z.array(z.object({ digest: z.string() })).optional() });

/** Below this many bytes, `up` removes nothing. */
export const limitBytes = 5 * 1024 ** 3;

/**
 * Recently written data stays, referenced or not: a push writes its layers before its manifest, and an object of the
 * cluster refers to the image only a moment later. The registry may reject the manifest of a push that takes longer;
 * then the build is retried, and nothing stored is lost.
 */
export const graceMs = 15 * 60_000;

/** The cluster objects that refer to images, as arguments of `kubectl get`. */
export const imageUsers = ['pods,replicasets,deployments,daemonsets,jobs,happ', '--all-namespaces', '-o', 'json'];

/** Finds every image digest and every UID in a text. */
export function extractNames(text: string): Set<string> {
  return new Set(text.match(/sha256:[0-9a-f]{64}|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g) ?? []);
}

async function listEntries(...path: string[]): Promise<string[]> {
  return await readdir(join(...path)).catch(() => []);
}

async function readTextFile(...path: string[]): Promise<string | undefined> {
  return await readFile(join(...path), 'utf8').catch(() => undefined);
}

/** Moorage's own images get one tag per version; only the one in use is kept. */
const ownRepositories = ['moorage', 'moorage-workers', 'moorage-pipeline', 'git-server', 'node-network'].map(
  (name) => `moorage/${name}`,
);

/** The storage of one registry; `root` is its root directory. Data written after `since` (milliseconds) stays. */
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

  #getManifestsFolder(repository: string): string {
    return join(this.#folder, 'repositories', repository, '_manifests');
  }

  /** Names like `apps/hello`; repositories here have two parts. */
  async listRepositories(): Promise<string[]> {
    const names: string[] = [];
    for (const owner of await listEntries(this.#folder, 'repositories')) {
      for (const name of await listEntries(this.#folder, 'repositories', owner))
        if (!name.startsWith('_')) names.push(`${owner}/${name}`);
    }
    return names.sort();
  }

  async #readDigest(repository: string, tag: string): Promise<string | undefined> {
    return (await readTextFile(this.#getManifestsFolder(repository), 'tags', tag, 'current', 'link'))?.trim();
  }

  async #listTagged(repository: string): Promise<string[]> {
    const tags = await listEntries(this.#getManifestsFolder(repository), 'tags');
    const digests = await Promise.all(tags.map((tag) => this.#readDigest(repository, tag)));
    return digests.filter((digest) => digest !== undefined);
  }

  /** An index keeps the manifests that it lists. */
  async #addChildren(digests: ReadonlySet<string>): Promise<Set<string>> {
    const keptDigests = new Set(digests);
    for (const digest of digests) {
      const hex = digest.slice('sha256:'.length);
      const text = await readTextFile(this.#folder, 'blobs', 'sha256', hex.slice(0, 2), hex, 'data');
      if (text === undefined || text.length > 1_000_000 || !text.startsWith('{')) continue;
      for (const child of manifest.parse(JSON.parse(text)).manifests ?? []) keptDigests.add(child.digest);
    }
    return keptDigests;
  }

  async dropOldTags(repository: string, used: ReadonlySet<string>): Promise<void> {
    for (const tag of await listEntries(this.#getManifestsFolder(repository), 'tags')) {
      const folder = join(this.#getManifestsFolder(repository), 'tags', tag);
      const digest = await this.#readDigest(repository, tag);
      if ((digest !== undefined && used.has(digest)) || (await this.#isRecent(folder, 'current', 'link'))) continue;
      await rm(folder, { recursive: true, force: true });
    }
  }

  async dropRevisions(repository: string, used: ReadonlySet<string>): Promise<number> {
    const keep = await this.#addChildren(new Set([...used, ...(await this.#listTagged(repository))]));
    const revisions = join(this.#getManifestsFolder(repository), 'revisions', 'sha256');
    let removed = 0;
    for (const hex of await listEntries(revisions)) {
      if (keep.has(`sha256:${hex}`) || (await this.#isRecent(revisions, hex, 'link'))) continue;
      await rm(join(revisions, hex), { recursive: true, force: true });
      removed += 1;
    }
    return removed;
  }

  /** Removes uploads that a build started and never finished. */
  async dropOldUploads(repository: string): Promise<void> {
    const uploads = join(this.#folder, 'repositories', repository, '_uploads');
    for (const id of await listEntries(uploads)) {
      const isUsed = (await this.#isRecent(uploads, id, 'data')) || (await this.#isRecent(uploads, id, 'startedat'));
      if (!isUsed) await rm(join(uploads, id), { recursive: true, force: true });
    }
  }
}

/**
 * Returns true for images and build cache of a deleted app: `apps/<name>.<UID>`, `cache/<name>.<UID>`. Names without a
 * UID come from an older version.
 */
function isOfNobody(repository: string, used: ReadonlySet<string>): boolean {
  const [owner = '', name = ''] = repository.split('/');
  return ['apps', 'cache'].includes(owner) && !used.has(name.slice(name.indexOf('.') + 1));
}

/**
 * Removes images that neither a tag nor `used` (digests and UIDs) refers to, and abandoned uploads. Makes the
 * registry's garbage collection keep the blobs of pushes in progress. Returns the number of removed images.
 */
export async function removeUnused(root: string, used: ReadonlySet<string>, since: number): Promise<number> {
  const storage = new Storage(root, since);
  let removed = 0;
  for (const repository of await storage.listRepositories()) {
    if (repository === recentUploads) continue;
    if (ownRepositories.includes(repository) || isOfNobody(repository, used))
      await storage.dropOldTags(repository, used);
    removed += await storage.dropRevisions(repository, used);
    await storage.dropOldUploads(repository);
  }
  await protectRecent(root, since);
  return removed;
}

/** A repository that cannot be pushed to or read. Each collection rewrites its only manifest. */
export const recentUploads = 'moorage/recent-uploads';

/**
 * Lists all blobs written or linked after `since` (milliseconds since 1970) in a manifest of ours. The garbage
 * collection only follows manifests, and would otherwise remove the layers of a push that has not sent its manifest
 * yet. The registry is stopped.
 */
export async function protectRecent(root: string, since: number): Promise<void> {
  const folder = join(root, 'docker', 'registry', 'v2');
  const repositoryFolder = join(folder, 'repositories', recentUploads);
  await rm(repositoryFolder, { recursive: true, force: true });
  const blobs = await listRecentBlobs(folder, since);
  if (blobs.length === 0) return;
  const [config, ...layers] = blobs.map((hex) => ({
    mediaType: 'application/octet-stream',
    digest: `sha256:${hex}`,
    size: 0,
  }));
  const mediaType = 'application/vnd.oci.image.manifest.v1+json';
  const text = JSON.stringify({ schemaVersion: 2, mediaType, config, layers });
  const hex = createHash('sha256').update(text).digest('hex');
  const blob = join(folder, 'blobs', 'sha256', hex.slice(0, 2), hex);
  const revision = join(repositoryFolder, '_manifests', 'revisions', 'sha256', hex);
  // The registry recognizes a repository by its folder of layers.
  await Promise.all(
    [blob, revision, join(repositoryFolder, '_layers')].map((each) => mkdir(each, { recursive: true })),
  );
  await writeFile(join(blob, 'data'), text);
  await writeFile(join(revision, 'link'), `sha256:${hex}`);
}

/**
 * Lists hexadecimal digests. A push does not rewrite a layer that is already stored, but links it in its repository.
 */
async function listRecentBlobs(folder: string, since: number): Promise<string[]> {
  const isRecent = async (path: string): Promise<boolean> =>
    ((await stat(path).catch(() => undefined))?.mtimeMs ?? 0) > since;
  const recent = new Set<string>();
  for (const prefix of await listEntries(folder, 'blobs', 'sha256'))
    for (const hex of await listEntries(folder, 'blobs', 'sha256', prefix))
      if (await isRecent(join(folder, 'blobs', 'sha256', prefix, hex, 'data'))) recent.add(hex);
  for (const owner of await listEntries(folder, 'repositories'))
    for (const name of await listEntries(folder, 'repositories', owner)) {
      const layers = join(folder, 'repositories', owner, name, '_layers', 'sha256');
      for (const hex of await listEntries(layers)) if (await isRecent(join(layers, hex, 'link'))) recent.add(hex);
    }
  return [...recent].sort();
}

/** A registry on this machine. */
export interface CollectableRegistry {
  /** Root directory of its storage. */
  readonly root: string;
  /** Digests of images and UIDs of apps that are in use. */
  readonly listUsed: () => Promise<ReadonlySet<string>>;
  /**
   * Runs `work` while the registry is stopped, after the requests in progress: its garbage collection must not run
   * during a push.
   */
  readonly runWhileStopped: (work: () => Promise<number>) => Promise<number>;
  /** Runs the registry's garbage collection, which removes blobs that no manifest refers to. */
  readonly collectGarbage: () => Promise<void>;
}

/** Removes unused images and their blobs, except those written after `since` (milliseconds). Returns the count. */
export async function collect(registry: CollectableRegistry, since: number): Promise<number> {
  const used = await registry.listUsed();
  return await registry.runWhileStopped(async () => {
    const removed = await removeUnused(registry.root, used, since);
    await registry.collectGarbage();
    return removed;
  });
}

/** The registry is stopped for cleaning only if it has grown by at least this many bytes. */
const growthBytes = 512 * 1024 ** 2;

/** Returns whether a registry of `bytes` needs a collection, if it had `bytesBefore` bytes after the last one. */
export function isWorthwhile(bytes: number, bytesBefore: number, growth: number = growthBytes): boolean {
  return bytes - bytesBefore >= Math.max(growth, bytesBefore * 0.1);
}

/**
 * For the Accept header: the registry finds only manifests in an accepted format, and different engines push different
 * ones.
 */
export const manifestFormats = [
  'application/vnd.oci.image.index.v1+json',
  'application/vnd.oci.image.manifest.v1+json',
  'application/vnd.docker.distribution.manifest.list.v2+json',
  'application/vnd.docker.distribution.manifest.v2+json',
].join(', ');

const listed = z.object({
  digest: z.string(),
  platform: z.object({ os: z.string() }).optional(),
});
const imageManifest = z.union([
  z.object({ layers: z.array(z.object({ size: z.int() })) }),
  // Some engines push an image as the only entry of an index, together with attestations.
  z.object({ manifests: z.array(listed).min(1) }),
]);

/** Returns the compressed size of an image in the registry. `read` returns the manifest for a tag or a digest. */
export async function computeImageBytes(
  reference: string,
  read: (reference: string) => Promise<string>,
): Promise<number> {
  const imageOrIndex = imageManifest.parse(JSON.parse(await read(reference)));
  if ('layers' in imageOrIndex) return imageOrIndex.layers.reduce((all, { size }) => all + size, 0);
  const [first] = imageOrIndex.manifests;
  const image = imageOrIndex.manifests.find(({ platform }) => platform?.os === 'linux') ?? first;
  return await computeImageBytes(image?.digest ?? '', read);
}
