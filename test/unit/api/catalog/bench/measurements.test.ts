// Measurements are computed once for the same summaries, and again for others.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { parseMoney } from '../../../../../api/billing/ledger/money.ts';
import { Measurements } from '../../../../../api/catalog/bench/measurements.ts';
import type { Summary } from '../../../../../api/catalog/bench/store/shapes.ts';

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
  const first = measurements.of('chat', [summary()]);
  assert.equal(measurements.of('chat', [summary()]), first);
  const settled = measurements.of('chat', [summary({ cost: parseMoney('0.6') })]);
  assert.deepEqual(
    [first, settled].map(({ models }) => models[0]?.cost_per_success_usd),
    [0.0625, 0.075],
  );
  assert.notEqual(measurements.of('chat', [summary({ errors: { wrong: 2 } })]), settled);
});

test('one app has nothing of another', () => {
  const measurements = new Measurements();
  const one = measurements.of('chat', [summary()]);
  assert.deepEqual(measurements.of('other', []), { models: [], pairs: [] });
  assert.equal(measurements.of('chat', [summary()]), one);
});
