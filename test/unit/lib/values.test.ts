// Values shared by several rooms: sorting again gives a sorted list with few comparisons.
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { test } from 'vitest';
import { sortAgain } from '../../../lib/values.ts';

const compare = (a: number, b: number): number => a - b;
const numbers = fc.uniqueArray(fc.integer(), { maxLength: 50 });

test('sorting again gives the current items in order', () => {
  fc.assert(
    fc.property(numbers, numbers, (before, now) => {
      assert.deepEqual(sortAgain(before.toSorted(compare), now, compare), now.toSorted(compare));
    }),
  );
});

test('sorting again needs few comparisons if little has changed', () => {
  const before = Array.from({ length: 10_000 }, (_, index) => index * 2);
  let comparisons = 0;
  sortAgain(before, [...before.toSorted((a, b) => b - a), 5_001], (a, b) => {
    comparisons += 1;
    return a - b;
  });
  assert.ok(comparisons < 20_100, String(comparisons));
});
