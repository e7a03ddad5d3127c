// Requests follow the use: up at once, down once it is settled, and within the limits.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { betterRequests, useBetween, type Use } from '../../../../controller/usage/requests.ts';

const mebibyte = 1024 * 1024;
const limits = { cpuMilli: 1000, memoryBytes: 512 * mebibyte };
const initial = { cpuMilli: 10, memoryBytes: 64 * mebibyte };
/** Uses half a minute apart. */
const uses = (...each: readonly (readonly [number, number])[]): Use[] =>
  each.map(([cpuMilli, memory], index) => ({ at: index * 30_000, cpuMilli, memoryBytes: memory * mebibyte }));

test('the use between two samples, and none over a restart', () => {
  const sample = { pod: 'a', container: 'app' as const, cpuSeconds: 10, memoryBytes: 5, at: 1_000 };
  assert.deepEqual(useBetween(sample, { ...sample, cpuSeconds: 13, memoryBytes: 7, at: 31_000 }), {
    at: 31_000,
    cpuMilli: 100,
    memoryBytes: 7,
  });
  assert.equal(useBetween(sample, { ...sample, cpuSeconds: 1, at: 31_000 }), undefined);
  assert.equal(useBetween(sample, sample), undefined);
});

test('a busy app requests more at once, and never more than its limit', () => {
  assert.deepEqual(betterRequests(uses([400, 60]), initial, limits), { cpuMilli: 500, memoryBytes: 64 * mebibyte });
  assert.deepEqual(betterRequests(uses([990, 500]), initial, limits), limits);
});

test('an idle app requests less only after a minute, and never nothing', () => {
  assert.equal(betterRequests(uses([0.1, 12], [0.1, 12]), initial, limits), undefined);
  assert.deepEqual(betterRequests(uses([0.1, 12], [0.1, 12], [0.1, 12]), initial, limits), {
    cpuMilli: 2,
    memoryBytes: 16 * mebibyte,
  });
});

test('the busiest moment of those that are remembered counts, and small changes are not made', () => {
  assert.equal(betterRequests(uses([9, 50], [1, 40], [1, 40]), initial, limits), undefined);
  assert.equal(betterRequests([], initial, limits), undefined);
});
