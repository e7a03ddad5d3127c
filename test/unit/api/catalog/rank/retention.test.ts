// Retention: callers counted from the ledger, and the Kaplan–Meier estimate against published values and plain proportions.
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { afterAll, afterEach, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { type Database, openLedgerDatabase } from '../../../../../api/billing/database/database.ts';
import {
  Callers,
  estimateKaplanMeier,
  type Observation,
  estimateRetention,
} from '../../../../../api/catalog/rank/retention.ts';
import { addUses, createCalls } from '../../../../support/catalog/uses.ts';
import { migratedDatabase } from '../../../../support/ledger/snapshot.ts';

let database: Database;
beforeAll(async () => {
  database = await openLedgerDatabase(migratedDatabase);
});
const run = (text: string) => database.query({ name: `test-${text}`, text, row: z.unknown() }, []);
afterEach(async () => {
  await run('delete from ledger.usage');
  await run('delete from catalog.caller');
});
afterAll(() => database.close());

const days = (count: number): number => count * 24;
const observed = async (callers: Callers, app: string): Promise<readonly Observation[]> =>
  ((await callers.readObservations()).get(app) ?? []).toSorted(
    (a, b) => a.time - b.time || Number(a.left) - Number(b.left),
  );

test('one who called once has left after no time; one who calls on is followed; who is new is not judged yet', async () => {
  await addUses(database, [
    ...createCalls('chat', 'once', days(30)),
    ...createCalls('chat', 'three days', days(20), days(17)),
    ...createCalls('chat', 'long', days(40), days(20)),
    ...createCalls('chat', 'still here', days(30), days(1)),
    ...createCalls('chat', 'here for a while', days(10), days(1)),
    ...createCalls('chat', 'new', days(3), days(1)),
    ...createCalls('draw', 'once', days(8)),
  ]);
  const callers = new Callers(database);
  await callers.update();
  assert.deepEqual(await observed(callers, 'chat'), [
    { time: 0, left: true, count: 1 },
    { time: days(3), left: false, count: 1 },
    { time: days(3), left: true, count: 1 },
    { time: days(7), left: false, count: 2 },
  ]);
  assert.deepEqual(await observed(callers, 'draw'), [{ time: 0, left: true, count: 1 }]);
});

test('reading again changes nothing, and later calls move the last one', async () => {
  await addUses(database, createCalls('chat', 'a', days(30), days(25)));
  const callers = new Callers(database);
  await callers.update();
  await callers.update();
  assert.deepEqual(await observed(callers, 'chat'), [{ time: days(5), left: true, count: 1 }]);
  await addUses(database, createCalls('chat', 'a', 0));
  await new Callers(database).update();
  assert.deepEqual(await observed(callers, 'chat'), [{ time: days(7), left: false, count: 1 }]);
});

test('calls of models and calls before the time that is followed do not count', async () => {
  await addUses(database, [
    { kind: 'v1', app: 'chat', hours: days(20), cost: '1' },
    ...createCalls('chat', 'old', days(100)),
    ...createCalls('chat', 'a', days(20)),
  ]);
  const callers = new Callers(database);
  await callers.update();
  assert.deepEqual(await observed(callers, 'chat'), [{ time: 0, left: true, count: 1 }]);
});

test('who has been away for long is forgotten', async () => {
  await run(
    `insert into catalog.caller values ('chat', 'old', now() - interval '200 days', now() - interval '91 days')`,
  );
  await addUses(database, createCalls('chat', 'a', days(20)));
  const callers = new Callers(database);
  await callers.update();
  assert.equal((await run('select from catalog.caller')).length, 1);
});

test('an empty ledger is read at once', async () => {
  const callers = new Callers(database);
  await callers.update();
  assert.equal((await callers.readObservations()).size, 0);
});

test('retention is null where there is nobody, or nobody was followed for long enough', () => {
  assert.deepEqual(estimateRetention([]), {
    reason: 'Nobody has called this app through the API long enough ago.',
    n: 0,
  });
  const early = estimateRetention([
    { time: 0, left: true, count: 2 },
    { time: 30, left: false, count: 3 },
  ]);
  assert.deepEqual(early, { reason: 'No caller of this app has been followed for 7 days yet.', n: 5 });
});

test('retention of four callers of whom one left at once and one after three days', () => {
  const retention = estimateRetention([
    { time: 0, left: true, count: 1 },
    { time: days(3), left: true, count: 1 },
    { time: days(7), left: false, count: 2 },
  ]);
  assert.ok('estimate' in retention);
  assert.ok(Math.abs(retention.estimate.value - 0.5) < 1e-12);
  assert.equal(retention.estimate.n, 4);
});

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
    const estimate = estimateKaplanMeier(remission, time);
    assert.ok(estimate !== undefined);
    assert.equal(estimate.n, 21);
    assert.ok(Math.abs(estimate.value - value) < 0.0006, String(estimate.value));
    assert.ok(Math.abs(estimate.standardError - error) < 0.0001, String(estimate.standardError));
    assert.ok(Math.abs(estimate.interval[0] - low) < 0.001, String(estimate.interval[0]));
    assert.ok(Math.abs(estimate.interval[1] - high) < 0.001, String(estimate.interval[1]));
  });

test('before the first who leaves all stay, and where nobody was followed for so long nothing is known', () => {
  assert.equal(estimateKaplanMeier(remission, 5)?.value, 1);
  assert.equal(estimateKaplanMeier(remission, 36), undefined);
  assert.equal(estimateKaplanMeier([], 1), undefined);
});

test('without censoring it is the proportion of those who stay', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 20 }), { minLength: 1, maxLength: 60 }), (times) => {
      const estimate = estimateKaplanMeier([...left(...times), ...censored(30)], 10);
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
  assert.deepEqual(
    estimateKaplanMeier(counted, 3),
    estimateKaplanMeier([...left(1, 1, 1), ...censored(1, 1, 4, 4, 4, 4, 4)], 3),
  );
});

test('where all stay or all leave, the interval is that of Wilson', () => {
  const ten = Array.from({ length: 10 }, () => 7);
  // Wilson, 10 of 10: 0.7225 to 1.
  const bounds = [censored(...ten), left(...ten)].map((observations) => estimateKaplanMeier(observations, 7));
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
      const estimate = estimateKaplanMeier(observations, 7);
      if (estimate === undefined) return;
      const [low, high] = estimate.interval;
      assert.ok(0 <= low && low <= estimate.value && estimate.value <= high && high <= 1, JSON.stringify(estimate));
    }),
  );
});
