// Callers of apps, counted from the ledger: first and last calls, who left and who is still followed, and retention of it.
import assert from 'node:assert/strict';
import { afterEach, beforeAll, afterAll, test } from 'vitest';
import { z } from 'zod';
import type { Database } from '../../../../../api/billing/database/database.ts';
import { openLedgerDatabase } from '../../../../../api/billing/database/open.ts';
import { Callers } from '../../../../../api/catalog/rank/callers.ts';
import type { Observation } from '../../../../../api/catalog/rank/kaplan-meier.ts';
import { retentionOf } from '../../../../../api/catalog/rank/retention.ts';
import { addUses, callsOf } from '../../../../support/catalog/uses.ts';
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
  ((await callers.observations()).get(app) ?? []).toSorted(
    (a, b) => a.time - b.time || Number(a.left) - Number(b.left),
  );

test('one who called once has left after no time; one who calls on is followed; who is new is not judged yet', async () => {
  await addUses(database, [
    ...callsOf('chat', 'once', days(30)),
    ...callsOf('chat', 'three days', days(20), days(17)),
    ...callsOf('chat', 'long', days(40), days(20)),
    ...callsOf('chat', 'still here', days(30), days(1)),
    ...callsOf('chat', 'here for a while', days(10), days(1)),
    ...callsOf('chat', 'new', days(3), days(1)),
    ...callsOf('draw', 'once', days(8)),
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
  await addUses(database, callsOf('chat', 'a', days(30), days(25)));
  const callers = new Callers(database);
  await callers.update();
  await callers.update();
  assert.deepEqual(await observed(callers, 'chat'), [{ time: days(5), left: true, count: 1 }]);
  await addUses(database, callsOf('chat', 'a', 0));
  await new Callers(database).update();
  assert.deepEqual(await observed(callers, 'chat'), [{ time: days(7), left: false, count: 1 }]);
});

test('calls of models and calls before the time that is followed do not count', async () => {
  await addUses(database, [
    { kind: 'v1', app: 'chat', hours: days(20), cost: '1' },
    ...callsOf('chat', 'old', days(100)),
    ...callsOf('chat', 'a', days(20)),
  ]);
  const callers = new Callers(database);
  await callers.update();
  assert.deepEqual(await observed(callers, 'chat'), [{ time: 0, left: true, count: 1 }]);
});

test('who has been away for long is forgotten', async () => {
  await run(
    `insert into catalog.caller values ('chat', 'old', now() - interval '200 days', now() - interval '91 days')`,
  );
  await addUses(database, callsOf('chat', 'a', days(20)));
  const callers = new Callers(database);
  await callers.update();
  assert.equal((await run('select from catalog.caller')).length, 1);
});

test('an empty ledger is read at once', async () => {
  const callers = new Callers(database);
  await callers.update();
  assert.equal((await callers.observations()).size, 0);
});

test('retention is null where there is nobody, or nobody was followed for long enough', () => {
  assert.deepEqual(retentionOf([]), { reason: 'Nobody has called this app through the API long enough ago.', n: 0 });
  const early = retentionOf([
    { time: 0, left: true, count: 2 },
    { time: 30, left: false, count: 3 },
  ]);
  assert.deepEqual(early, { reason: 'No caller of this app has been followed for 7 days yet.', n: 5 });
});

test('retention of four callers of whom one left at once and one after three days', () => {
  const retention = retentionOf([
    { time: 0, left: true, count: 1 },
    { time: days(3), left: true, count: 1 },
    { time: days(7), left: false, count: 2 },
  ]);
  assert.ok('estimate' in retention);
  assert.ok(Math.abs(retention.estimate.value - 0.5) < 1e-12);
  assert.equal(retention.estimate.n, 4);
});
