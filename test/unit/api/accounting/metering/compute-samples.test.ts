// Compute of apps, counted from samples: equal to an independent computation, once, shared out over hours.
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, test } from 'vitest';
import { z } from 'zod';
import { addSamples } from '../../../../../api/accounting/metering/compute-receiver.ts';
import { type Database, openDatabase } from '../../../../../api/billing/database/database.ts';
import type { ComputeSample } from '../../../../../crds/reports.ts';
import { migratedDatabase } from '../../../../support/ledger/snapshot.ts';

let database: Database;
beforeAll(async () => {
  database = await openDatabase(migratedDatabase);
});
afterAll(() => database.close());
beforeEach(async () => {
  await database.transaction((on) => on.script('truncate metering.container, metering.compute_hour'));
});

const noon = Date.UTC(2026, 5, 1, 12);
const iso = (seconds: number): string => new Date(noon + seconds * 1000).toISOString();
const now = new Date(noon + 86_400_000);
/** Times in seconds after noon, CPU in seconds. */
const sample = (container: string, started: number, at: number, cpu: number, memory = 0): ComputeSample => ({
  container,
  app: container.split('/')[0] ?? '',
  started_at: iso(started),
  at: iso(at),
  cpu_us: Math.round(cpu * 1e6),
  memory_bytes: memory,
});
const add = (...samples: ComputeSample[]) => addSamples(database, samples, now);
const hours = {
  name: 'test-compute',
  text: `select app, to_char(hour at time zone 'utc', 'DD HH24') as hour, cpu_seconds::float as cpu, memory_byte_seconds::float as memory
    from metering.compute_hour order by app, hour`,
  row: z.object({ app: z.string(), hour: z.string(), cpu: z.number(), memory: z.number() }),
};
const read = (): Promise<z.output<typeof hours.row>[]> => database.query(hours, []);

test('CPU is what the counter rose by, memory the area under the line; a container begins with nothing', async () => {
  await add(sample('a/1', 0, 10, 4, 100));
  assert.deepEqual(await read(), [{ app: 'a', hour: '01 12', cpu: 4, memory: 500 }]);
  await add(sample('a/1', 0, 40, 7, 200));
  assert.deepEqual(await read(), [{ app: 'a', hour: '01 12', cpu: 7, memory: 5_000 }]);
});

test('a sample that is sent twice, or is older than the last, counts nothing', async () => {
  const samples = [sample('a/1', 0, 10, 4, 100), sample('a/1', 0, 40, 7, 200), sample('b/1', 0, 40, 1, 0)];
  const [first, second] = [await add(...samples), await add(...samples, ...samples)];
  assert.deepEqual([first.counted, first.ignored, second.counted, second.ignored], [3, 0, 0, 6]);
  await add(sample('a/1', 0, 20, 6, 900));
  assert.deepEqual(await read(), [
    { app: 'a', hour: '01 12', cpu: 7, memory: 5_000 },
    { app: 'b', hour: '01 12', cpu: 1, memory: 0 },
  ]);
});

test('a container that is started anew counts from 0, and a counter that goes back counts nothing', async () => {
  await add(sample('a/1', 0, 60, 30), sample('a/2', 70, 90, 2), sample('a/2', 70, 120, 1), sample('a/2', 70, 150, 3));
  assert.deepEqual(await read(), [{ app: 'a', hour: '01 12', cpu: 33, memory: 0 }]);
});

test('what spans hours is shared out by time, and adds up to the whole', async () => {
  await add(sample('a/1', 3_000, 3_500, 0, 1_000), sample('a/1', 3_000, 3_700, 0.000_001, 1_000));
  // 100 s before one o'clock, after the first five minutes, and 100 s after it; a millionth of a second cannot be split, and is not lost.
  assert.deepEqual(await read(), [
    { app: 'a', hour: '01 12', cpu: 0, memory: 250_000 },
    { app: 'a', hour: '01 13', cpu: 0.000_001, memory: 100_000 },
  ]);
});

