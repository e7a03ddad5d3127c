// The signed record on a real PostgreSQL: replicas together, processes that are killed, postings that commit late, a crash.
import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, test } from 'vitest';
import { Client } from 'pg';
import type { Database } from '../../../../api/billing/index.ts';
import { migrate, readMigrations } from '../../../../api/billing/database/migrate.ts';
import { migrationsFolder, openDatabase, openLedgerDatabase } from '../../../../api/billing/database/database.ts';
import { advanceLog } from '../../../../api/accounting/receipts/ledger-log.ts';
import { verifyRecord } from '../../../../api/accounting/receipts/verify/record.ts';
import { toSuperuserUrl, startPostgres, type Postgres } from '../../../support/ledger/postgres.ts';
import { advanceTo, keys, postAt, receiptKey, signer } from '../../../support/receipts/record.ts';

let postgres: Postgres;
let database: Database;
let url = '';
let count = 0;
beforeAll(async () => {
  postgres = await startPostgres();
});
beforeEach(async () => {
  url = await postgres.createDatabase(`record${(count += 1)}`);
  database = await openLedgerDatabase(url);
  return () => database.close();
});
afterAll(() => postgres.stop());

const verdict = (now: string) => verifyRecord({ database, keys, now: new Date(now) });
const post = (n: number, at = '2026-03-01T12:00:00Z') => postAt(database, { reference: `r${n}`, at });
const many = (from: number, to: number, at?: string) =>
  Promise.all(Array.from({ length: to - from }, (_, n) => post(from + n, at)));

test('two replicas in parallel link each posting once', async () => {
  await many(0, 600);
  const other = await openLedgerDatabase(url);
  try {
    const steps = await Promise.all(
      Array.from({ length: 40 }, (_, n) =>
        advanceTo(n % 2 === 0 ? database : other, '2026-03-02T12:00:00Z', { batch: 50 }),
      ),
    );
    assert.equal(
      steps.reduce((sum, { linked }) => sum + linked, 0),
      600,
    );
    assert.equal(
      steps.reduce((sum, { sealed }) => sum + sealed, 0),
      1,
    );
  } finally {
    await other.close();
  }
  assert.deepEqual(await verdict('2026-03-02T12:30:00Z'), {
    findings: [],
    links: 600,
    days: 1,
    newest: '2026-03-02T12:00:00Z',
  });
});

test('links a posting with a lower number that commits later, into the current day if its own is sealed', async () => {
  const slow = new Client({ connectionString: url });
  await slow.connect();
  const postOn = (reference: string) =>
    slow.query('select ledger.post($1, $2, $3, $4)', [
      reference,
      'settle',
      JSON.stringify([
        { kind: 'caller', owner: 'slow', daily: true, amount: '1' },
        { kind: 'platform', owner: 'slow', daily: true, amount: '-1' },
      ]),
      '2026-03-01T12:00:00Z',
    ]);
  await slow.query('begin');
  await postOn('slow');
  await many(0, 20);
  assert.deepEqual(await advanceTo(database, '2026-03-01T12:00:10Z'), { linked: 20, sealed: 0 });
  assert.deepEqual(await advanceTo(database, '2026-03-02T00:05:00Z'), { linked: 0, sealed: 1 });
  await slow.query('commit');
  await slow.end();
  assert.deepEqual(await advanceTo(database, '2026-03-02T00:05:10Z'), { linked: 1, sealed: 0 });
  assert.deepEqual((await verdict('2026-03-02T00:06:00Z')).findings, []);
});

