// The uses of an older schema are carried over into the tables of their days, and a pending one is settled there.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { z } from 'zod';
import { migrate, readMigrations } from '../../../../../api/billing/database/migrate.ts';
import { migrationsFolder, openDatabase } from '../../../../../api/billing/database/database.ts';
import { Ledger } from '../../../../../api/billing/ledger/ledger.ts';
import { parseMoney } from '../../../../../api/billing/ledger/money.ts';
import { createHold } from '../../../../support/ledger/hold.ts';

test('uses of before are in the table of their day, those of a hold at its time, and a pending one is settled', async () => {
  const database = await openDatabase('pglite:');
  const migrations = readMigrations(migrationsFolder);
  await migrate(
    database,
    migrations.filter(({ name }) => name < '019'),
  );
  const ledger = new Ledger(database);
  const hold = createHold();
  await ledger.reserve(hold);
  await database.transaction((transaction) =>
    transaction.script(`select ledger.pend('${hold.id}', null, '{"kind":"ask","model":"m"}', 5000);
      insert into ledger.usage (id, kind, at, cost, cost_source)
      select 'old-' || n, 'app', timestamptz '2026-02-27T12:00Z' + n * interval '1 day', 0.5, 'tariff' from generate_series(1, 3) n`),
  );
  await migrate(database, migrations);
  const rows = async (): Promise<unknown[]> =>
    database.query(
      {
        name: 'test-carried',
        text: `select u.id, u.tableoid::regclass::text as day, u.cost::text, u.cost_source as source, coalesce(u.at = h.created_at, true) as at_hold
          from ledger.usage u left join ledger.hold h on h.id::text = u.id order by u.at`,
        row: z.unknown(),
      },
      [],
    );
  const old = ['20260228', '20260301', '20260302'].map((day, index) => ({
    id: `old-${index + 1}`,
    day: `ledger.usage_${day}`,
    cost: '0.500000000000',
    source: 'tariff',
    at_hold: true,
  }));
  const today = `ledger.usage_${new Date().toISOString().slice(0, 10).replaceAll('-', '')}`;
  const own = { id: hold.id, day: today, at_hold: true };
  assert.deepEqual(await rows(), [...old, { ...own, cost: null, source: 'pending' }]);
  await ledger.settle({ hold: hold.id, cost: parseMoney('0.002'), source: 'router_record' });
  assert.deepEqual(await rows(), [...old, { ...own, cost: '0.002000000000', source: 'router_record' }]);
  assert.deepEqual(await ledger.audit(), []);
  await database.close();
});
