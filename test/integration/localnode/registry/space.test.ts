// A real registry behind the registry proxy: what is no longer kept goes, what serves stays, and a push at the same time
// loses nothing; and what builds and the operator see of a registry that is full.
import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { collect } from '../../../../localnode/registry/storage.ts';
import { ensurePackages } from '../../../../localnode/node/daemons/packages.ts';
import { removeAllManifests, pruneApp, type PruneOptions } from '../../../../controller/space/pruner.ts';
import { formatCacheRepository, cacheTags, formatImageTag, type RepositoryOwner } from '../../../../crds/names.ts';
import { createPruneToken } from '../../../../lib/app-tokens.ts';
import { runExclusively } from '../../../support/exclusively.ts';
import { startRegistry, tokenSecret, type TestRegistry } from '../../../support/pipeline/registry.ts';
import { isWhole, pushBlob, pushImage, type PushedImage } from '../../../support/registry/push.ts';
import { makeSmallDisk, type SmallDisk } from '../../../support/registry/small-disk.ts';

const mebibyte = 1024 ** 2;
const hello = (): RepositoryOwner => ({ name: 'hello', uid: randomUUID() });

let disk: SmallDisk;
let registry: TestRegistry;
let options: PruneOptions;
beforeEach(async () => {
  await runExclusively(async () => {
    await ensurePackages();
  });
  disk = await makeSmallDisk(64);
  registry = await startRegistry(join(disk.folder, 'data'));
  options = { url: `http://${registry.proxy.host}`, tokenSecret, imageLimit: 2, cacheBytes: mebibyte };
});
afterEach(async () => {
  await registry.stop();
  await disk.remove();
});

/** As the node does it, when nothing is recent any more. */
const collectAll = (used: readonly string[], since = Date.now() + 1_000): Promise<number> =>
  collect({ ...registry, listUsed: () => Promise.resolve(new Set(used)) }, since);

const pruneHello = async (
  app: RepositoryOwner,
  served: PushedImage,
  images: readonly PushedImage[],
): Promise<number> => {
  const history = images.map(({ digest }, index) => ({ number: index + 1, image: `r/apps/hello@${digest}` }));
  const pruned = await pruneApp(app, { needed: new Set([served.digest]), history }, options, () => true);
  return pruned.removed;
};

const spaceRefusal = async (): Promise<unknown> =>
  ((await (await fetch(`http://${registry.proxy.host}/space`)).json()) as { refusal?: unknown }).refusal;

test('keeps what serves and the newest images before it, and removes the rest with its bytes', async () => {
  const app = hello();
  const images: PushedImage[] = [];
  const base = randomBytes(mebibyte);
  for (let number = 1; number <= 8; number += 1)
    images.push(await pushImage(registry, app, formatImageTag(number), { bytes: 2 * mebibyte, base }));
  const served = images[0];
  assert.ok(served);
  const full = await disk.usedBytes();
  assert.equal(await pruneHello(app, served, images), 5);
  await collectAll([app.uid]);
  const whole = await Promise.all(images.map((image) => isWhole(registry, app, image)));
  assert.deepEqual(whole, [true, false, false, false, false, false, true, true]);
  const freed = full - (await disk.usedBytes());
  assert.ok(freed > 9.5 * mebibyte, `five images of 2 MiB are gone: ${freed}`);
  assert.equal(await pruneHello(app, served, images), 0, 'the second time, there is nothing to remove');
});

test("removes a cache that is too large, and keeps the image's cache and one that is small enough", async () => {
  const app = hello();
  const repository = formatCacheRepository(app);
  const small = await pushImage(registry, app, cacheTags.image, { repository, bytes: 2 * mebibyte });
  const large = await pushImage(registry, app, cacheTags.all, { repository, bytes: 2 * mebibyte });
  const pruned = await pruneApp(app, { needed: new Set(), history: [] }, options, () => true);
  assert.deepEqual([pruned.removed, pruned.bytes.images], [1, 0]);
  assert.ok(pruned.bytes.cache > 2 * mebibyte && pruned.bytes.cache < 3 * mebibyte);
  const within = await pushImage(registry, app, cacheTags.all, { repository, bytes: mebibyte / 2 });
  assert.equal((await pruneApp(app, { needed: new Set(), history: [] }, options, () => true)).removed, 0);
  await collectAll([app.uid]);
  const whole = await Promise.all([small, large, within].map((each) => isWhole(registry, app, each, repository)));
  assert.deepEqual(whole, [true, false, true]);
});

test('removes everything of a deleted app, and keeps everything of its namesake', async () => {
  const [gone, namesake] = [hello(), hello()];
  const base = randomBytes(mebibyte);
  const empty = await disk.usedBytes();
  await pushImage(registry, gone, formatImageTag(1), { bytes: 4 * mebibyte });
  await pushImage(registry, gone, cacheTags.all, { repository: formatCacheRepository(gone), bytes: 4 * mebibyte });
  const kept = await pushImage(registry, namesake, formatImageTag(1), { base });
  assert.equal(await removeAllManifests(gone, options), 2);
  assert.equal(await removeAllManifests(gone, options), 0);
  await collectAll([namesake.uid]);
  assert.ok(await isWhole(registry, namesake, kept));
  assert.ok((await disk.usedBytes()) - empty < 3 * mebibyte);
});

