// A list that is sorted again is as if it were sorted anew.
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { test } from 'vitest';
import { resorted } from '../../../lib/resorted.ts';

const compare = (a: number, b: number): number => a - b;
const numbers = fc.uniqueArray(fc.integer(), { maxLength: 50 });

test('whatever came and went, the items are those of now, in order', () => {
  fc.assert(
    fc.property(numbers, numbers, (before, now) => {
      assert.deepEqual(resorted(before.toSorted(compare), now, compare), now.toSorted(compare));
    }),
  );
});

test('few comparisons are made where little has changed', () => {
  const before = Array.from({ length: 10_000 }, (_, index) => index * 2);
  let comparisons = 0;
  resorted(before, [...before.toSorted((a, b) => b - a), 5_001], (a, b) => {
    comparisons += 1;
    return a - b;
  });
  assert.ok(comparisons < 20_100, String(comparisons));
});
