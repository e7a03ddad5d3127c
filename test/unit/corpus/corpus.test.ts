// The corpora are what they say: the first has enough repositories across stacks and years, the second is the frozen list.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'vitest';
import {
  readAllRepositories,
  readCorpus,
  readOpenHalf,
  readSealedHalf,
  readSecondCorpus,
} from '../../corpus/corpus.ts';

const page = join(import.meta.dirname, '../../../docs/measured/corpus-2.md');

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

test('the second corpus is the frozen list: 60 places, odd ones open, even ones sealed, an owner once', () => {
  const listed = [
    ...readFileSync(page, 'utf8').matchAll(/^\| (\d+) +\| (open|sealed) +\| (\S+) +\| ([0-9a-f]{12}) /gm),
  ].map(([, place, half, repo, commit]) => `${place} ${half} ${repo} ${commit}`);
  const entries = readSecondCorpus();
  assert.deepEqual(
    entries.map(({ place, half, repo, commit }) => `${place} ${half} ${repo} ${commit.slice(0, 12)}`),
    listed,
  );
  assert.deepEqual(
    entries.map(({ place }) => place),
    Array.from({ length: 60 }, (_, index) => index + 1),
  );
  for (const { place, half } of entries) assert.equal(half, place % 2 === 1 ? 'open' : 'sealed');
  assert.equal(new Set(entries.map(({ repo }) => repo.split('/')[0]?.toLowerCase())).size, 60);
  const first = new Set(readCorpus().map(({ repo }) => repo.toLowerCase()));
  assert.deepEqual(
    entries.filter(({ repo }) => first.has(repo.toLowerCase())),
    [],
  );
});

test('a half is selected, and names select within it', () => {
  assert.equal(readOpenHalf().length, 30);
  assert.equal(readSealedHalf().length, 30);
  assert.deepEqual(
    readOpenHalf('NUXT-A11Y').map(({ repo }) => repo),
    ['MarieClaireBalabanian/nuxt-a11y'],
  );
  assert.deepEqual(readSealedHalf('nuxt-a11y'), []);
});

test('judgements are read from both corpora', () => {
  const names = readAllRepositories().map(({ repo }) => repo);
  assert.deepEqual(
    names,
    [...readCorpus(), ...readSecondCorpus()].map(({ repo }) => repo),
  );
  assert.ok(names.includes('usememos/memos') && names.includes('Dwikocean/Streamlit-101'));
});

test('of a sealed repository only what the list says and judgements are known', () => {
  const known = ['half', 'place', 'repo', 'commit', 'files', 'bytes', 'judged', 'stack'];
  for (const entry of readSealedHalf()) {
    assert.deepEqual(
      Object.keys(entry).filter((key) => !known.includes(key)),
      [],
    );
    assert.equal(entry.stack, 'sealed');
  }
});
