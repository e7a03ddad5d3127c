// What an image takes in a registry.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { computeImageBytes } from '../../../../localnode/registry/storage.ts';

const image = { schemaVersion: 2, config: { size: 900 }, layers: [{ size: 30_000 }, { size: 12_000 }] };

test("adds up the sizes of an image's layers", async () => {
  assert.equal(await computeImageBytes('1', async () => Promise.resolve(JSON.stringify(image))), 42_000);
});

test('counts the image of an index, and not its attestations', async () => {
  const list = {
    schemaVersion: 2,
    manifests: [
      { digest: 'sha256:a', platform: { os: 'unknown', architecture: 'unknown' } },
      { digest: 'sha256:b', platform: { os: 'linux', architecture: 'amd64' } },
    ],
  };
  const asked: string[] = [];
  const read = async (reference: string): Promise<string> => {
    asked.push(reference);
    return Promise.resolve(JSON.stringify(reference === '1' ? list : image));
  };
  assert.equal(await computeImageBytes('1', read), 42_000);
  assert.deepEqual(asked, ['1', 'sha256:b']);
});
