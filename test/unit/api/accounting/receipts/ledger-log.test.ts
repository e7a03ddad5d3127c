// The record of the ledger on the embedded database: which day a posting is in, what is sealed, and what is refused.
import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'vitest';
import { z } from 'zod';
import { computeDayDigest, hashLeaf } from '../../../../../api/accounting/receipts/format/documents.ts';
import { computeRootFromPath, emptyRoot, startChain } from '../../../../../api/accounting/receipts/format/hashes.ts';
import { days, readCheckpoint } from '../../../../../api/accounting/receipts/ledger-log-queries.ts';
import { readProofs } from '../../../../../api/accounting/receipts/receipts.ts';
import { type Database, openDatabase } from '../../../../../api/billing/index.ts';
import { migratedDatabase } from '../../../../support/ledger/snapshot.ts';
import { advanceTo, postAt } from '../../../../support/receipts/record.ts';

let database: Database;
beforeEach(async () => {
  database = await openDatabase(migratedDatabase);
});
afterEach(() => database.close());

const links = {
  name: 'test-links',
  text: "select transaction_id::text as id, to_char(day, 'YYYY-MM-DD') as day, position from receipts.link order by day, position",
  row: z
    .object({ id: z.string(), day: z.string(), position: z.number() })
    .transform((row) => `${row.day} ${row.position} #${row.id}`),
};
const sealed = async () => (await database.query(days, [null, 100])).map(({ document }) => document).reverse();
const checkpoint = async () => (await database.query(readCheckpoint, []))[0]?.document;

test('a posting is linked into the day of its own time, and a day is sealed once its margin is over', async () => {
  const first = await postAt(database, { reference: 'a', at: '2026-03-01T23:59:59.999999Z' });
  const second = await postAt(database, { reference: 'b', at: '2026-03-02T00:00:00Z' });
  assert.deepEqual(await advanceTo(database, '2026-03-02T00:04:59Z'), { linked: 2, sealed: 0 });
  assert.deepEqual(await database.query(links, []), [`2026-03-01 0 #${first}`, `2026-03-02 0 #${second}`]);
  assert.deepEqual(
    (await checkpoint())?.open.map(({ day, count }) => [day, count]),
    [
      ['2026-03-01', 1],
      ['2026-03-02', 1],
    ],
  );
  const late = await postAt(database, { reference: 'c', at: '2026-03-01T12:00:00Z' });
  assert.deepEqual(await advanceTo(database, '2026-03-02T00:05:00Z'), { linked: 1, sealed: 1 });
  assert.deepEqual((await database.query(links, []))[1], `2026-03-01 1 #${late}`);
  assert.equal((await sealed())[0]?.count, 2);
});

test('a posting that commits after its day was sealed goes into the current day, and so does one from the future', async () => {
  await postAt(database, { reference: 'a', at: '2026-03-01T12:00:00Z' });
  await advanceTo(database, '2026-03-02T01:00:00Z');
  const late = await postAt(database, { reference: 'b', at: '2026-03-01T23:00:00Z' });
  const early = await postAt(database, { reference: 'c', at: '2026-03-09T00:00:00Z' });
  await advanceTo(database, '2026-03-02T02:00:00Z');
  assert.deepEqual((await database.query(links, [])).slice(1), [`2026-03-02 0 #${late}`, `2026-03-02 1 #${early}`]);
  // A clock that goes back reopens no day.
  const back = await postAt(database, { reference: 'd', at: '2026-03-01T23:00:00Z' });
  await advanceTo(database, '2026-03-01T23:30:00Z');
  assert.equal((await database.query(links, [])).at(-1), `2026-03-02 2 #${back}`);
});

