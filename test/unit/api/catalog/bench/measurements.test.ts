// Measurements: computed once for the same sums; the verdict names a winner only if the data does.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { parseMoney } from '../../../../../api/billing/ledger/money.ts';
import { comparePairs, Measurements, formatVerdict } from '../../../../../api/catalog/bench/measurements.ts';
import type { Summary } from '../../../../../api/catalog/bench/statements.ts';
import { computeWilsonInterval } from '../../../../../api/catalog/bench/statistics.ts';
import type { ModelView, Rate } from '../../../../../api/catalog/bench/views.ts';

const summary = (change: Partial<Summary> = {}): Summary => ({
  app: 'chat',
  model: 'a',
  task: '',
  runs: 10,
  passed: 8,
  unanswered: 0,
  cost: parseMoney('0.5'),
  cost_unknown: 0,
  latency_p50: 10,
  latency_p95: 20,
  errors: {},
  updated: new Date('2026-01-01T00:00:00Z'),
  ...change,
});

test('the same summaries are measured once; any change of one, a late cost among them, measures them again', () => {
  const measurements = new Measurements();
  const first = measurements.getMeasurement('chat', [summary()]);
  assert.equal(measurements.getMeasurement('chat', [summary()]), first);
  const settled = measurements.getMeasurement('chat', [summary({ cost: parseMoney('0.6') })]);
  assert.deepEqual(
    [first, settled].map(({ models }) => models[0]?.cost_per_success_usd),
    [0.0625, 0.075],
  );
  assert.notEqual(measurements.getMeasurement('chat', [summary({ errors: { wrong: 2 } })]), settled);
});

test('one app has nothing of another', () => {
  const measurements = new Measurements();
  const one = measurements.getMeasurement('chat', [summary()]);
  assert.deepEqual(measurements.getMeasurement('other', []), { models: [], pairs: [] });
  assert.equal(measurements.getMeasurement('chat', [summary()]), one);
});

function rate(passed: number, n: number): Rate {
  return {
    passed,
    n,
    rate: n === 0 ? null : passed / n,
    interval: n === 0 ? null : [...(computeWilsonInterval(passed, n) ?? [0, 1])],
  };
}

/** A model with these passes of each task, of so many runs each. */
function model(name: string, passes: readonly number[], runs: number, cost: number | null = 0.000123456): ModelView {
  const passed = passes.reduce((sum, one) => sum + one, 0);
  const rest = { cost_per_run_usd: 0.0001, latency_ms: { p50: 1, p95: 2 } };
  const whole = rate(passed, runs * passes.length);
  return {
    model: name,
    runs: whole.n,
    quality: whole,
    delivered: whole,
    ...rest,
    cost_per_success_usd: cost,
    cost_per_success_at_least_usd: null,
    cost_unknown: 0,
    errors: {},
    by_task: passes.map((one, i) => ({ task: `t${i}`, quality: rate(one, runs), delivered: rate(one, runs), ...rest })),
  };
}

const verdict = (...models: ModelView[]): { en: string; zh: string } =>
  formatVerdict({ models, pairs: comparePairs(models), open: 7 });

test('a clear difference names its winner, with the interval and the cost of a success', () => {
  const { en, zh } = verdict(model('weak', [1, 0, 2, 1, 0], 10), model('strong', [10, 9, 10, 8, 10], 10));
  assert.match(
    en,
    /^strong passes 94 % of 50 runs and wins: 86 points over weak \(95 % interval \d+ to \d+\), at \$0\.000123 a success\.$/,
  );
  assert.match(zh, /^strong 胜出：.*每次成功 0\.000123 美元。$/);
});

test('a small difference is a tie, and the runs that would decide are said', () => {
  const { en, zh } = verdict(model('one', [8, 9, 8, 9, 8], 10), model('other', [8, 8, 7, 9, 8], 10));
  assert.match(en, /^Tie between one \(84 %\) and other \(80 %\): about \d+ runs of each task would decide\.$/);
  assert.match(zh, /^平局：one \(84 %\)与other \(80 %\)；每个任务约需 \d+ 次运行才能分出高下。$/);
  assert.match(verdict(model('one', [5, 5], 10), model('other', [5, 5], 10)).en, /only more tasks would\.$/);
});

test('one task names no winner, however clear it looks', () => {
  assert.match(
    verdict(model('one', [50], 50), model('other', [0], 50)).en,
    /^Tie between one \(100 %\) and other \(0 %\)/,
  );
});

test('of many equal models none wins by chance', () => {
  const models = Array.from({ length: 10 }, (_none, i) => model(`m${i}`, [5 + (i % 3), 5, 4 + (i % 2), 5, 6], 10));
  assert.ok(comparePairs(models).every((pair) => pair.verdict === 'tie'));
});

test('without runs, without answers and with one model it says just that', () => {
  assert.equal(verdict().en, 'No run has finished yet; 7 are registered.');
  const out = { ...model('out', [0, 0], 5), quality: rate(0, 0) };
  assert.match(verdict(out).en, /^No model could be judged: in all 10 runs/);
  assert.match(
    verdict(model('alone', [4, 5], 5, null)).en,
    /^alone passes 90 % of 10 runs \(95 % interval 60 % to 98 %\); no other model was measured\.$/,
  );
});
