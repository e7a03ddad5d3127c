// What visits may accrue: the figures of an attack from one /48, from a /24 and from a /32, and what the statement says of them.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { type Database, openDatabase, parseMoney } from '../../../../../api/billing/index.ts';
import { recordUses, type UsageEvent } from '../../../../../api/accounting/metering/usage-store.ts';
import { readPriceList } from '../../../../../api/billing/prices.ts';
import { createVisitorResolver } from '../../../../../api/accounting/metering/request-class.ts';
import { readRevenueSettings } from '../../../../../api/accounting/revenue/start-revenue.ts';
import {
  noteAuthors,
  postAppDay,
  readStatement,
  type StatementView,
} from '../../../../../api/accounting/revenue/statement.ts';
import { createBlockList } from '../../../../../lib/subnets.ts';
import { migratedDatabase } from '../../../../support/ledger/snapshot.ts';

const day = '2027-03-01';
const prices = readPriceList(undefined, 0);
const visitorOf = createVisitorResolver({ salt: 'salt', trustedProxies: createBlockList([]) });
let database: Database;
let visits = 0;

beforeAll(async () => {
  database = await openDatabase(migratedDatabase);
});
afterAll(() => database.close());

/** Visits of an app, as the gateway's records become uses. */
async function visit(app: string, addresses: readonly string[], each: number): Promise<void> {
  await noteAuthors(
    database,
    [
      {
        app,
        author: `git.test/${app}`,
        repository: `git.test/${app}/app`,
        sharePpm: 700_000,
        submitter: undefined,
        keys: [],
      },
    ],
    new Date(`${day}T00:00:00Z`),
  );
  const events = addresses.flatMap((address): UsageEvent[] => {
    const { hash, network } = visitorOf(address, day);
    return Array.from({ length: each }, () => {
      visits += 1;
      return {
        id: `visit-${visits}`,
        kind: 'visit',
        class: 'use',
        app,
        caller: hash,
        network,
        at: new Date(Date.parse(day) + visits),
      };
    });
  });
  for (let from = 0; from < events.length; from += 5_000) await recordUses(database, events.slice(from, from + 5_000));
}

async function accrue(app: string, budget: string | undefined): Promise<StatementView> {
  await postAppDay(database, {
    app,
    day,
    prices,
    budget: budget === undefined ? readRevenueSettings({}).promotionBudget : parseMoney(budget),
    now: new Date('2027-03-02T01:00:00Z'),
  });
  return readStatement(database, {
    author: `git.test/${app}`,
    month: '2027-03',
    baseUrl: 'https://moorage.test',
    disputeDays: 14,
    buildEventsUrl: (line) => line,
    now: new Date('2027-03-02T01:00:00Z'),
  });
}

const addressesOf48 = Array.from({ length: 256 }, (_, n) => `2001:db8:1:${n.toString(16).padStart(2, '0')}00::1`);

test('attack: one /48 with 256 visitors of 50 visits each accrues what a few visitors would, not $0.896', async () => {
  await visit('from-48', addressesOf48, 50);
  const { closing_usd, capped } = await accrue('from-48', '1000');
  assert.equal(closing_usd, '0.014');
  assert.deepEqual(capped, [
    {
      app: 'from-48',
      day,
      uses: 12_800,
      accrued: 200,
      over_visitor: 0,
      over_network: 12_600,
      over_app: 0,
      over_budget: 0,
    },
  ]);
});

test('attack: one /24 accrues no more', async () => {
  await visit(
    'from-24',
    Array.from({ length: 250 }, (_, n) => `203.0.113.${n + 1}`),
    40,
  );
  const { closing_usd, capped } = await accrue('from-24', '1000');
  assert.ok(Number(closing_usd) <= 0.014, closing_usd);
  assert.equal(capped?.[0]?.uses, 10_000);
});

test('attack: a /32 accrues no more than the cap of the app, however many /48 it has', async () => {
  const networks = Array.from({ length: 120 }, (_, n) => `2001:db9:${n.toString(16)}`);
  await visit(
    'from-32',
    networks.flatMap((network) => [`${network}:100::1`, `${network}:200::1`, `${network}:300::1`]),
    40,
  );
  const { closing_usd, capped } = await accrue('from-32', '1000');
  assert.equal(closing_usd, '0.7');
  assert.deepEqual([capped?.[0]?.uses, capped?.[0]?.accrued, capped?.[0]?.over_app], [14_400, 10_000, 4_400]);
});

test('without a budget of the operator, visits accrue nothing, and the statement says so', async () => {
  await visit('unpaid', ['198.51.100.1', '198.51.100.2'], 3);
  const { closing_usd, capped, lines } = await accrue('unpaid', undefined);
  assert.deepEqual([closing_usd, lines], ['0', []]);
  assert.deepEqual(capped, [
    { app: 'unpaid', day, uses: 6, accrued: 0, over_visitor: 0, over_network: 0, over_app: 0, over_budget: 6 },
  ]);
});

test('all apps of a day share the budget, and what is posted stays', async () => {
  const later = '2027-03-01';
  assert.equal(later, day);
  const paid = z.object({ amount: z.string() });
  const total = async (): Promise<string | undefined> =>
    (
      await database.query(
        {
          name: 'caps-total',
          text: "select sum(amount)::text as amount from revenue.line where item = 'use'",
          row: paid,
        },
        [],
      )
    )[0]?.amount;
  const before = Number(await total());
  await visit(
    'popular',
    Array.from({ length: 60 }, (_, n) => `192.0.${n}.1`),
    5,
  );
  const { closing_usd, capped } = await accrue('popular', String(before + 0.007));
  assert.equal(closing_usd, '0.007');
  assert.equal(capped?.[0]?.over_budget, 200);
  assert.ok(Number(await total()) <= before + 0.007 + 1e-12);
  const again = await accrue('popular', '0');
  assert.equal(again.closing_usd, '0.007', 'a smaller budget takes nothing back');
});

test('a visitor below every cap accrues in full, and nothing is listed as capped', async () => {
  await visit('plain', ['192.0.2.1'], 10);
  const { closing_usd, capped } = await accrue('plain', '1000');
  assert.deepEqual([closing_usd, capped], ['0.0007', []]);
});