test("lets a build token remove nothing, and the operator's token push and read nothing", async () => {
  const app = hello();
  const image = await pushImage(registry, app, formatImageTag(1));
  const path = `http://${registry.proxy.host}/v2/apps/hello.${app.uid}`;
  const status = async (token: string, method: string, rest: string): Promise<number> => {
    const authorization = `Basic ${Buffer.from(`x:${token}`).toString('base64')}`;
    const answer = await fetch(`${path}${rest}`, { method, headers: { authorization } });
    await answer.body?.cancel();
    return answer.status;
  };
  assert.equal(await status(registry.proxy.tokenOf(app), 'DELETE', `/manifests/${image.digest}`), 405);
  const operator = createPruneToken(app, tokenSecret);
  assert.equal(await status(operator, 'POST', '/blobs/uploads/'), 405);
  assert.equal(await status(operator, 'GET', `/blobs/${image.blobs[0] ?? ''}`), 405);
  assert.equal(await status(createPruneToken(hello(), tokenSecret), 'DELETE', `/manifests/${image.digest}`), 403);
  assert.ok(await isWhole(registry, app, image));
});

test('pushes during garbage collection succeed, and none loses a layer', async () => {
  const app = hello();
  const garbage = await pushImage(registry, app, formatImageTag(1), { bytes: 4 * mebibyte });
  const served = await pushImage(registry, app, formatImageTag(2));
  assert.equal(await pruneHello(app, served, [garbage, served]), 0);
  options = { ...options, imageLimit: 0 };
  assert.equal(await pruneHello(app, served, [garbage, served]), 1);
  // What was there before counts as old, as after the time of grace.
  const old = new Date(Date.now() - 3_600_000);
  for (const blob of garbage.blobs) {
    const hex = blob.slice('sha256:'.length);
    const v2 = join(registry.root, 'docker/registry/v2');
    const link = join(v2, 'repositories', `apps/hello.${app.uid}`, '_layers/sha256', hex, 'link');
    for (const path of [join(v2, 'blobs/sha256', hex.slice(0, 2), hex, 'data'), link]) await utimes(path, old, old);
  }
  const since = Date.now() - 60_000;
  const ending = { isOver: false };
  const pushed: PushedImage[] = [];
  const pusher = async (lane: number): Promise<void> => {
    for (let round = 0; !ending.isOver; round += 1)
      pushed.push(await pushImage(registry, app, formatImageTag(100 * lane + round), { bytes: 100_000 }));
  };
  const pushers = [1, 2, 3].map(pusher);
  try {
    for (let round = 1; round <= 5; round += 1) {
      await expect.poll(() => pushed.length, { timeout: 30_000, interval: 5 }).toBeGreaterThan(3 * round);
      await collectAll([app.uid], since);
    }
  } finally {
    ending.isOver = true;
    await Promise.all(pushers);
  }
  assert.equal(await isWhole(registry, app, garbage), false, 'and the garbage is gone');
  for (const image of [served, ...pushed]) assert.ok(await isWhole(registry, app, image));
});

test('reports a full registry to the build and to the operator, and accepts pushes again when there is space', async () => {
  const app = hello();
  const images: PushedImage[] = [];
  for (let number = 1; number <= 5; number += 1)
    images.push(await pushImage(registry, app, formatImageTag(number), { bytes: 8 * mebibyte }));
  assert.equal(await spaceRefusal(), undefined);
  let refused = await pushBlob(registry, app, `apps/hello.${app.uid}`, randomBytes(32 * mebibyte));
  // A registry that closes the connection while it is written to may not be heard; BuildKit tries again, too.
  for (let tries = 0; refused.status === 502 && tries < 5; tries += 1) {
    await refused.body?.cancel();
    refused = await pushBlob(registry, app, `apps/hello.${app.uid}`, randomBytes(32 * mebibyte));
  }
  assert.equal(refused.status, 507, 'Insufficient Storage');
  assert.match(await refused.text(), /The registry has no space left/);
  assert.ok(await spaceRefusal());
  const served = images[4];
  assert.ok(served);
  assert.equal(await pruneHello(app, served, images), 2);
  await collectAll([app.uid]);
  images.push(await pushImage(registry, app, formatImageTag(6), { bytes: 8 * mebibyte }));
  assert.equal(await spaceRefusal(), undefined);
  assert.ok(await isWhole(registry, app, served));
});

test('keeps successive builds within the limit, on a disk that could not hold all of them', async () => {
  const app = hello();
  const images: PushedImage[] = [];
  const base = randomBytes(mebibyte);
  const after: number[] = [];
  for (let number = 1; number <= 20; number += 1) {
    images.push(await pushImage(registry, app, formatImageTag(number), { bytes: 4 * mebibyte, base }));
    const cached = { repository: formatCacheRepository(app), bytes: mebibyte / 2, base: randomBytes(mebibyte / 4) };
    await pushImage(registry, app, cacheTags.all, cached);
    const served = images.at(-1);
    assert.ok(served);
    await pruneHello(app, served, images);
    if (number % 5 !== 0) continue;
    await collectAll([app.uid]);
    after.push(await disk.usedBytes());
  }
  const whole = await Promise.all(images.slice(-4).map((image) => isWhole(registry, app, image)));
  assert.deepEqual(whole, [false, true, true, true]);
  assert.ok(Math.max(...after) - Math.min(...after) < mebibyte, `flat: ${after.join(', ')}`);
});