test('the record stays consistent when processes are killed at any time, and when the server crashes', async () => {
  let posted = 0;
  for (let round = 0; round < 6; round += 1) {
    await many(posted, (posted += 150), `2026-03-0${round + 1}T12:00:00Z`);
    const worker = startWorker(url, `2026-03-0${round + 2}T06:00:00Z`);
    await once(worker.stdout ?? assert.fail(), 'data');
    await sleep(Math.random() * 120);
    worker.kill('SIGKILL');
    await once(worker, 'exit');
    if (round === 3) {
      await database.close();
      await postgres.crash();
      database = await openLedgerDatabase(url);
    }
  }
  // Until the server has seen that the last one is gone, the lock is its.
  const deadline = Date.now() + 10_000;
  while (Date.now() < deadline) {
    await advanceTo(database, '2026-03-08T12:00:00Z');
    if ((await verdict('2026-03-08T12:00:00Z')).findings.length === 0) break;
    await sleep(100);
  }
  const { findings, links, days } = await verdict('2026-03-08T12:00:00Z');
  assert.deepEqual([findings, links, days], [[], posted, 7]);
});

test('an installation with transactions from before receipts links and seals from the first one on', async () => {
  await database.close();
  url = await postgres.createEmptyDatabase('before');
  database = await openDatabase(url);
  const migrations = readMigrations(migrationsFolder);
  await migrate(
    database,
    migrations.filter(({ name }) => name < '021'),
  );
  await many(0, 30, '2026-01-31T12:00:00Z');
  assert.equal((await migrate(database, migrations))[0], '021-receipts.sql');
  await many(30, 60, '2026-02-02T12:00:00Z');
  assert.deepEqual(await advanceTo(database, '2026-02-03T12:00:00Z', { batch: 7 }), { linked: 60, sealed: 3 });
  assert.deepEqual((await verdict('2026-02-03T12:00:00Z')).findings, []);
});

test('anyone who kept a day or a checkpoint detects a record rolled back to an earlier state', async () => {
  await many(0, 30);
  await advanceTo(database, '2026-03-02T12:00:00Z');
  await many(30, 40, '2026-03-02T12:00:00Z');
  const read = async (table: string): Promise<unknown> => {
    const client = new Client({ connectionString: url });
    await client.connect();
    const { rows } = await client.query<{ document: unknown }>(`select document from receipts.${table}`);
    await client.end();
    return rows[0]?.document;
  };
  const earlier = await read('checkpoint');
  await advanceTo(database, '2026-03-02T13:00:00Z');
  const witnesses = [await read('checkpoint'), await read('day')];
  const at = { database, keys, now: new Date('2026-03-02T13:00:00Z') };
  assert.deepEqual((await verifyRecord({ ...at, witnesses })).findings, []);
  const tampering = await openDatabase(toSuperuserUrl(url));
  await tampering.transaction((transaction) =>
    transaction.script(`set local session_replication_role = replica;
      delete from ledger.entry where transaction_id in (select transaction_id from receipts.link where day = '2026-03-02');
      delete from ledger.transaction where id in (select transaction_id from receipts.link where day = '2026-03-02');
      delete from receipts.link where day = '2026-03-02';
      update receipts.checkpoint set document = '${JSON.stringify(earlier)}'`),
  );
  await tampering.close();
  assert.deepEqual((await verifyRecord(at)).findings, []);
  assert.match(
    (await verifyRecord({ ...at, witnesses })).findings.join('\n'),
    /first 10 links are not those that were signed/,
  );
});

test('settling does not wait for a lock of the record', async () => {
  await many(0, 10);
  const holding = new Client({ connectionString: url });
  await holding.connect();
  await holding.query('begin');
  await holding.query('select pg_advisory_xact_lock(7201133512)');
  assert.deepEqual(await advanceLog({ database, signer }), { linked: 0, sealed: 0, more: false });
  await many(10, 20);
  await holding.query('rollback');
  await holding.end();
  assert.equal((await advanceTo(database, '2026-03-01T13:00:00Z')).linked, 20);
});

function startWorker(...argv: string[]): ChildProcess {
  return spawn(process.execPath, [join(import.meta.dirname, '../../../support/receipts/worker.ts'), ...argv], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, MOORAGE_RECEIPT_KEY: receiptKey },
  });
}
