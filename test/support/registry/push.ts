// Pushes images of random content through the registry proxy, with the requests and the tags of a build.
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { formatImageRepository, type RepositoryOwner } from '../../../crds/names.ts';
import type { TestRegistry } from '../pipeline/registry.ts';

export const digestOf = (content: Buffer | string): string =>
  `sha256:${createHash('sha256').update(content).digest('hex')}`;

const manifestType = 'application/vnd.oci.image.manifest.v1+json';

/** A request of a build of an app. */
export async function askAsBuild(
  registry: TestRegistry,
  app: RepositoryOwner,
  path: string,
  init: RequestInit = {},
): Promise<Response> {
  const authorization = `Basic ${Buffer.from(`moorage:${registry.proxy.tokenOf(app)}`).toString('base64')}`;
  const headers = new Headers(init.headers);
  headers.set('authorization', authorization);
  headers.set('accept', manifestType);
  return await fetch(new URL(path, `http://${registry.proxy.host}`), { ...init, headers });
}

/** The answer to an upload of a blob that is not there: that of the first request that fails, or of the last. */
export async function pushBlob(
  registry: TestRegistry,
  app: RepositoryOwner,
  repository: string,
  content: Buffer,
): Promise<Response> {
  const begun = await askAsBuild(registry, app, `/v2/${repository}/blobs/uploads/`, { method: 'POST' });
  const location = begun.headers.get('location');
  if (begun.status !== 202 || location === null) return begun;
  await begun.body?.cancel();
  return await askAsBuild(registry, app, `${location}?digest=${digestOf(content)}`, {
    method: 'PUT',
    body: new Uint8Array(content),
    headers: { 'content-type': 'application/octet-stream' },
  });
}

export interface PushedImage {
  readonly digest: string;
  readonly blobs: readonly string[];
}

export interface PushOptions {
  /** Default: that of the app's images. */
  readonly repository?: string;
  readonly bytes?: number;
  /** A layer that other images have, too. */
  readonly base?: Buffer;
}

/** Pushes an image of a base layer, one of its own and a configuration. @throws AssertionError where any of it fails. */
export async function pushImage(
  registry: TestRegistry,
  app: RepositoryOwner,
  tag: string,
  { repository = formatImageRepository(app), bytes = 200_000, base }: PushOptions = {},
): Promise<PushedImage> {
  const contents = [randomBytes(64), ...(base === undefined ? [] : [base]), randomBytes(bytes)];
  for (const content of contents) {
    const known = await askAsBuild(registry, app, `/v2/${repository}/blobs/${digestOf(content)}`, { method: 'HEAD' });
    if (known.ok) continue;
    const pushed = await pushBlob(registry, app, repository, content);
    assert.equal(pushed.status, 201, await pushed.text());
  }
  const [config, ...layers] = contents.map((content) => ({
    mediaType: 'application/octet-stream',
    digest: digestOf(content),
    size: content.length,
  }));
  const manifest = JSON.stringify({ schemaVersion: 2, mediaType: manifestType, config, layers });
  const named = await askAsBuild(registry, app, `/v2/${repository}/manifests/${tag}`, {
    method: 'PUT',
    body: manifest,
    headers: { 'content-type': manifestType },
  });
  assert.equal(named.status, 201, await named.text());
  return { digest: digestOf(manifest), blobs: contents.map(digestOf) };
}

/** Whether all of an image can be read, byte for byte. */
export async function isWhole(
  registry: TestRegistry,
  app: RepositoryOwner,
  image: PushedImage,
  repository = formatImageRepository(app),
): Promise<boolean> {
  const paths = [`manifests/${image.digest}`, ...image.blobs.map((blob) => `blobs/${blob}`)];
  for (const path of paths) {
    const answer = await askAsBuild(registry, app, `/v2/${repository}/${path}`);
    const content = Buffer.from(await answer.arrayBuffer());
    if (answer.status !== 200 || digestOf(content) !== path.replace(/^\w+\//, '')) return false;
  }
  return true;
}