test('days without postings are sealed as well, each naming the one before', async () => {
  assert.deepEqual(await advanceTo(database, '2026-03-05T12:00:00Z'), { linked: 0, sealed: 0 });
  assert.equal(await checkpoint(), undefined);
  await postAt(database, { reference: 'a', at: '2026-03-01T12:00:00Z' });
  assert.deepEqual(await advanceTo(database, '2026-03-05T12:00:00Z'), { linked: 1, sealed: 4 });
  const all = await sealed();
  assert.deepEqual(
    all.map(({ day, count }) => `${day} ${count}`),
    ['2026-03-01 1', '2026-03-02 0', '2026-03-03 0', '2026-03-04 0'],
  );
  assert.deepEqual(
    all.map(({ previous }) => previous),
    [null, ...all.slice(0, -1).map(computeDayDigest)],
  );
  assert.equal(all[3]?.root, emptyRoot.toString('hex'));
  assert.equal(all[3].head, startChain('2026-03-04').toString('hex'));
  assert.deepEqual(await advanceTo(database, '2026-03-05T12:00:00Z'), { linked: 0, sealed: 0 });
});

test('what waits is linked in batches, more than a hundred days in more than one step', async () => {
  for (let n = 0; n < 25; n += 1)
    await postAt(database, { reference: `r${n}`, at: new Date(Date.UTC(2026, 0, 1 + n * 10, 12)).toISOString() });
  assert.deepEqual(await advanceTo(database, '2026-12-01T12:00:00Z', { batch: 10 }), { linked: 25, sealed: 334 });
});

test('a proof leads to the root of its day, across tiles; an open day has none yet', async () => {
  const ids: string[] = [];
  for (let n = 0; n < 300; n += 1) ids.push(await postAt(database, { reference: `r${n}`, at: '2026-03-01T12:00:00Z' }));
  await advanceTo(database, '2026-03-02T12:00:00Z');
  const open = await postAt(database, { reference: 'open', at: '2026-03-02T13:00:00Z' });
  await advanceTo(database, '2026-03-02T14:00:00Z');
  const waits = await postAt(database, { reference: 'waits', at: '2026-03-02T15:00:00Z' });
  const proofs = await readProofs(database, [...ids, open, waits, '999999']);
  const [day] = await sealed();
  for (const id of ids) {
    const { leaf, proof } = proofs.get(id) ?? assert.fail();
    assert.ok(proof !== undefined && day !== undefined);
    const path = proof.path.map((hash) => Buffer.from(hash, 'hex'));
    assert.equal(computeRootFromPath(hashLeaf(leaf), proof.position, day.count, path)?.toString('hex'), day.root);
  }
  assert.equal(proofs.get(open)?.leaf.reference, 'open');
  assert.equal(proofs.get(open)?.proof, undefined);
  assert.equal(proofs.has(waits), false);
});

test('a record that was changed since it was signed is not continued', async () => {
  await postAt(database, { reference: 'a', at: '2026-03-01T12:00:00Z' });
  await postAt(database, { reference: 'b', at: '2026-03-01T12:00:00Z' });
  await advanceTo(database, '2026-03-01T13:00:00Z');
  const change = (sql: string) =>
    database.transaction((transaction) => transaction.script(`set local session_replication_role = replica; ${sql}`));
  await change('delete from receipts.link where position = 1');
  await assert.rejects(advanceTo(database, '2026-03-01T14:00:00Z'), /not those that were signed last/);
});

test('a link in the middle that was changed keeps its day from being sealed', async () => {
  await postAt(database, { reference: 'a', at: '2026-03-01T12:00:00Z' });
  await postAt(database, { reference: 'b', at: '2026-03-01T12:00:00Z' });
  await advanceTo(database, '2026-03-01T13:00:00Z');
  await database.transaction((transaction) =>
    transaction.script(
      "set local session_replication_role = replica; update receipts.link set hash = sha256('x') where position = 0",
    ),
  );
  await assert.rejects(advanceTo(database, '2026-03-03T00:00:00Z'), /2026-03-01 cannot be sealed/);
  await assert.rejects(
    database.transaction((transaction) => transaction.script('delete from receipts.link')),
    /what is signed stays as it is/,
  );
});
