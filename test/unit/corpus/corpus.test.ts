// The corpus is what it says: enough repositories, each once, across stacks and years.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { readCorpus } from '../../corpus/corpus.ts';

test('at least 110 repositories, each once, over years and languages, with and without a Dockerfile', () => {
  const entries = readCorpus();
  assert.ok(entries.length >= 110, `${entries.length} repositories`);
  assert.equal(new Set(entries.map(({ repo }) => repo.toLowerCase())).size, entries.length);
  const years = new Set(entries.map(({ year }) => year));
  for (let year = 2018; year <= 2026; year += 1) assert.ok(years.has(year), `none of ${year}`);
  assert.ok(entries.filter(({ hasDockerfile }) => !hasDockerfile).length >= 40);
  const languages = new Set<string>(entries.map(({ expected }) => ('refuse' in expected ? 'none' : expected.strategy)));
  for (const each of [
    'python',
    'node',
    'static',
    'go',
    'rust',
    'java',
    'php',
    'ruby',
    'dotnet',
    'elixir',
    'deno',
    'bun',
  ])
    assert.ok(languages.has(each), `no ${each}`);
});

test('a part of a name chooses', () => {
  assert.deepEqual(
    readCorpus('USEMEMOS').map(({ repo }) => repo),
    ['usememos/memos'],
  );
  assert.deepEqual(readCorpus('no such name'), []);
});
