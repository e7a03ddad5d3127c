// Which rejections are fair.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import type { Entry } from '../../../corpus/corpus.ts';
import { fairness } from '../../../corpus/run/fairness.ts';

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

test('expected, closed by the network, for want of a key or a GPU, or for a person to judge', () => {
  assert.equal(fairness({ ...entry, expected: { refuse: 'a library' } }, '', evidence).fair, 'yes');
  const closed = fairness(entry, 'API_KEY', evidence);
  assert.deepEqual([closed.fair, closed.why], ['network', 'host x.example.org: Could not resolve host: x.example.org']);
  assert.match(fairness(entry, 'KeyError: API_KEY', undefined).why, /^asks for API_KEY/);
  assert.equal(fairness(entry, 'no CUDA device', undefined).why, 'asks for a GPU');
  assert.deepEqual(fairness(entry, 'SyntaxError', undefined), { fair: 'unjudged', why: '' });
});

test("a person's word goes before", () => {
  const judged = { run: { verdict: 'wrong' as const, reason: 'ours' } };
  assert.deepEqual(fairness({ ...entry, judged }, '', evidence), { fair: 'no', why: 'ours' });
});
