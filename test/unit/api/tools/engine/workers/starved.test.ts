// A worker that starts slowly, or that gets no processor, is no fault of the call: it is refused to be tried again, and its
// own time is not used up.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { test } from 'vitest';
import { TimeLimit } from '../../../../../../api/tools/engine/runner.ts';
import { createWorkers } from '../../../../../../api/tools/engine/workers/pool.ts';
import { measureCpuWaitMs } from '../../../../../../api/tools/engine/workers/worker-process.ts';
import { patience, retryWhileBusy } from '../../../../../support/tools/call.ts';

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

test('does not count the time in which a task waits for a processor', async () => {
  const workers = createWorkers(patience);
  await workers.run({ module, input: { deed: 'echo' }, timeoutMs: 1_000 }, { owner: 'a' });
  // With the priority of workers: the task gets a third of a processor, or less.
  const spin = 'const end = Date.now() + 20_000; while (Date.now() < end);';
  const others = Array.from({ length: 2 * availableParallelism() }, () =>
    spawn('nice', ['-n', '5', process.execPath, '-e', spin], { stdio: 'ignore' }),
  );
  try {
    const task = { module, input: { deed: 'work', value: 700 }, timeoutMs: 1_000 };
    assert.equal(await retryWhileBusy(() => workers.run(task, { owner: 'a' })), 'done');
  } finally {
    for (const other of others) other.kill('SIGKILL');
    await workers.close();
  }
});

test('ends a task that only waits when its time is over', async () => {
  const workers = createWorkers(patience);
  const call = workers.run({ module, input: { deed: 'sleep', value: 60_000 }, timeoutMs: 300 }, { owner: 'a' });
  await assert.rejects(call, { message: 'The call took longer than 0.3 s and was stopped.' });
  await workers.close();
});

test('refuses a call whose worker starts later than the pool allows, to be tried again', async () => {
  const workers = createWorkers({ startMs: 1 });
  const call = workers.run({ module, input: { deed: 'echo', value: 1 } }, { owner: 'a' });
  await assert.rejects(call, { message: 'A worker did not start within 0.001 s. Try again in 5 seconds.' });
  await workers.close();
});
