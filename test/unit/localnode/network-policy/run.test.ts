// Work is done again after each change, one run at a time, and none is lost.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { createTaskRunner } from '../../../../localnode/network-policy/run.ts';

const unexpected = (error: unknown): void => {
  throw error;
};
const never = new AbortController().signal;

test('combines changes in quick succession into one run, and runs again after a change during a run', async () => {
  let runs = 0;
  let at = 0;
  const latest = createTaskRunner(
    async () => {
      assert.equal(++at, 1, 'two runs at once');
      if (++runs === 1) latest.request();
      await new Promise((resolve) => setImmediate(resolve));
      at--;
    },
    { pauseMs: 0, retryMs: 0, onError: unexpected },
    never,
  );
  for (let asked = 0; asked < 5; asked++) latest.request();
  await latest.waitUntilIdle();
  assert.equal(runs, 2);
  latest.request();
  await latest.waitUntilIdle();
  assert.equal(runs, 3);
});

test('reports and repeats a failed run', async () => {
  const errors: unknown[] = [];
  let runs = 0;
  const latest = createTaskRunner(
    async () => (++runs < 3 ? Promise.reject(new Error(`run ${runs}`)) : Promise.resolve()),
    { pauseMs: 0, retryMs: 0, onError: (error) => errors.push(error) },
    never,
  );
  latest.request();
  await latest.waitUntilIdle();
  assert.deepEqual([runs, errors.map(String)], [3, ['Error: run 1', 'Error: run 2']]);
});

test('runs nothing after the abort', async () => {
  const end = new AbortController();
  const latest = createTaskRunner(
    async () => Promise.reject(new Error('ran')),
    { pauseMs: 0, retryMs: 0, onError: unexpected },
    end.signal,
  );
  end.abort();
  latest.request();
  await latest.waitUntilIdle();
});
