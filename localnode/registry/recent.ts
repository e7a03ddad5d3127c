// Has the garbage collection of a registry keep what was uploaded lately: it knows only manifests, and would take the
// layers of a push that has not sent its manifest yet. So they get one of ours.
import { createHash } from 'node:crypto';
import { mkdir, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** A repository that nobody can push to or read; its one manifest is written anew by each collection. */
export const recentUploads = 'moorage/recent-uploads';

/** Names all blobs that were written or linked after `since` (milliseconds since 1970). The registry is stopped. */
export async function protectRecent(root: string, since: number): Promise<void> {
  const folder = join(root, 'docker', 'registry', 'v2');
  const own = join(folder, 'repositories', recentUploads);
  await rm(own, { recursive: true, force: true });
  const blobs = await recentBlobs(folder, since);
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
  const revision = join(own, '_manifests', 'revisions', 'sha256', hex);
  // The registry knows a repository by its folder of layers.
  await Promise.all([blob, revision, join(own, '_layers')].map((each) => mkdir(each, { recursive: true })));
  await writeFile(join(blob, 'data'), text);
  await writeFile(join(revision, 'link'), `sha256:${hex}`);
}

/** In hexadecimal. A layer that was stored before is not written again by a push, but linked in its repository. */
async function recentBlobs(folder: string, since: number): Promise<string[]> {
  const isRecent = async (path: string): Promise<boolean> =>
    ((await stat(path).catch(() => undefined))?.mtimeMs ?? 0) > since;
  const recent = new Set<string>();
  for (const prefix of await entries(folder, 'blobs', 'sha256'))
    for (const hex of await entries(folder, 'blobs', 'sha256', prefix))
      if (await isRecent(join(folder, 'blobs', 'sha256', prefix, hex, 'data'))) recent.add(hex);
  for (const owner of await entries(folder, 'repositories'))
    for (const name of await entries(folder, 'repositories', owner)) {
      const layers = join(folder, 'repositories', owner, name, '_layers', 'sha256');
      for (const hex of await entries(layers)) if (await isRecent(join(layers, hex, 'link'))) recent.add(hex);
    }
  return [...recent].sort();
}

async function entries(...path: string[]): Promise<string[]> {
  return await readdir(join(...path)).catch(() => []);
}
