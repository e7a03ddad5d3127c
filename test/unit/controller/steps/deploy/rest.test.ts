// When an app is put to rest and when it is woken, as a table of what was seen.
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { test } from 'vitest';
import {
  addWakes,
  chooseIdleSeconds,
  computeBreakEvenSeconds,
  computePercentile,
  decideRest,
  type AppActivity,
  type RestInput,
} from '../../../../../controller/steps/deploy/rest.ts';
import type { IdleStatus } from '../../../../../crds/status.ts';
import { formatTime, now } from '../../../../support/operator/scenario.ts';

const ms = (seconds: number): number => now.getTime() + seconds * 1000;
const quiet: AppActivity = { inFlight: 0, lastUsedAt: ms(-100), gaps: [], wakes: [] };
const status = (rest: Partial<IdleStatus> = {}): IdleStatus => ({
  state: 'Awake',
  since: formatTime(-1_000),
  number: 4,
  afterSeconds: 60,
  ...rest,
});
const input = (rest: Partial<RestInput> = {}): RestInput => ({
  now,
  policy: { depth: 'sleep', after: 60_000 },
  before: status(),
  activators: 'present',
  activity: quiet,
  wantedNumber: Number.NaN,
  isClosed: undefined,
  isSettled: true,
  isNew: false,
  isReady: true,
  ...rest,
});
const stateAfter = (rest: Partial<RestInput>): string | undefined => decideRest(input(rest)).status?.state;

test('closes an app that was unused long enough first, and marks it asleep once all activators agree', () => {
  const due = decideRest(input());
  assert.deepEqual([due.status?.state, due.close], ['Awake', { number: 5, idleMs: 60_000 }]);
  const agreed = decideRest(input({ isClosed: true })).status;
  assert.deepEqual([agreed?.state, agreed?.number, agreed?.since], ['Asleep', 5, formatTime(0)]);
  const refused = decideRest(input({ isClosed: false }));
  assert.deepEqual([refused.status?.state, refused.close, refused.afterMs], ['Awake', undefined, 5_000]);
});

test('puts a closed app to sleep even if a request arrives, and wakes it at the next reconcile', () => {
  assert.equal(stateAfter({ isClosed: true, activity: { ...quiet, inFlight: 1 } }), 'Asleep');
  assert.equal(stateAfter({ before: status({ state: 'Asleep' }), activity: { ...quiet, inFlight: 1 } }), 'Waking');
});

test('keeps an app awake that is in use, was used recently, is not settled, or has unknown activity', () => {
  for (const rest of [
    { activity: { ...quiet, inFlight: 1 } },
    { activity: { ...quiet, lastUsedAt: ms(-20) } },
    { before: status({ since: formatTime(-20) }) },
    { before: status({ lastUsedAt: formatTime(-20) }), activity: { ...quiet, lastUsedAt: undefined } },
    { isSettled: false },
    { activity: undefined },
  ] satisfies Partial<RestInput>[]) {
    const { status: next, close, afterMs } = decideRest(input(rest));
    assert.deepEqual([next?.state, close], ['Awake', undefined], JSON.stringify(rest));
    assert.ok(afterMs !== undefined && afterMs > 0);
  }
  assert.equal(decideRest(input({ activity: { ...quiet, lastUsedAt: ms(-20) } })).afterMs, 40_000);
});

test('keeps an app awake whose worker is busy, and lets it rest after its idle time without work', () => {
  const workers = (busyAt: number | undefined, measuredAt = ms(-10)): RestInput['workers'] => ({
    ...{ busyAt, measuredAt, isKnown: true },
  });
  assert.deepEqual(
    [decideRest(input({ workers: workers(ms(-20)) })).afterMs, decideRest(input({ workers: workers(ms(-20)) })).close],
    [40_000, undefined],
  );
  for (const busyAt of [undefined, ms(-61)])
    assert.deepEqual(decideRest(input({ workers: workers(busyAt) })).close, { number: 5, idleMs: 60_000 });
  // Workers are measured less often than a short idle time elapses.
  const { afterMs, close } = decideRest(input({ workers: workers(ms(-61), ms(-61)) }));
  assert.deepEqual([afterMs, close], [5_000, undefined]);
});

test('waits for a measurement of workers after a wake or a change of leader, but not for ever', () => {
  const since = (seconds: number): IdleStatus => status({ since: formatTime(seconds) });
  const decide = (before: IdleStatus, measuredAt: number, isKnown = true): string => {
    const { close, afterMs } = decideRest(input({ before, workers: { busyAt: undefined, measuredAt, isKnown } }));
    return close === undefined ? `look again in ${afterMs ?? 0}` : 'rest';
  };
  assert.equal(decide(since(-70), ms(-80)), 'look again in 5000', 'measured before it woke');
  assert.equal(decide(since(-70), ms(-1)), 'rest');
  assert.equal(decide(since(-5_000), ms(-40), false), 'look again in 5000', 'another leader measures since then');
  assert.equal(decide(since(-5_000), ms(-601), false), 'rest', 'the kubelet does not answer');
});

test('ends a nap in which a worker has become busy, and leaves an app asleep whose last work is over', () => {
  const workers = { busyAt: ms(-5), measuredAt: ms(-5), isKnown: true };
  const nap: RestInput['policy'] = { depth: 'nap', after: 60_000 };
  const before = (state: IdleStatus['state'], seconds: number): IdleStatus =>
    status({ state, since: formatTime(seconds) });
  assert.equal(stateAfter({ policy: nap, workers, before: before('Napping', -30) }), 'Awake');
  assert.equal(stateAfter({ policy: nap, workers, before: before('Napping', -2) }), 'Napping');
  assert.equal(stateAfter({ workers, before: before('Asleep', -30) }), 'Asleep');
});

