// Each set of repositories has its own pages, so that a half of the second corpus does not overwrite the first one's.
import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished, test } from 'vitest';
import { readSealedHalf, type SetName } from '../../corpus/corpus.ts';
import { publish } from '../../corpus/publish.ts';
import { openResults } from '../../corpus/run/results.ts';

async function createFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'moorage-publish-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

test.each<[SetName, string[]]>([
  ['first', ['corpus-plans.md', 'corpus-run.md']],
  ['open', ['corpus-2-open-plans.md', 'corpus-2-open-run.md']],
  ['sealed', ['corpus-2-sealed-plans.md', 'corpus-2-sealed-run.md']],
])('results of the set "%s" go to its own pages', async (set, pages) => {
  const out = await createFolder();
  const docs = await createFolder();
  await writeFile(join(out, 'plan.md'), '# Plans\n');
  const { repo, commit } = readSealedHalf()[0] ?? assert.fail('no sealed repository');
  const found = { repo, commit, version: 'v1', stack: 'sealed', verdict: 'rejected', fair: 'unjudged' } as const;
  await openResults(join(out, 'run.jsonl')).add({ ...found, why: 'build/failed', at: '2026-01-01T00:00:00.000Z' });
  await publish(out, docs, set);
  assert.deepEqual((await readdir(docs)).toSorted(), pages);
  assert.match(await readFile(join(docs, pages[1] ?? ''), 'utf8'), new RegExp(`\\| ${repo} \\| sealed \\| rejected`));
});

test('a folder without results is refused with the command that makes them', async () => {
  const out = await createFolder();
  await assert.rejects(publish(out, await createFolder(), 'sealed'), /run npm run corpus -- run --set sealed --out /);
});
