// One caller who brings many or endless tasks waits behind himself, and nobody else does.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, test } from 'vitest';
import { createValidateJsonTool } from '../../../api/tools/builtin/validate-json/validate-json.ts';
import type { PoolOptions } from '../../../api/tools/engine/workers/pool.ts';
import type { Workers } from '../../../api/tools/engine/workers/workers.ts';
import { Problem } from '../../../lib/problem.ts';
import { call, isProblem, createServices } from '../../support/tools/call.ts';
import { transports } from '../../support/tools/worker-transports.ts';

const module = new URL('../../support/tools/worker-module.ts', import.meta.url);
const pools: Workers[] = [];
afterEach(() => Promise.all(pools.splice(0).map((pool) => pool.close())));

const outcomeOf = (error: unknown): unknown => error;

describe.each(transports)('workers %s', (_name, create) => {
  async function poolOf(options: PoolOptions = {}): Promise<{
    readonly workers: Workers;
    readonly run: (owner: string, deed: string, value?: unknown, timeoutMs?: number) => Promise<unknown>;
  }> {
    const workers = await create(options);
    pools.push(workers);
    return {
      workers,
      run: (owner, deed, value, timeoutMs = 10_000) =>
        workers.run({ module, input: { deed, value }, memoryMb: 64, timeoutMs }, { owner }),
    };
  }

  describe('attack: one caller floods the workers', () => {
    test('28 endless tasks of one caller leave a worker free for others', async () => {
      const { run } = await poolOf();
      const flood = Array.from({ length: 28 }, () => run('attacker', 'loop', undefined, 60_000).catch(outcomeOf));
      await sleep(300);
      for (let count = 0; count < 3; count += 1) {
        const since = performance.now();
        assert.equal(await run('somebody', 'echo', 'here'), 'here');
        assert.ok(performance.now() - since < 30_000, 'waits for none of the 28');
      }
      pools.splice(0).map((pool) => void pool.close());
      await Promise.all(flood);
    });

    test('with a single worker, callers take turns instead of waiting in one queue', async () => {
      const { run } = await poolOf({ size: 1 });
      const order: string[] = [];
      const named = (owner: string): Promise<unknown> => run(owner, 'sleep', 20).then(() => order.push(owner));
      await Promise.all([...Array.from({ length: 6 }, () => named('attacker')), named('one'), named('other')]);
      assert.deepEqual(order.slice(0, 4).sort(), ['attacker', 'attacker', 'one', 'other']);
      assert.equal(order.length, 8);
    });

    test("a full queue rejects the newest task of the caller with the most tasks, not a new caller's", async () => {
      const { run } = await poolOf({ size: 1, waiting: 4 });
      const running = run('attacker', 'sleep', 300);
      const flood = Array.from({ length: 4 }, (_, at) => run('attacker', 'echo', at).catch(outcomeOf));
      const newcomer = run('somebody', 'echo', 'here');
      assert.equal(await newcomer, 'here');
      const refused = await flood[3];
      assert.ok(refused instanceof Problem && refused.type.slug === 'tool-busy', String(refused));
      assert.deepEqual(await Promise.all(flood.slice(0, 3)), [0, 1, 2]);
      await running;
    });

    test('no task waits forever: one that finds no worker in time is rejected as busy', async () => {
      const { run } = await poolOf({ size: 1, maxWaitMs: 100 });
      const running = run('attacker', 'sleep', 1_000);
      await assert.rejects(run('somebody', 'echo'), isProblem('tool-busy', /No worker became free within 0.1 s/));
      await running;
    });
  });

  test('starts the clock of a task when its worker is ready, not while it waits', async () => {
    const { run } = await poolOf({ size: 1 });
    const running = run('one', 'sleep', 800);
    assert.equal(await run('other', 'echo', 'in time', 300), 'in time');
    await running;
  });

  describe('attack: validate_json with a pattern that never ends', () => {
    test('28 calls with ^(a+)+$ are answered, and code runs in the meantime', async () => {
      const { workers, run } = await poolOf();
      const tool = createValidateJsonTool(createServices({ workers }));
      const flood = Array.from({ length: 28 }, () =>
        call(tool, { schema: { pattern: '^(a+)+$' }, data: `"${'a'.repeat(40)}!"` }, { owner: 'attacker' }),
      );
      assert.equal(await run('somebody', 'echo', 'here'), 'here');
      // One that does not end is stopped after a second, and has no result.
      for (const { result } of await Promise.all(flood)) assert.equal(result.valid, false);
    });

    test('stops a slow schema after a second, because the call is free', async () => {
      const { workers } = await poolOf();
      const tool = createValidateJsonTool(createServices({ workers }));
      const items = Array.from({ length: 40_000 }, (_, at) => ({ at }));
      await assert.rejects(
        call(tool, { schema: { uniqueItems: true }, data: items }),
        isProblem('tool-limit', /longer than 1 s/),
      );
    });
  });
});
