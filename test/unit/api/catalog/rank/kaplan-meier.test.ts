// The Kaplan–Meier estimate against published values and against plain proportions.
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { test } from 'vitest';
import { kaplanMeier, type Observation } from '../../../../../api/catalog/rank/kaplan-meier.ts';

const left = (...times: number[]): Observation[] => times.map((time) => ({ time, left: true, count: 1 }));
const censored = (...times: number[]): Observation[] => times.map((time) => ({ time, left: false, count: 1 }));

/** Remission of leukaemia under 6-MP, in weeks (Freireich et al. 1963), as textbooks of survival analysis have it. */
const remission = [...left(6, 6, 6, 7, 10, 13, 16, 22, 23), ...censored(6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35)];

// Estimates and standard errors as in Kleinbaum and Klein; intervals as R's survfit gives them with conf.type = "log-log".
for (const [time, value, error, low, high] of [
  [6, 0.857, 0.0764, 0.62, 0.952],
  [7, 0.807, 0.0869, 0.563, 0.923],
  [10, 0.753, 0.0963, 0.503, 0.889],
  [13, 0.69, 0.1068, 0.432, 0.849],
  [16, 0.627, 0.1141, 0.368, 0.805],
  [22, 0.538, 0.1282, 0.268, 0.747],
  [23, 0.448, 0.1346, 0.188, 0.68],
] as const)
  test(`remission longer than ${time} weeks`, () => {
    const estimate = kaplanMeier(remission, time);
    assert.ok(estimate !== undefined);
    assert.equal(estimate.n, 21);
    assert.ok(Math.abs(estimate.value - value) < 0.0006, String(estimate.value));
    assert.ok(Math.abs(estimate.standardError - error) < 0.0001, String(estimate.standardError));
    assert.ok(Math.abs(estimate.interval[0] - low) < 0.001, String(estimate.interval[0]));
    assert.ok(Math.abs(estimate.interval[1] - high) < 0.001, String(estimate.interval[1]));
  });

test('before the first who leaves all stay, and where nobody was followed for so long nothing is known', () => {
  assert.equal(kaplanMeier(remission, 5)?.value, 1);
  assert.equal(kaplanMeier(remission, 36), undefined);
  assert.equal(kaplanMeier([], 1), undefined);
});

test('without censoring it is the proportion of those who stay', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 20 }), { minLength: 1, maxLength: 60 }), (times) => {
      const estimate = kaplanMeier([...left(...times), ...censored(30)], 10);
      const stay = times.filter((time) => time > 10).length + 1;
      assert.ok(Math.abs((estimate?.value ?? -1) - stay / (times.length + 1)) < 1e-9);
    }),
  );
});

test('counts are the same as single observations', () => {
  const counted = [
    { time: 1, left: true, count: 3 },
    { time: 1, left: false, count: 2 },
    { time: 4, left: false, count: 5 },
  ];
  assert.deepEqual(kaplanMeier(counted, 3), kaplanMeier([...left(1, 1, 1), ...censored(1, 1, 4, 4, 4, 4, 4)], 3));
});

test('where all stay or all leave, the interval is that of Wilson', () => {
  const ten = Array.from({ length: 10 }, () => 7);
  // Wilson, 10 of 10: 0.7225 to 1.
  const bounds = [censored(...ten), left(...ten)].map((observations) => kaplanMeier(observations, 7));
  assert.deepEqual(
    bounds.map((estimate) => [estimate?.value, ...(estimate?.interval ?? []).map((bound) => bound.toFixed(4))]),
    [
      [1, '0.7225', '1.0000'],
      [0, '0.0000', '0.2775'],
    ],
  );
});

test('the interval holds the estimate and stays between 0 and 1', () => {
  const observation = fc.record({
    time: fc.integer({ min: 0, max: 14 }),
    left: fc.boolean(),
    count: fc.integer({ min: 1, max: 9 }),
  });
  fc.assert(
    fc.property(fc.array(observation, { maxLength: 30 }), (observations) => {
      const estimate = kaplanMeier(observations, 7);
      if (estimate === undefined) return;
      const [low, high] = estimate.interval;
      assert.ok(0 <= low && low <= estimate.value && estimate.value <= high && high <= 1, JSON.stringify(estimate));
    }),
  );
});
