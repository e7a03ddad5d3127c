// The pages of docs/reference are the ones that the code gives, and they name what is there.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { existing, readPage, renderReference } from '../../../docs/generate.ts';

const pages = await renderReference();

for (const [file, text] of pages) {
  test(`docs/reference/${file} is what npm run generate writes`, async () => {
    assert.equal(await readPage(file), text, 'stale: run `npm run generate` and commit what it writes');
  });
}

test('docs/reference has no page that nothing generates', async () => {
  assert.deepEqual(await existing(), [...pages.keys()].sort());
});

test('every page has tables or headings, and no hole of the generator', () => {
  for (const [file, text] of pages) {
    assert.match(text, /^(\| --- |##)/m, file);
    assert.doesNotMatch(text, /\| undefined |\[object Object\]|\bNaN\b/, file);
  }
});

test('the same thing twice is the same text, with nothing of this machine in it', () => {
  for (const [file, text] of pages) assert.ok(!text.includes(process.cwd()), `${file} names a folder of this machine`);
});
