// Which rejections are fair.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import type { Entry, RunEntry } from '../../../corpus/corpus.ts';
import { fairness, type Fairness, type Rejected } from '../../../corpus/run/fairness.ts';

const entry: Entry = {
  repo: 'a/b',
  commit: '0'.repeat(40),
  stack: 'any',
  year: 2026,
  hasDockerfile: false,
  expected: { strategy: 'python', start: ['main.py'] },
  needs: { keys: ['API_KEY'], gpu: true },
};
const evidence = { kind: 'host', what: 'x.example.org', line: 'Could not resolve host: x.example.org' } as const;

const judge = (of: RunEntry, text: string, found: Rejected['evidence'], hidden = false): Fairness =>
  fairness(of, { text, evidence: found, hidden });

test('expected, closed by the network, for want of a key or a GPU, or for a person to judge', () => {
  assert.equal(judge({ ...entry, expected: { refuse: 'a library' } }, '', evidence).fair, 'yes');
  const closed = judge(entry, 'API_KEY', evidence);
  assert.deepEqual([closed.fair, closed.why], ['network', 'host x.example.org: Could not resolve host: x.example.org']);
  assert.match(judge(entry, 'KeyError: API_KEY', undefined).why, /^asks for API_KEY/);
  assert.equal(judge(entry, 'no CUDA device', undefined).why, 'asks for a GPU');
  assert.deepEqual(judge(entry, 'SyntaxError', undefined), { fair: 'unjudged', why: '' });
});

test("a person's word on a run with the Dockerfiles says nothing of one without them", () => {
  const judged = { run: { verdict: 'wrong' as const, reason: 'ours' } };
  assert.equal(judge({ ...entry, judged }, '', evidence, true).fair, 'network');
});

test("a person's word goes before", () => {
  const judged = { run: { verdict: 'wrong' as const, reason: 'ours' } };
  assert.deepEqual(judge({ ...entry, judged }, '', evidence), { fair: 'no', why: 'ours' });
});

test('a rejection in the second corpus is for a person to judge, even if expected, unless the network stopped it', () => {
  const sealed: RunEntry = { repo: 'a/b', commit: '0'.repeat(40), stack: 'sealed', half: 'sealed' };
  const open: RunEntry = { ...entry, half: 'open', expected: { refuse: 'a library' }, also: [{ refuse: 'two apps' }] };
  for (const each of [sealed, open]) {
    assert.equal(judge(each, 'KeyError: API_KEY', undefined).fair, 'unjudged');
    assert.equal(judge(each, '', evidence).fair, 'network');
    assert.equal(judge({ ...each, judged: { run: { verdict: 'right', reason: 'a key' } } }, '', evidence).fair, 'yes');
  }
});
