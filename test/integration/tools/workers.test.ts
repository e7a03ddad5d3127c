// Worker processes keep what hostile input does to them to its own call.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { z } from 'zod';
import { Problem } from '../../../lib/problem.ts';
import { computeMemoryBudgetMb, programFolder } from '../../../api/tools/engine/workers/worker-process.ts';
import type { Workers } from '../../../api/tools/engine/workers/workers.ts';
import { transports } from '../../support/tools/worker-transports.ts';

const module = new URL('../../support/tools/worker-module.ts', import.meta.url);
const identity = z.object({ pid: z.number(), count: z.number() });
let callers = 0;
/** Another caller each time: what one caller may have at once is not what these tests are about. */
const somebody = (): { readonly owner: string } => ({ owner: `caller ${(callers += 1)}` });
const alive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};
const problem =
  (slug: string, words: RegExp) =>
  (error: unknown): boolean => {
    assert.ok(error instanceof Problem, String(error));
    assert.equal(error.type.slug, slug, error.message);
    assert.match(error.message, words);
    return true;
  };

describe.each(transports)('workers %s', (_name, create) => {
  describe('a pool of workers', () => {
    let workers: Workers;
    beforeAll(async () => {
      workers = await create({ size: 2, waiting: 3 });
    });
    afterAll(() => workers.close());
    const run = (
      deed: string,
      value?: unknown,
      { signal, ...more }: { timeoutMs?: number; signal?: AbortSignal; memoryMb?: number } = {},
    ): Promise<unknown> =>
      workers.run(
        { module, input: { deed, value }, memoryMb: 64, ...more },
        { ...somebody(), ...(signal && { signal }) },
      );

    test('returns what the module returns, including bytes and undefined', async () => {
      const value = {
        bytes: new Uint8Array([1, 2, 3]),
        map: new Map([['a', 1]]),
        text: '\u{1F600}',
        nothing: undefined,
      };
      assert.deepEqual(await run('echo', value), value);
    });

    test('keeps a process for the next task', async () => {
      const first = identity.parse(await run('process'));
      const second = identity.parse(await run('process'));
      assert.deepEqual(second, { pid: first.pid, count: first.count + 1 });
    });

    test('passes on a problem as that problem, and a fault as an error', async () => {
      await assert.rejects(
        run('refuse'),
        (error) =>
          problem('unprocessable', /^line 3 is wrong$/)(error) && error instanceof Problem && error.members.line === 3,
      );
      await assert.rejects(
        run('fail'),
        (error) => error instanceof Error && !(error instanceof Problem) && error.message === 'a fault of the module',
      );
      await assert.rejects(run('unclonable'), /could not be cloned/);
      const deep = JSON.parse(`${'['.repeat(100_000)}${']'.repeat(100_000)}`) as unknown;
      await assert.rejects(run('echo', deep), problem('unprocessable', /nested too deeply/));
      await assert.rejects(run('leave'), problem('tool-failed', /crashed/));
    });

    test('stops an endless loop in time, and continues with a new process', async () => {
      const before = identity.parse(await run('process'));
      await assert.rejects(run('loop', undefined, { timeoutMs: 300 }), problem('tool-limit', /longer than 0.3 s/));
      const next = identity.parse(await run('process'));
      assert.notEqual(next.pid, before.pid);
      assert.equal(alive(before.pid), false);
    });

    test('stops the work of a disconnected caller, running or waiting, with its reason', async () => {
      const controller = new AbortController();
      const reason = new Error('gone');
      const all = [
        run('loop', undefined, { signal: controller.signal }),
        run('loop', undefined, { signal: controller.signal }),
        run('process', undefined, { signal: controller.signal }),
      ];
      setTimeout(() => {
        controller.abort(reason);
      }, 200);
      for (const outcome of await Promise.allSettled(all))
        assert.equal(outcome.status === 'rejected' && outcome.reason, reason);
      await assert.rejects(run('process', undefined, { signal: AbortSignal.abort(reason) }), reason);
      identity.parse(await run('process'));
    });

    for (const deed of ['doubling', 'huge', 'split', 'buffers', 'wasm']) {
      test(`a memory bomb (${deed}) ends only its own call`, async () => {
        await assert.rejects(run(deed), problem('tool-limit', /64 MB of memory/));
        assert.equal(await run('echo', 'still here'), 'still here');
      });
    }

    test('rejects tasks when the queue is full, and runs waiting ones', async () => {
      // Over a network, those that come at once may arrive in any order.
      const afterAnother = async (deed: string, value: unknown): Promise<{ readonly done: Promise<unknown> }> => {
        const done = run(deed, value);
        await sleep(50);
        return { done };
      };
      const running = [await afterAnother('sleep', 1_000), await afterAnother('sleep', 1_000)];
      const waiting = [];
      for (const value of [1, 2, 3]) waiting.push(await afterAnother('echo', value));
      await assert.rejects(
        run('echo', 4),
        (error) =>
          problem('tool-busy', /2 calls are in progress and 3 are waiting/)(error) &&
          error instanceof Problem &&
          error.headers['retry-after'] === '5',
      );
      assert.deepEqual(await Promise.all(waiting.map(({ done }) => done)), [1, 2, 3]);
      await Promise.all(running.map(({ done }) => done));
    });

    test('sees no environment and only its own files, writes none and starts nothing', async () => {
      assert.deepEqual(await run('environment'), ['PWD']);
      for (const path of ['/etc/passwd', '/proc/self/environ', '/proc/1/environ'])
        await assert.rejects(run('read', path), /restricted/);
      // What `npm start` and `npm run up` keep beside the code: salts, ledgers, kubeconfigs.
      for (const path of ['.moorage/alone/caller-salt', '.git/config', 'cli/values.local.yaml'])
        await assert.rejects(run('read', join(programFolder, path)), /restricted/);
      await assert.rejects(run('write', '/tmp/worker-was-here'), /restricted/);
      await assert.rejects(run('write', new URL('x', import.meta.url).pathname), /restricted/);
      await assert.rejects(run('shell'), /restricted/);
    });
  });

  test('closing ends all processes, and rejects running and new tasks', async () => {
    const workers = await create({ size: 1 });
    const { pid } = identity.parse(await workers.run({ module, input: { deed: 'process' } }, somebody()));
    const calls = ['loop', 'process'].map((deed) => workers.run({ module, input: { deed } }, somebody()));
    const outcomes = Promise.all(calls.map((call) => assert.rejects(call, problem('tool-busy', /shutting down/))));
    await sleep(50);
    await workers.close();
    await outcomes;
    assert.equal(alive(pid), false);
    await assert.rejects(
      workers.run({ module, input: { deed: 'process' } }, somebody()),
      problem('tool-busy', /shutting down/),
    );
  });

  test('ends idle processes after a while, and those beyond the maximum', async () => {
    const workers = await create({ size: 2, idle: 1, idleMs: 100 });
    const pids = await Promise.all(
      [64, 65].map(
        async (memoryMb) =>
          identity.parse(await workers.run({ module, memoryMb, input: { deed: 'process' } }, somebody())).pid,
      ),
    );
    while (pids.some(alive)) await sleep(50);
    await workers.close();
  });

  test('keeps a slow starter while there are no calls', async () => {
    const workers = await create({ size: 2, idle: 1, idleMs: 100 });
    const run = async (memoryMb: number, warm: boolean): Promise<number> =>
      identity.parse(await workers.run({ module, memoryMb, warm, input: { deed: 'process' } }, somebody())).pid;
    const kept = await run(66, true);
    const other = await run(67, false);
    while (alive(other)) await sleep(50);
    await sleep(300);
    assert.equal(await run(66, true), kept);
    await workers.close();
  });

  test('kept processes take no capacity from the others', async () => {
    const workers = await create({ size: 2, idle: 1, idleMs: 60_000 });
    const run = async (memoryMb: number, warm: boolean): Promise<number> =>
      identity.parse(await workers.run({ module, memoryMb, warm, input: { deed: 'process' } }, somebody())).pid;
    const kept = [await run(66, true), await run(67, true), await run(68, true)];
    const other = await run(69, false);
    assert.equal(await run(69, false), other);
    assert.deepEqual([await run(66, true), await run(67, true), await run(68, true)], kept);
    await workers.close();
  });

  describe('memory that workers share', () => {
    const time = z.object({ from: z.number(), to: z.number() });

    test('runs tasks that may need more memory together than there is one after the other, and others in parallel', async () => {
      const workers = await create({ size: 2, budgetMb: 300 });
      const times = async (memoryMb: number, ms: number): Promise<z.output<typeof time>[]> => {
        const tasks = [1, 2].map(() =>
          workers.run({ module, input: { deed: 'times', value: ms }, memoryMb }, somebody()),
        );
        return (await Promise.all(tasks)).map((one) => time.parse(one)).sort((a, b) => a.from - b.from);
      };
      const [first, second] = await times(200, 100);
      assert.ok((first?.to ?? 0) <= (second?.from ?? 0));
      // The processes are there already now, so these begin together.
      await Promise.all(
        [1, 2].map(() => workers.run({ module, input: { deed: 'sleep', value: 300 }, memoryMb: 100 }, somebody())),
      );
      const [one, other] = await times(100, 2_000);
      assert.ok((other?.from ?? 0) < (one?.to ?? 0));
      // More than there is in all: alone.
      assert.equal(await workers.run({ module, input: { deed: 'echo', value: 1 }, memoryMb: 512 }, somebody()), 1);
      await workers.close();
    });

    test('ends a task that needs more than the total, and the next one works', async () => {
      const workers = await create({ size: 2, budgetMb: 250 });
      await assert.rejects(
        workers.run({ module, input: { deed: 'grow', value: 600 }, memoryMb: 128 }, somebody()),
        problem('tool-limit', /more than 128 MB of memory/),
      );
      await assert.rejects(
        workers.run({ module, input: { deed: 'grow', value: 600 }, memoryMb: 1_024 }, somebody()),
        problem('tool-busy', /more memory than this replica has/),
      );
      assert.equal(await workers.run({ module, input: { deed: 'echo', value: 1 }, memoryMb: 128 }, somebody()), 1);
      await workers.close();
    });
  });
});

test("computes the budget from the container's limit", () => {
  const mb = 1_048_576;
  const budgets = [0, 2 ** 63, 1_536 * mb, 512 * mb].map((constrained) => computeMemoryBudgetMb({ constrained }));
  assert.deepEqual(budgets, [1_024, 1_024, 1_024, 256]);
  assert.equal(computeMemoryBudgetMb({ constrained: 1_216 * mb, ownMb: 192 }), 1_024);
});
