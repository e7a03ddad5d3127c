// Random tamperings with a database, by someone who has all its rights but not the signing key: verification finds each.
import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { Client } from 'pg';
import { Database, openLedgerDatabase } from '../../../../api/billing/database/database.ts';
import { verifyRecord } from '../../../../api/accounting/receipts/verify/record.ts';
import { toSuperuserUrl, sharePostgres, type SharedPostgres } from '../../../support/ledger/postgres.ts';
import { chooseRepetitions } from '../../../support/repetitions.ts';
import { advanceTo, keys, postAt } from '../../../support/receipts/record.ts';
import { rechain, tamperings } from '../../../support/receipts/tamperings.ts';

const rounds = chooseRepetitions({ usual: tamperings.length, deep: 1_000 });
const firstDay = Date.UTC(2026, 2, 1);
const now = '2026-03-06T12:00:00Z';
const perDay = chooseRepetitions({ usual: 50, deep: 420 });
/** More than a tile of the tree has leaves. */
const longDay = { day: 1, transactions: Math.max(280, perDay) };
/** Fewer links than a day has. */
const page = 40;

let postgres: SharedPostgres;
let client: Client;
/** The one connection, in a transaction that is rolled back to before each tampering. */
let database: Pick<Database, 'transaction'>;

beforeAll(async () => {
  postgres = await sharePostgres();
  const url = await postgres.createDatabase('tampering');
  const ledger = await openLedgerDatabase(url);
  for (let day = 0; day < 6; day += 1)
    for (let n = 0; n < (day === longDay.day ? longDay.transactions : perDay); n += 1)
      await postAt(ledger, {
        reference: `r${day}-${n}`,
        at: new Date(firstDay + day * 86_400_000 + n * (day === 5 ? 100_000 : 200_000)).toISOString(),
        caller: `caller-${n % 17}`,
        amount: `0.${String(randomInt(1, 1e9)).padStart(12, '0')}`,
      });
  await advanceTo(ledger, now, { batch: 500 });
  await ledger.close();
  client = new Client({ connectionString: toSuperuserUrl(url) });
  await client.connect();
  const connection = {
    rows: async ({ text }: { text: string }, values: readonly unknown[]) =>
      (await client.query<Record<string, unknown>>(text, [...values])).rows,
    script: async (sql: string) => {
      // The transaction has begun already.
      if (!sql.includes('isolation level')) await client.query(sql);
    },
  };
  database = new Database({
    connections: 1,
    ...connection,
    transaction: (work) => work(connection),
    close: () => client.end(),
  });
});
afterAll(async () => {
  await client.end();
  await postgres.stop();
});

beforeEach(() => client.query('begin; set local session_replication_role = replica'));
afterEach(() => client.query('rollback'));

const findings = async () => (await verifyRecord({ database, keys, now: new Date(now), page })).findings;

test(`detects all of ${rounds} random manipulations`, async () => {
  assert.deepEqual(await findings(), []);
  const made = new Map<string, number>();
  for (let round = 0; round < rounds; round += 1) {
    const tampering = tamperings[round % tamperings.length];
    assert.ok(tampering !== undefined);
    await client.query('savepoint before');
    const what = await tampering.make(client);
    const found = await findings();
    expect(found.length, `${tampering.name} (${what}) was not found`).toBeGreaterThan(0);
    if (tampering.names !== undefined) expect(found.join('\n'), tampering.name).toMatch(tampering.names(what));
    await client.query('rollback to savepoint before');
    made.set(tampering.name, (made.get(tampering.name) ?? 0) + 1);
  }
  assert.deepEqual(await findings(), []);
  process.stdout.write(`${JSON.stringify(Object.fromEntries(made))}\n`);
});

test('the helper that recomputes the chain for a manipulation reproduces the genuine chain', async () => {
  await rechain(client, '2026-03-02');
  assert.deepEqual(await findings(), []);
});
