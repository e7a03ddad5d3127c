// Which images are in use, and what is removed of a registry's storage by that.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, test } from 'vitest';
import { extractNames, removeUnused } from '../../../../localnode/registry/storage.ts';

const hex = (digit: string): string => digit.repeat(64);
const digest = (digit: string): string => `sha256:${hex(digit)}`;
/** All that is written here is older. */
const future = Date.now() + 3_600_000;
const uid = '0a1b2c3d-0000-4000-8000-000000000000';

test('treats every digest and UID in the objects as in use', () => {
  const [one, two] = ['a', 'b'].map(digest);
  const text = JSON.stringify({
    items: [
      { spec: { image: `r:5000/apps/x@${one ?? ''}` } },
      { status: { history: [{ image: two }] } },
      { note: 'sha256:short', metadata: { uid } },
    ],
  });
  assert.deepEqual([...extractNames(text)], [one, two, uid]);
});

const root = await mkdtemp(join(tmpdir(), 'moorage-registry-'));
afterAll(() => rm(root, { recursive: true, force: true }));
const storage = join(root, 'docker', 'registry', 'v2');
const revision = (repository: string, digit: string): string =>
  join(storage, 'repositories', repository, '_manifests', 'revisions', 'sha256', hex(digit));
const tag = (repository: string, name: string): string =>
  join(storage, 'repositories', repository, '_manifests', 'tags', name, 'current', 'link');

async function put(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, text);
}

test("keeps images that a tag or an object refers to, with an index's manifests, and removes the rest", async () => {
  await put(join(revision('library/x', '1'), 'link'), digest('1'));
  await put(join(revision('library/x', '2'), 'link'), digest('2'));
  await put(join(revision('library/x', '3'), 'link'), digest('3'));
  await put(join(revision('library/x', '4'), 'link'), digest('4'));
  await put(tag('library/x', 'latest'), digest('1'));
  const index = JSON.stringify({ manifests: [{ digest: digest('3') }] });
  await put(join(storage, 'blobs', 'sha256', hex('2').slice(0, 2), hex('2'), 'data'), index);
  await put(join(revision('moorage/moorage', '5'), 'link'), digest('5'));
  await put(tag('moorage/moorage', 'old'), digest('5'));
  assert.equal(await removeUnused(root, new Set([digest('2')]), future), 2);
  assert.deepEqual(
    ['1', '2', '3', '4'].map((digit) => existsSync(revision('library/x', digit))),
    [true, true, true, false],
  );
  assert.equal(existsSync(tag('moorage/moorage', 'old')), false);
});

test('removes images and build cache of a deleted app, even if another app has its name', async () => {
  const other = uid.replace('0a', '0b');
  const caches = [
    `cache/hello.${uid}`,
    `cache/hello.${other}`,
    'cache/hello',
    `apps/hello.${uid}`,
    `apps/hello.${other}`,
  ];
  for (const [index, cache] of caches.entries()) {
    await put(join(revision(cache, String(index)), 'link'), digest(String(index)));
    await put(tag(cache, 'latest'), digest(String(index)));
  }
  await removeUnused(root, new Set([digest('7'), uid]), future);
  assert.deepEqual(
    caches.map((cache) => existsSync(tag(cache, 'latest'))),
    [true, false, false, true, false],
  );
});

test('keeps recently written data, and lists its blobs in a manifest', async () => {
  const fresh = await mkdtemp(join(tmpdir(), 'moorage-registry-'));
  const at = join(fresh, 'docker', 'registry', 'v2');
  const repository = `apps/hello.${uid}`;
  const kept = [
    join(at, 'repositories', repository, '_manifests', 'revisions', 'sha256', hex('1'), 'link'),
    join(at, 'repositories', repository, '_manifests', 'tags', 'build-1', 'current', 'link'),
    join(at, 'repositories', repository, '_uploads', 'an-id', 'data'),
  ];
  for (const path of kept) await put(path, digest('1'));
  const blob = (digit: string): string => join(at, 'blobs', 'sha256', hex(digit).slice(0, 2), hex(digit), 'data');
  await put(blob('8'), 'pushed a moment ago');
  await put(blob('9'), 'pushed long ago');
  await put(join(at, 'repositories', repository, '_layers', 'sha256', hex('a'), 'link'), digest('a'));
  const old = new Date(Date.now() - 3_600_000);
  await utimes(blob('9'), old, old);
  const marks = async (): Promise<string[]> => {
    const folder = join(at, 'repositories', 'moorage', 'recent-uploads', '_manifests', 'revisions', 'sha256');
    const names = await readdir(folder).catch(() => []);
    const texts = await Promise.all(
      names.map((name) => readFile(join(at, 'blobs', 'sha256', name.slice(0, 2), name, 'data'), 'utf8')),
    );
    return texts.flatMap((text) => text.match(/sha256:[0-9a-f]{64}/g) ?? []);
  };
  assert.equal(await removeUnused(fresh, new Set(), Date.now() - 60_000), 0);
  assert.ok(kept.every((path) => existsSync(path)));
  assert.deepEqual(await marks(), [digest('8'), digest('a')]);
  // Later it is as old as all else, and its app is gone.
  assert.equal(await removeUnused(fresh, new Set(), future), 1);
  assert.ok(kept.every((path) => !existsSync(path)));
  assert.deepEqual(await marks(), []);
  await rm(fresh, { recursive: true, force: true });
});
