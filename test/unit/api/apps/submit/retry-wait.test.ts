// The waits between retries of one app: a minute, doubling with each retry of the same commit, at most a day.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { retriableFrom } from '../../../../../api/apps/submit/retry-wait.ts';
import type { App } from '../../../../../api/apps/hosted-apps.ts';
import { annotations } from '../../../../../crds/names.ts';
import { sampleApp } from '../../../../support/api/sample.ts';

const end = Date.parse('2026-01-02T00:00:00Z');
const minute = 60_000;

function rejected(runs: number, commit = 'a'): App {
  const app = sampleApp('hello');
  const history = Array.from({ length: runs }, (_, index) => ({
    number: runs - index,
    job: `job-${index}`,
    commit: 'a',
    reason: 'rebuild requested',
    result: 'Rejected' as const,
    finishedAt: new Date(end - index * minute).toISOString(),
  }));
  const noted = { [annotations.rebuild]: new Date(end - 10 * minute).toISOString() };
  return {
    ...app,
    metadata: { ...app.metadata, ...(runs > 1 ? { annotations: noted } : {}) },
    status: { history, source: { commit } },
  };
}

test('retried for ever, the same commit is built ever more rarely', () => {
  const waits = [1, 2, 3, 4, 5, 12, 13, 20].map((runs) => (retriableFrom(rejected(runs), minute) - end) / minute);
  assert.deepEqual(waits, [-end / minute, 1, 2, 4, 8, 1024, 1440, 1440]);
});

test('a new commit starts afresh', () => {
  assert.equal(retriableFrom(rejected(8, 'b'), minute), end - 9 * minute);
});