test('over a long time without samples CPU counts by the counter, memory for five minutes', async () => {
  await add(sample('a/1', 0, 100, 10, 1_000));
  await add(sample('a/1', 0, 100 + 3 * 3_600, 310, 1_000));
  const found = await read();
  assert.equal(
    found.reduce((sum, { cpu }) => sum + cpu, 0),
    310,
  );
  assert.deepEqual(
    found.map(({ hour, memory }) => [hour, memory]),
    [
      ['01 12', 50_000],
      ['01 13', 0],
      ['01 14', 200_000],
      ['01 15', 100_000],
    ],
  );
});

test('an app that sleeps has no samples and counts 0; awake again it has a new container', async () => {
  await add(sample('a/1', 0, 30, 5, 100));
  const before = await read();
  await add(sample('other/1', 0, 30, 5, 100), sample('other/1', 0, 7_000, 6, 100));
  assert.deepEqual(
    (await read()).filter(({ app }) => app === 'a'),
    before,
  );
  await add(sample('a/2', 7_210, 7_220, 1, 0));
  assert.deepEqual(
    (await read()).filter(({ app }) => app === 'a'),
    [...before, { app: 'a', hour: '01 14', cpu: 1, memory: 0 }],
  );
});

test('a sample ahead of the clock is refused, and does not hide the next', async () => {
  const { refused } = await add(sample('a/1', 0, 86_400 + 301, 1), sample('a/1', 0, 86_400, 2));
  assert.equal(refused, 1);
  assert.equal((await add(sample('a/1', 0, 86_430, 3))).counted, 1);
});

test('a container that may have been counted and forgotten counts from its first sample on', async () => {
  const month = 31 * 86_400;
  await add(sample('a/1', -month, 0, 1_000, 50));
  assert.deepEqual(await read(), []);
  await add(sample('a/1', -month, 10, 1_001, 50));
  assert.deepEqual(await read(), [{ app: 'a', hour: '01 12', cpu: 1, memory: 500 }]);
});

/** The same by another way: second after second. */
function bySeconds(samples: readonly ComputeSample[]): number {
  const last = new Map<string, ComputeSample>();
  let total = 0;
  for (const one of samples.toSorted((a, b) => a.at.localeCompare(b.at))) {
    const before = last.get(one.container);
    if (before?.at === one.at) continue;
    total += Math.max(0, one.cpu_us - (before?.cpu_us ?? 0));
    last.set(one.container, { ...one, cpu_us: Math.max(one.cpu_us, before?.cpu_us ?? 0) });
  }
  return total;
}

test('whatever is sent in whatever batches and however often, each microsecond counts once', async () => {
  const looks = fc.array(fc.tuple(fc.integer({ min: 1, max: 5_000 }), fc.integer({ min: 0, max: 9_000_000 })), {
    minLength: 1,
    maxLength: 12,
  });
  await fc.assert(
    fc.asyncProperty(
      fc.array(looks, { minLength: 1, maxLength: 3 }),
      fc.array(fc.nat(4), { minLength: 5, maxLength: 5 }),
      async (all, sizes) => {
        await database.transaction((on) => on.script('truncate metering.container, metering.compute_hour'));
        const samples = all.flatMap((each, index) => {
          let [at, cpu] = [0, 0];
          return each.map(([pause, rise]) => sample(`a/${index}`, 0, (at += pause), (cpu += rise) / 1e6, 7));
        });
        const inOrder = samples.toSorted((a, b) => a.at.localeCompare(b.at));
        for (let sent = 0; sent < inOrder.length;) {
          const size = 1 + (sizes[sent % sizes.length] ?? 0);
          await add(...inOrder.slice(Math.max(0, sent - 2), sent + size));
          sent += size;
        }
        const total = (await read()).reduce((sum, { cpu }) => sum + Math.round(cpu * 1e6), 0);
        assert.equal(total, bySeconds(samples));
      },
    ),
    { numRuns: 30 },
  );
});
