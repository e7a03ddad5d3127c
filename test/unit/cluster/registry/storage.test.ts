// Which images are in use, and what is removed of a registry's storage by that.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, test } from 'vitest';
import { namesIn, removeUnused } from '../../../../cluster/registry/storage.ts';

const hex = (digit: string): string => digit.repeat(64);
const digest = (digit: string): string => `sha256:${hex(digit)}`;
const uid = '0a1b2c3d-0000-4000-8000-000000000000';

test('every digest and UID anywhere in the objects counts as in use', () => {
  const [one, two] = ['a', 'b'].map(digest);
  const text = JSON.stringify({
    items: [
      { spec: { image: `r:5000/apps/x@${one ?? ''}` } },
      { status: { history: [{ image: two }] } },
      { note: 'sha256:short', metadata: { uid } },
    ],
  });
  assert.deepEqual([...namesIn(text)], [one, two, uid]);
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

test('what a tag or an object names stays, with the manifests of an index; the rest goes', async () => {
  await put(join(revision('apps/x', '1'), 'link'), digest('1'));
  await put(join(revision('apps/x', '2'), 'link'), digest('2'));
  await put(join(revision('apps/x', '3'), 'link'), digest('3'));
  await put(join(revision('apps/x', '4'), 'link'), digest('4'));
  await put(tag('apps/x', 'latest'), digest('1'));
  const index = JSON.stringify({ manifests: [{ digest: digest('3') }] });
  await put(join(storage, 'blobs', 'sha256', hex('2').slice(0, 2), hex('2'), 'data'), index);
  await put(join(revision('moorage/moorage', '5'), 'link'), digest('5'));
  await put(tag('moorage/moorage', 'old'), digest('5'));
  assert.equal(await removeUnused(root, new Set([digest('2')])), 2);
  assert.deepEqual(
    ['1', '2', '3', '4'].map((digit) => existsSync(revision('apps/x', digit))),
    [true, true, true, false],
  );
  assert.equal(existsSync(tag('moorage/moorage', 'old')), false);
});

test('the build cache of an app that is gone goes, also when another app has its name', async () => {
  const caches = [`cache/hello.${uid}`, `cache/hello.${uid.replace('0a', '0b')}`, 'cache/hello'];
  for (const [index, cache] of caches.entries()) {
    await put(join(revision(cache, String(index)), 'link'), digest(String(index)));
    await put(tag(cache, 'latest'), digest(String(index)));
  }
  await put(join(revision('apps/hello', '7'), 'link'), digest('7'));
  await removeUnused(root, new Set([digest('7'), uid]));
  assert.deepEqual(
    caches.map((cache) => existsSync(tag(cache, 'latest'))),
    [true, false, false],
  );
});
