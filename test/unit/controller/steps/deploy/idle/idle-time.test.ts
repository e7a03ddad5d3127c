// The idle time that is chosen by itself: the break-even without a past, the best over the gaps within its bounds.
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { test } from 'vitest';
import { breakEvenSeconds, chooseIdleSeconds } from '../../../../../../controller/steps/deploy/idle/idle-time.ts';

const gaps = (...parts: [seconds: number, count: number][]): number[] =>
  parts.flatMap(([seconds, count]) => Array.from({ length: count }, () => seconds));

test('a wake that takes longer is avoided for longer, within bounds', () => {
  assert.deepEqual(
    [breakEvenSeconds(), breakEvenSeconds(10), breakEvenSeconds(8_000), breakEvenSeconds(1e9)],
    [300, 60, 480, 3_600],
  );
});

test('without enough gaps it is the break-even', () => {
  assert.equal(chooseIdleSeconds(gaps([30, 9]), 5_000), 300);
});

test('an app that comes back after a little more than the break-even is awaited; one that does not is not', () => {
  assert.equal(chooseIdleSeconds(gaps([400, 12]), 5_000), 400);
  assert.equal(chooseIdleSeconds(gaps([40, 6], [50_000, 6]), 5_000), 150);
});

/** What an idle time costs over gaps, in seconds of running. */
const costOf = (after: number, all: readonly number[], even: number): number =>
  all.reduce((sum, gap) => sum + (gap <= after ? gap : after + even), 0);

test('it costs at most what the break-even costs over the same gaps, and three times the best for any', () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 30, max: 20_000 }), { minLength: 10, maxLength: 30 }),
      fc.array(fc.integer({ min: 1, max: 20_000 }), { minLength: 1, maxLength: 30 }),
      fc.integer({ min: 100, max: 60_000 }),
      (past, future, wakeMs) => {
        const even = breakEvenSeconds(wakeMs);
        const chosen = chooseIdleSeconds(past, wakeMs);
        assert.ok(costOf(chosen, past, even) <= costOf(even, past, even));
        const best = future.reduce((sum, gap) => sum + Math.min(gap, even), 0);
        assert.ok(costOf(chosen, future, even) <= 3 * best + 2 * future.length);
      },
    ),
  );
});
