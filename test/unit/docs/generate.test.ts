// The pages of docs/reference are the ones that the code gives, and they name what is there.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { listReferencePages, readDoc, renderAll } from '../../../docs/generate.ts';

const pages = await renderAll();

for (const [file, text] of pages) {
  test(`docs/${file} is what npm run generate writes`, async () => {
    assert.equal(await readDoc(file), text, 'stale: run `npm run generate` and commit what it writes');
  });
}

test('docs/reference has no page that nothing generates', async () => {
  const generated = [...pages.keys()].filter((file) => file.startsWith('reference/'));
  assert.deepEqual(await listReferencePages(), generated.map((file) => file.slice('reference/'.length)).sort());
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
