// The statistics of benchmarks against scipy and statsmodels, over hundreds of random cases.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { openLedgerDatabase } from '../../../api/billing/database/database.ts';
import {
  adjustPValues,
  computeClusteredError,
  findCriticalT,
  computePairedDifference,
  type TaskPair,
  computeTwoSidedP,
  computeWilsonInterval,
} from '../../../api/catalog/bench/statistics.ts';
import { runStatsmodels } from '../../support/bench/statsmodels.ts';
import { migratedDatabase } from '../../support/ledger/snapshot.ts';

const numbers = z.array(z.number());
const answers = z.object({
  wilson: z.array(z.tuple([z.number(), z.number()])),
  critical: numbers,
  two_sided: numbers,
  clustered: z.array(
    z.object({
      difference: z.number(),
      standard_error: z.number(),
      interval: z.tuple([z.number(), z.number()]),
      p: z.number(),
    }),
  ),
  paired: z.array(z.object({ p: z.number(), interval: z.tuple([z.number(), z.number()]) })),
  adjusted: z.array(numbers),
  percentiles: z.array(numbers),
});

/** Mulberry32, so that a failure can be had again. */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

const random = randomFrom(20_261_122);
const whole = (low: number, high: number): number => low + Math.floor(random() * (high - low + 1));
const times = <Value>(count: number, make: () => Value): Value[] => Array.from({ length: count }, make);

/** Runs of two models on some tasks, the same number on each: pass or fail. */
function runsOnTasks(): { a: number[][]; b: number[][] } {
  const [tasks, runs] = [whole(2, 12), whole(30, 80)];
  const model = (): number[][] =>
    times(tasks, () => {
      const ability = random();
      return times(runs, () => (random() < ability ? 1 : 0));
    });
  return { a: model(), b: model() };
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
const pairsOf = ({ a, b }: { a: number[][]; b: number[][] }): TaskPair[] =>
  a.map((runs, task) => {
    const others = b[task] ?? [];
    return { a: { passed: sum(runs), n: runs.length }, b: { passed: sum(others), n: others.length } };
  });

const benchmarks = times(300, runsOnTasks);
const cases = {
  wilson: times(400, () => {
    const n = whole(1, 300);
    return { n, passed: whole(0, n) };
  }),
  t: times(400, () => ({ p: 0.0005 + random() * 0.9, freedom: whole(1, 200), t: (random() - 0.5) * 20 })),
  clustered: benchmarks.map(({ a, b }) => a.map((runs, task) => runs.map((one, i) => one - (b[task]?.[i] ?? 0)))),
  paired: benchmarks.map((benchmark) => pairsOf(benchmark).map(({ a, b }) => a.passed / a.n - b.passed / b.n)),
  adjusted: times(200, () => times(whole(1, 45), () => random() ** 2)),
  percentiles: times(50, () => times(whole(1, 400), () => whole(1, 90_000))),
};

let expected: z.output<typeof answers>;
beforeAll(async () => {
  expected = answers.parse(await runStatsmodels(join(import.meta.dirname, 'statistics.py'), cases));
});

function near(actual: number | undefined, right: number, what: string): void {
  const far = Math.abs((actual ?? NaN) - right);
  expect(far <= 1e-9 * Math.max(1, Math.abs(right)), `${what}: ${actual} is not ${right}`).toBe(true);
}

test('intervals of pass rates match statsmodels', () => {
  cases.wilson.forEach(({ passed, n }, i) => {
    const interval = computeWilsonInterval(passed, n);
    near(interval?.[0], expected.wilson[i]?.[0] ?? NaN, `low of ${passed} in ${n}`);
    near(interval?.[1], expected.wilson[i]?.[1] ?? NaN, `high of ${passed} in ${n}`);
  });
});

test('critical values and p-values of t match scipy', () => {
  cases.t.forEach(({ p, freedom, t }, i) => {
    near(findCriticalT(p, freedom), expected.critical[i] ?? NaN, `t for ${p} with ${freedom}`);
    near(computeTwoSidedP(t, freedom), expected.two_sided[i] ?? NaN, `p of ${t} with ${freedom}`);
  });
});

test('differences and their errors clustered by task match a regression with clustered errors', () => {
  let compared = 0;
  benchmarks.forEach((benchmark, i) => {
    const seen = computePairedDifference(pairsOf(benchmark)) ?? assert.fail();
    const right = expected.clustered[i] ?? assert.fail();
    const spread = seen.spread ?? assert.fail();
    near(seen.difference, right.difference, 'difference');
    near(computeClusteredError(cases.paired[i] ?? []), right.standard_error, 'clustered error');
    // The interval is that of the regression wherever chance within tasks is not the larger error.
    if (spread.standardError > right.standard_error * (1 + 1e-12)) return;
    compared += 1;
    near(spread.p, right.p, 'p');
    near(spread.p, expected.paired[i]?.p ?? NaN, 'p of the t-test');
    near(spread.interval[0], Math.max(-1, right.interval[0]), 'low');
    near(spread.interval[1], Math.min(1, right.interval[1]), 'high');
  });
  assert.ok(compared > 200, `only ${compared} intervals could be compared`);
});

test('adjusted p-values match statsmodels', () => {
  cases.adjusted.forEach((values, i) => {
    adjustPValues(values).forEach((adjusted, k) => {
      near(adjusted, expected.adjusted[i]?.[k] ?? NaN, `p ${k}`);
    });
  });
});

test("the database's percentiles match numpy", async () => {
  const database = await openLedgerDatabase(migratedDatabase);
  const percentiles = {
    name: 'test-percentiles',
    text: 'select percentile_cont(0.5) within group (order by ms) as p50, percentile_cont(0.95) within group (order by ms) as p95 from unnest($1::int[]) ms',
    row: z.object({ p50: z.number(), p95: z.number() }),
  };
  for (const [i, values] of cases.percentiles.entries()) {
    const [row] = await database.query(percentiles, [values]);
    near(row?.p50, expected.percentiles[i]?.[0] ?? NaN, 'p50');
    near(row?.p95, expected.percentiles[i]?.[1] ?? NaN, 'p95');
  }
  await database.close();
});
