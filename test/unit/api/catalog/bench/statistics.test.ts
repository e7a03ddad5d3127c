// Statistics of benchmarks: known values, and random cases against simpler calculations.
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { test } from 'vitest';
import { parseMoney } from '../../../../../api/billing/index.ts';
import {
  adjustPValues,
  divideCost,
  computeCostOfSuccess,
  findCriticalT,
  computePairedDifference,
  estimateRunsToDecide,
  type TaskPair,
  computeTwoSidedP,
  computeWilsonInterval,
} from '../../../../../api/catalog/bench/statistics.ts';

const close = (actual: number | undefined, expected: number, within = 1e-9): void => {
  assert.ok(actual !== undefined && Math.abs(actual - expected) <= within, `${actual} is not ${expected}`);
};

const pair = (a: number, b: number, n = 5): TaskPair => ({ a: { passed: a, n }, b: { passed: b, n } });

test('critical values and p-values of t are those of the tables', () => {
  close(findCriticalT(0.05, 1), 12.706204736432095, 1e-8);
  close(findCriticalT(0.05, 4), 2.7764451051977987);
  close(findCriticalT(0.01, 30), 2.7499956535672254);
  close(findCriticalT(0.05, 1_000), 1.9623390808264078);
  close(computeTwoSidedP(2.5, 7), 0.04099221858575286);
  close(computeTwoSidedP(0, 3), 1);
  assert.equal(computeTwoSidedP(Infinity, 3), 0);
});

test('Wilson intervals hold at the ends, and there is none without runs', () => {
  const [low, high] = computeWilsonInterval(8, 10) ?? assert.fail();
  close(low, 0.4901624715);
  close(high, 0.9433178485);
  assert.equal(computeWilsonInterval(0, 5)?.[0], 0);
  close(computeWilsonInterval(0, 5)?.[1], 0.4344824648);
  assert.equal(computeWilsonInterval(5, 5)?.[1], 1);
  assert.equal(computeWilsonInterval(0, 0), undefined);
});

test('a difference is the mean over tasks, with an interval by t over the tasks', () => {
  const seen = computePairedDifference([pair(5, 0), pair(3, 3), pair(4, 2), pair(5, 1), pair(1, 2)]);
  close(seen?.difference, 0.4);
  // Differences 1, 0, 0.4, 0.8, -0.2: their standard deviation 0.5099 by the root of 5, above chance within the tasks.
  close(seen?.spread?.standardError, 0.22803508501982758);
  close(seen?.spread?.interval[0], 0.4 - 2.7764451051977987 * 0.22803508501982758);
  assert.equal(seen?.spread?.interval[1], 1);
});

test('equal differences on few tasks do not decide by luck', () => {
  const lucky = computePairedDifference([pair(3, 2), pair(4, 3)]);
  assert.ok(lucky?.spread !== undefined && lucky.spread.interval[0] < 0 && lucky.spread.standardError > 0.1);
  const clear = computePairedDifference([pair(5, 0), pair(5, 0), pair(5, 0), pair(5, 0), pair(5, 0)]);
  assert.ok(clear?.spread !== undefined && clear.spread.interval[0] > 0.7);
});

test('one task decides nothing, and none is no comparison', () => {
  assert.equal(computePairedDifference([pair(50, 0, 50)])?.spread, undefined);
  assert.equal(estimateRunsToDecide([pair(50, 0, 50)]), undefined);
  assert.equal(computePairedDifference([]), undefined);
});

test('the runs that would decide do decide when the rates stay', () => {
  const pairs = [pair(3, 2), pair(4, 3), pair(3, 2), pair(4, 4), pair(5, 4)];
  const runs = estimateRunsToDecide(pairs) ?? assert.fail('no number');
  assert.ok(runs > 5);
  const repeated = pairs.map(({ a, b }) => pair((a.passed * runs) / a.n, (b.passed * runs) / b.n, runs));
  const interval = computePairedDifference(repeated)?.spread?.interval ?? assert.fail();
  assert.ok(interval[0] > -0.02, `${interval[0]}`);
  assert.equal(estimateRunsToDecide([pair(3, 3), pair(4, 4)]), undefined);
  // Where one task speaks for a and the other for b, only more tasks would decide.
  assert.equal(estimateRunsToDecide([pair(50, 0, 50), pair(0, 48, 50)]), undefined);
});

test('swapping the models swaps the sign and nothing else', () => {
  const passes = fc
    .integer({ min: 1, max: 30 })
    .chain((n) => fc.record({ n: fc.constant(n), passed: fc.integer({ min: 0, max: n }) }));
  fc.assert(
    fc.property(fc.array(fc.record({ a: passes, b: passes }), { minLength: 2, maxLength: 8 }), (pairs) => {
      const one = computePairedDifference(pairs);
      const other = computePairedDifference(pairs.map(({ a, b }) => ({ a: b, b: a })));
      close(one?.difference, -(other?.difference ?? 0), 1e-12);
      close(one?.spread?.p, other?.spread?.p ?? 0, 1e-9);
      assert.equal(estimateRunsToDecide(pairs), estimateRunsToDecide(pairs.map(({ a, b }) => ({ a: b, b: a }))));
    }),
  );
});

test('costs are divided exactly, and without a pass there is only a bound', () => {
  assert.equal(divideCost(parseMoney('1'), 3), 333_333_333_333n);
  assert.equal(divideCost(parseMoney('2'), 3), 666_666_666_667n);
  assert.equal(divideCost(parseMoney('1'), 0), undefined);
  assert.deepEqual(computeCostOfSuccess(parseMoney('0.5'), { passed: 4, unknown: 0 }), {
    exact: parseMoney('0.125'),
    atLeast: undefined,
  });
  assert.deepEqual(computeCostOfSuccess(parseMoney('0.5'), { passed: 0, unknown: 0 }), {
    exact: undefined,
    atLeast: parseMoney('0.5'),
  });
  assert.deepEqual(computeCostOfSuccess(parseMoney('0.5'), { passed: 2, unknown: 1 }), {
    exact: undefined,
    atLeast: parseMoney('0.25'),
  });
});

test('p-values are adjusted as Benjamini and Hochberg do', () => {
  const adjusted = adjustPValues([0.01, 0.04, 0.03, 0.005, 0.9]);
  [0.025, 0.05, 0.05, 0.025, 0.9].forEach((expected, index) => {
    close(adjusted[index], expected);
  });
  assert.deepEqual(adjustPValues([]), []);
});
