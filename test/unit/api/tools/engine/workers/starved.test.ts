// A worker that starts slowly, or that gets no processor, is no fault of the call: it is refused to be tried again, and its
// own time is not used up.
import assert from 'node:assert/strict';
import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { test } from 'vitest';
import { TimeLimit } from '../../../../../../api/tools/engine/runner.ts';
import { createWorkers } from '../../../../../../api/tools/engine/workers/pool.ts';
import { measureCpuWaitMs } from '../../../../../../api/tools/engine/workers/worker-process.ts';

const module = new URL('../../../../../support/tools/worker-module.ts', import.meta.url);

test('starts the clock of a call when its worker has started', async () => {
  const workers = createWorkers();
  let pauses = 0;
  const clock = new TimeLimit(60_000, () => undefined);
  const waiting = <Value>(wait: Promise<Value>): Promise<Value> => {
    pauses += 1;
    return clock.waiting(wait);
  };
  await workers.run({ module, input: { deed: 'echo', value: 1 } }, { owner: 'a', waiting });
  clock.end();
  await workers.close();
  // Once for the queue, once for the start.
  assert.equal(pauses, 2);
});

test('measures how long a process waits for a processor', async () => {
  const spin = 'const end = Date.now() + 1500; while (Date.now() < end);';
  const before = measureCpuWaitMs(process.pid);
  const busy = Array.from({ length: 3 * availableParallelism() }, () => new Worker(spin, { eval: true }));
  const end = Date.now() + 1_000;
  while (Date.now() < end);
  const waited = measureCpuWaitMs(process.pid) - before;
  await Promise.all(busy.map((worker) => worker.terminate()));
  assert.ok(waited > 50, `${waited} ms`);
});

test('refuses a call whose worker starts later than the pool allows, to be tried again', async () => {
  const workers = createWorkers({ startMs: 1 });
  const call = workers.run({ module, input: { deed: 'echo', value: 1 } }, { owner: 'a' });
  await assert.rejects(call, { message: 'A worker did not start within 0.001 s. Try again in 5 seconds.' });
  await workers.close();
});
