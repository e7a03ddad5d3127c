// A comparison: nothing hides between its differences, and two faults do not cancel out.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { zero, type Money } from '../../../../../api/billing/index.ts';
import { concludeComparison, parseDay, toCount } from '../../../../../api/accounting/reconciliation/comparison.ts';
import { comparison } from '../../../../../api/accounting/reconciliation/result.ts';

const usd = (pico: bigint): Money => pico as Money;

test('what the differences do not account for is a difference of its own, unexplained', () => {
  const made = concludeComparison({
    name: 'router',
    lines: [{ name: 'platform', left: { events: 3, usd: usd(30n) }, right: { events: 5, usd: usd(70n) } }],
    differences: [{ kind: 'pending', subject: 'a', events: -1, usd: usd(-25n) }],
  });
  assert.deepEqual(
    made.differences.map(({ kind, explained, events, usd: amount }) => [kind, explained, events, amount]),
    [
      ['unaccounted', false, -1, '-0.000000000015'],
      ['pending', true, -1, '-0.000000000025'],
    ],
  );
  assert.deepEqual([made.outcome, made.unexplained], ['different', { events: 1, usd: '0.000000000015' }]);
  assert.deepEqual(made.explained, { events: 1, usd: '0.000000000025' });
  assert.deepEqual(comparison.parse(made), made);
});

test('faults in both directions add up, and one that changes no figure counts as one', () => {
  const made = concludeComparison({
    name: 'sums',
    lines: [{ name: 'hours', left: toCount(10), right: toCount(10) }],
    differences: [
      { kind: 'sum_differs', ...toCount(2) },
      { kind: 'sum_differs', ...toCount(-2) },
      { kind: 'sum_differs', ...toCount(0) },
    ],
  });
  assert.deepEqual(made.unexplained, { events: 5, usd: '0' });
});

test('outcomes: equal, explained, not known; a side that cannot be read is never equal', () => {
  const lines = [{ name: 'platform', left: toCount(1), right: toCount(1) }] as const;
  const outcome = (made: Parameters<typeof concludeComparison>[0]): string => concludeComparison(made).outcome;
  assert.equal(outcome({ name: 'router', lines, differences: [] }), 'equal');
  assert.equal(outcome({ name: 'router', lines, differences: [], notKnown: 'no records' }), 'not_known');
  const explained = [{ name: 'run', left: toCount(2), right: toCount(1) }] as const;
  assert.equal(
    outcome({ name: 'gateway', lines: explained, differences: [{ kind: 'lost', events: 1, usd: zero }] }),
    'explained',
  );
});

test('of very many differences a hundred are listed, the unexplained first, and all are counted', () => {
  const made = concludeComparison({
    name: 'gateway',
    lines: [{ name: 'run', left: toCount(301), right: toCount(0) }],
    differences: [
      ...Array.from({ length: 300 }, () => ({ kind: 'lost' as const, ...toCount(1) })),
      { kind: 'unaccounted_requests', ...toCount(1) },
    ],
  });
  assert.deepEqual(
    [made.differences.length, made.left_off, made.differences[0]?.kind, made.explained.events],
    [100, 201, 'unaccounted_requests', 300],
  );
});

test('a day is a day of the calendar that has begun, whole or until now', () => {
  const now = new Date('2026-03-02T10:00:00Z');
  assert.deepEqual(parseDay('2026-03-01', now), {
    day: '2026-03-01',
    from: new Date('2026-03-01T00:00:00Z'),
    to: new Date('2026-03-02T00:00:00Z'),
    isComplete: true,
  });
  const today = parseDay('2026-03-02', now);
  assert.deepEqual([today.to, today.isComplete], [now, false]);
  for (const wrong of ['2026-02-30', '2026-3-1', 'today', '2026-03-03'])
    assert.throws(() => parseDay(wrong, now), RangeError);
});