test('puts an app to nap without agreement of the activators', () => {
  const policy = { depth: 'nap', after: 60_000 } as const;
  const { status: next, close } = decideRest(input({ policy }));
  assert.deepEqual([next?.state, next?.number, close], ['Napping', 5, undefined]);
  assert.equal(stateAfter({ policy, before: status({ state: 'Napping' }), wantedNumber: 4 }), 'Awake');
});

test('wakes it for the wake number of its current rest, and not for an older one', () => {
  const before = status({ state: 'Asleep' });
  assert.equal(stateAfter({ before, wantedNumber: 4 }), 'Waking');
  assert.equal(stateAfter({ before, wantedNumber: 3 }), 'Asleep');
  assert.equal(stateAfter({ before }), 'Asleep');
});

test('wakes it for a new release, to check that it works, and for another depth', () => {
  const before = status({ state: 'Asleep' });
  assert.equal(stateAfter({ before, isNew: true }), 'Waking');
  assert.equal(stateAfter({ before, policy: { depth: 'nap', after: 60_000 } }), 'Waking');
});

test('marks it awake once a pod is ready', () => {
  const before = status({ state: 'Waking' });
  assert.equal(stateAfter({ before, isReady: false }), 'Waking');
  assert.equal(stateAfter({ before }), 'Awake');
});

test('routes directly without a policy or an activator, and changes nothing while their state is unknown', () => {
  assert.equal(decideRest(input({ policy: undefined })).status, undefined);
  assert.equal(decideRest(input({ activators: 'absent' })).status, undefined);
  assert.equal(decideRest(input({ before: undefined, activators: 'unknown' })).status, undefined);
  assert.equal(
    stateAfter({ before: status({ state: 'Asleep' }), activators: 'unknown', activity: undefined }),
    'Asleep',
  );
  assert.equal(decideRest(input({ before: undefined })).status?.number, 0);
});

test('records uses, gaps and wakes once each', () => {
  const activity: AppActivity = {
    inFlight: 0,
    lastUsedAt: ms(-10),
    gaps: [{ at: ms(-50), seconds: 45 }],
    wakes: [
      { number: 4, ms: 900.4 },
      { number: 4, ms: 1_100 },
    ],
  };
  const once = decideRest(input({ activity })).status;
  assert.deepEqual([once?.gaps, once?.lastUsedAt], [[45], formatTime(-10)]);
  assert.deepEqual(once?.wakes, { count: 1, number: 4, p50Ms: 1_100, p95Ms: 1_100, recentMs: [1_100] });
  assert.deepEqual(decideRest(input({ activity, before: once })).status, once);
});

test("adapts the idle time to the app's gaps with auto", () => {
  const before = status({ gaps: Array.from({ length: 12 }, () => 400) });
  assert.equal(decideRest(input({ before, policy: { depth: 'sleep', after: 'auto' } })).status?.afterSeconds, 400);
});

test('computes percentiles of the last thirty wakes by nearest rank', () => {
  const measured = Array.from({ length: 40 }, (_, index) => ({ number: index + 1, ms: index + 1 }));
  const wakes = addWakes(undefined, measured);
  assert.deepEqual([wakes?.count, wakes?.recentMs.length, wakes?.p50Ms, wakes?.p95Ms], [40, 30, 25, 39]);
  assert.equal(computePercentile([], 0.5), 0);
});

// The idle time that is chosen by itself: the break-even without a past, the best over the gaps within its bounds.

const gaps = (...parts: [seconds: number, count: number][]): number[] =>
  parts.flatMap(([seconds, count]) => Array.from({ length: count }, () => seconds));

test('chooses a longer break-even for a slower wake, within limits', () => {
  assert.deepEqual(
    [
      computeBreakEvenSeconds(),
      computeBreakEvenSeconds(10),
      computeBreakEvenSeconds(8_000),
      computeBreakEvenSeconds(1e9),
    ],
    [300, 60, 480, 3_600],
  );
});

test('uses the break-even without enough gaps', () => {
  assert.equal(chooseIdleSeconds(gaps([30, 9]), 5_000), 300);
});

test('waits for an app that is usually used again soon after the break-even, and not for others', () => {
  assert.equal(chooseIdleSeconds(gaps([400, 12]), 5_000), 400);
  assert.equal(chooseIdleSeconds(gaps([40, 6], [50_000, 6]), 5_000), 150);
});

/** What an idle time costs over gaps, in seconds of running. */
const costOf = (after: number, all: readonly number[], even: number): number =>
  all.reduce((sum, gap) => sum + (gap <= after ? gap : after + even), 0);

test('property: costs at most what the break-even costs over the same gaps, and three times the optimum for any', () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 30, max: 20_000 }), { minLength: 10, maxLength: 30 }),
      fc.array(fc.integer({ min: 1, max: 20_000 }), { minLength: 1, maxLength: 30 }),
      fc.integer({ min: 100, max: 60_000 }),
      (past, future, wakeMs) => {
        const even = computeBreakEvenSeconds(wakeMs);
        const chosen = chooseIdleSeconds(past, wakeMs);
        assert.ok(costOf(chosen, past, even) <= costOf(even, past, even));
        const best = future.reduce((sum, gap) => sum + Math.min(gap, even), 0);
        assert.ok(costOf(chosen, future, even) <= 3 * best + 2 * future.length);
      },
    ),
  );
});
