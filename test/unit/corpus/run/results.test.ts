// A stopped run continues: what was found at this version is kept, a line that was cut off is not.
import assert from 'node:assert/strict';
import { appendFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished, test } from 'vitest';
import { appName } from '../../../corpus/run/one.ts';
import { runTable } from '../../../corpus/run/report.ts';
import { openResults, type Result } from '../../../corpus/run/results.ts';

const result: Result = {
  repo: 'a/b',
  commit: '1'.repeat(40),
  version: 'v1',
  stack: 'Python | Flask',
  verdict: 'live and works',
  why: '',
  seconds: 12.3,
  imageBytes: 123_400_000,
  at: '2026-01-01T00:00:00.000Z',
};

test('a result is found again, and the newest counts', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'moorage-results-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const path = join(folder, 'deep', 'run.jsonl');
  await openResults(path).add(result);
  await appendFile(path, '{"repo":"a/c","com');
  const again = openResults(path);
  assert.deepEqual(again.find('a/b', result.commit), result);
  assert.equal(again.find('a/b', '2'.repeat(40)), undefined);
  const newer = { ...result, version: 'v2', seconds: 1 };
  await again.add(newer);
  assert.deepEqual(openResults(path).all, [newer]);
});

test('the table has the figures, and a row a repository', () => {
  const rejected: Result = { ...result, repo: 'a/c', verdict: 'rejected', fair: 'network', why: 'host x\nline' };
  const faulty: Result = { ...result, repo: 'a/d', verdict: 'falsely live', why: 'the page is empty' };
  const text = runTable([rejected, result, faulty]);
  assert.match(
    text,
    /The network did not stop 2: 1 \(50 %\) of these are live and work\. Without those that were fairly rejected, it is 1 \(50 %\) of 2\./,
  );
  assert.match(text, /\| a\/b \| Python \\\| Flask \| live and works \| {2}\| {2}\| 12\.3 \| 123 MB \|/);
  assert.match(text, /\| a\/c \|.*\| rejected \| network \| host x line \|/);
});

test('the table says how many repositories were submitted with an added licence file', () => {
  assert.doesNotMatch(runTable([result]), /licence file/);
  const text = runTable([
    { ...result, licensed: true },
    { ...result, repo: 'a/c' },
  ]);
  assert.match(text, /^Submitted with a licence file that the repository does not have: 1\.$/m);
});

test('two repositories of one name are two apps, with names that a cluster takes', () => {
  assert.notEqual(appName('a/chat'), appName('b/chat'));
  for (const repo of ['a/Chat.UI_2', `a/${'x'.repeat(90)}`, 'a/next.js'])
    assert.match(appName(repo), /^[a-z0-9]([a-z0-9-]{0,48}[a-z0-9])?$/);
});
