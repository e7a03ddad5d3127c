// Sums of uses by hour and day: made again from the uses they are the same, and they stay when the uses are dropped.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { z } from 'zod';
import { recordUses, rollUp, type UsageEvent } from '../../../../../api/accounting/metering/usage-store.ts';
import { type Statement, openDatabase } from '../../../../../api/billing/database/database.ts';
import { Ledger } from '../../../../../api/billing/ledger/ledger.ts';
import { migratedDatabase } from '../../../../support/ledger/snapshot.ts';

const read = (name: string, text: string): Statement<unknown> => ({ name: `test-${name}`, text, row: z.unknown() });
const hours = read('hours', 'select * from metering.hour order by hour, app, kind, class, status_class');
const days = read('days', 'select * from metering.day order by day, app, kind, class, status_class');
const fromUses = read(
  'from-uses',
  `select (at at time zone 'utc')::date as day, coalesce(app, '') as app, kind, class, (coalesce(status / 100, 0))::smallint as status_class, count(*) as uses,
      coalesce(sum(bytes_in), 0)::bigint as bytes_in, coalesce(sum(bytes_out), 0)::bigint as bytes_out, coalesce(sum(latency_ms), 0)::bigint as latency_ms, count(latency_ms) as timed
    from ledger.usage group by 1, 2, 3, 4, 5 order by 1, 2, 3, 4, 5`,
);
const again = read('again', 'select metering.roll_up(day) from (select distinct day from metering.day) d');
const partitions = read('partitions', 'select count(*)::int as count from ledger.usage_days()');
const left = read('left', 'select count(*)::int as count from ledger.usage_default');

function events(count: number, from: number, prefix: string): UsageEvent[] {
  return Array.from({ length: count }, (_, index) => ({
    id: `${prefix}-${index}`,
    kind: 'visit',
    class: index % 3 === 0 ? 'asset' : 'use',
    at: new Date(from + index * 600_000),
    ...(index % 7 === 0 ? {} : { app: `app-${index % 2}` }),
    ...(index % 5 === 0 ? {} : { latencyMs: index }),
    status: index % 4 === 0 ? 404 : 200,
    bytesIn: index,
    bytesOut: index * 10,
  }));
}

test('sums are those of the uses, also of late ones; made again they are the same; dropping a day keeps them', async () => {
  const database = await openDatabase(migratedDatabase);
  const ledger = new Ledger(database);
  const from = Date.now() - 10 * 86_400_000;
  await recordUses(database, events(600, from, 'first'));
  assert.notDeepEqual(await database.query(left, []), [{ count: 0 }]);
  await ledger.makeDays();
  assert.deepEqual(await database.query(left, []), [{ count: 0 }]);
  await database.query(rollUp, []);
  assert.deepEqual(await database.query(days, []), await database.query(fromUses, []));
  // Uses of days that are summed up already.
  await recordUses(database, events(300, from + 123_456, 'late'));
  await database.query(rollUp, []);
  const sums = [await database.query(hours, []), await database.query(days, [])];
  assert.deepEqual(sums[1], await database.query(fromUses, []));
  await database.query(again, []);
  assert.deepEqual([await database.query(hours, []), await database.query(days, [])], sums);

  const [before] = await database.query(partitions, []);
  while ((await ledger.purge(7)) > 0) continue;
  assert.notDeepEqual((await database.query(partitions, []))[0], before);
  await database.query(rollUp, []);
  await database.query(again, []);
  assert.deepEqual([await database.query(hours, []), await database.query(days, [])], sums);
  await database.close();
});
