// Each kind of difference is made on purpose on a real PostgreSQL, found and named; a clean day has none.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Client } from 'pg';
import { afterAll, beforeAll, beforeEach, test } from 'vitest';
import { type Database, openLedgerDatabase } from '../../../../api/billing/database/database.ts';
import { toCallerAccount, toPlatformAccount } from '../../../../api/billing/ledger/accounts.ts';
import { negate, parseMoney } from '../../../../api/billing/ledger/money.ts';
import { recordBatch, rollUp } from '../../../../api/accounting/metering/usage-store.ts';
import { parseDay } from '../../../../api/accounting/reconciliation/comparison.ts';
import { reconcileDay } from '../../../../api/accounting/reconciliation/start-reconciliation.ts';
import type {
  ComparisonName,
  ComparisonResult,
  Reconciliation,
} from '../../../../api/accounting/reconciliation/result.ts';
import type { ListPrices } from '../../../../api/accounting/reconciliation/compare/prices.ts';
import { ReconciliationStore } from '../../../../api/accounting/reconciliation/reconciliation-store.ts';
import { giveUp } from '../../../support/ledger/model-suite.ts';
import { toSuperuserUrl, sharePostgres, type SharedPostgres } from '../../../support/ledger/postgres.ts';
import { DayRecords, tamper } from '../../../support/reconciliation/day-records.ts';

const day = '2026-03-02';
const later = new Date('2026-03-03T00:30:00Z');
let postgres: SharedPostgres;
let database: Database;
let client: Client;
let records: DayRecords;
let count = 0;
const model = { label: 'A', maker: 'a', quality: 'light', tier: 'free', upstream: 'a' } as const;
const listPrices: ListPrices = {
  models: [{ ...model, id: 'priced', in_per_m: parseMoney('1'), out_per_m: parseMoney('10') }],
  embeddings: [],
};

beforeAll(async () => {
  postgres = await sharePostgres();
});
afterAll(() => postgres.stop());

beforeEach(async () => {
  const url = await postgres.createDatabase(`reconciliation${(count += 1)}`);
  database = await openLedgerDatabase(url);
  client = new Client({ connectionString: toSuperuserUrl(url) });
  await client.connect();
  records = new DayRecords(database);
  return async () => {
    await client.end();
    await database.close();
  };
});

async function reconciled(now = later, of = day): Promise<Omit<Reconciliation, 'explanation'>> {
  return reconcileDay({ database, router: records.router, prices: listPrices, now }, parseDay(of, now));
}

function named(made: Omit<Reconciliation, 'explanation'>, name: ComparisonName): ComparisonResult {
  return made.comparisons.find((one) => one.name === name) ?? assert.fail(name);
}

/** Differences as kind, subject, number and money. */
function differences({ differences: found }: ComparisonResult): unknown[] {
  return found.map(({ kind, subject, events, usd }) => [kind, subject, events, usd]);
}

/** Requests of a gateway, one a second from noon on, with these numbers. */
async function pass(numbers: readonly number[]): Promise<void> {
  const noon = BigInt(Date.parse(`${day}T12:00:00Z`)) * 1_000_000n;
  const entries = numbers.map((number) => {
    const startNs = noon + BigInt(number) * 1_000_000_000n;
    const at = new Date(Number(startNs / 1_000_000n));
    const use = { id: `gateway-a-${number}`, kind: 'visit', at, app: 'chat-ui-1', status: 200, bytesOut: 10 };
    return { counter: BigInt(number), startNs, endNs: startNs + 1_000_000n, isLost: false, event: use };
  });
  await recordBatch(database, 'gateway-a', entries);
  await client.query('update metering.instance set first_received_at = $1, last_received_at = $1', [records.now]);
}

const upTo = (last: number): number[] => Array.from({ length: last }, (_none, index) => index + 1);

test('a clean day is equal everywhere, and reports every side', async () => {
  for (const kind of ['ask', 'ask', 'own', 'tool', 'app'] as const) await records.call(kind);
  await pass(upTo(20));
  const made = await reconciled();
  assert.deepEqual(
    made.comparisons.map(({ name, outcome, differences: { length } }) => [name, outcome, length]),
    [
      ['gateway', 'equal', 0],
      ['ledger', 'equal', 0],
      ['router', 'equal', 0],
      ['prices', 'equal', 0],
      ['sums', 'equal', 0],
    ],
  );
  assert.deepEqual([made.waits, made.complete, made.unexplained], [false, true, { events: 0, usd: '0' }]);
  const two = { events: 2, usd: '0.005' };
  const one = { events: 1, usd: '0.0025' };
  assert.deepEqual(named(made, 'router').lines, [
    { name: 'platform', of: null, left: two, right: two },
    { name: 'own_key', of: null, left: one, right: one },
    { name: 'account', of: null, left: two, right: two },
  ]);
  assert.deepEqual(
    named(made, 'ledger').lines.map(({ name, left, right }) => [name, left.events, left.usd, right.usd]),
    [
      ['ask', 3, '0.0075', '0.0075'],
      ['tool', 1, '0.0025', '0.0025'],
      ['app', 1, '0.0025', '0.0025'],
    ],
  );
  assert.deepEqual(
    named(made, 'gateway').lines.map(({ of, left, right }) => [of, left.events, right.events]),
    [['gateway-a, run 1', 20, 20]],
  );
  assert.deepEqual(
    named(made, 'sums').lines.map(({ name, left, right }) => [name, left.events, right.events]),
    [
      ['hours', 25, 25],
      ['days', 25, 25],
      ['visits', 20, 20],
    ],
  );
});

test('an empty day is equal', async () => {
  const made = await reconciled();
  assert.ok(made.comparisons.every(({ outcome }) => outcome === 'equal'));
});

test('reports requests that a gateway counted: lost, missing, refused, and one that is none of these', async () => {
  await pass(upTo(10).filter((number) => number !== 4 && number !== 5));
  await client.query('update metering.gap set lost_at = clock_timestamp()');
  await pass([12]);
  await client.query('update metering.instance set refused = int8multirange(int8range(13, 15)), newest = 14');
  const made = await reconciled();
  const run = 'gateway-a, run 1';
  const explained = [
    ['lost', `${run}, requests 4 to 5`, 2, '0'],
    ['missing', run, 1, '0'],
    ['refused', run, 2, '0'],
  ];
  assert.deepEqual(differences(named(made, 'gateway')), explained);
  assert.deepEqual([named(made, 'gateway').outcome, made.unexplained.events, made.waits], ['explained', 0, true]);
  // Another day of the same run.
  await client.query("update metering.instance set last_received_at = '2026-03-03T01:00:00Z'");
  const next = await reconciled(new Date('2026-03-04T00:30:00Z'), '2026-03-03');
  assert.deepEqual(differences(named(next, 'gateway'))[0], ['lost_before', run, 2, '0']);
  // As no record explains.
  await tamper(client, 'update metering.instance set events = events - 1');
  const broken = named(await reconciled(), 'gateway');
  assert.deepEqual(differences(broken), [['unaccounted_requests', run, 1, '0'], ...explained]);
  assert.deepEqual([broken.outcome, broken.unexplained.events], ['different', 1]);
});

test('names calls whose use, hold or cost differs from the settlement', async () => {
  const [noUse, noHold, cheaper, gone] = [
    await records.call('ask'),
    await records.call('tool'),
    await records.call('app'),
    await records.call('tool', '0.004'),
  ];
  await records.call('ask');
  await tamper(client, 'delete from ledger.usage where id = any ($1)', [[noUse, gone]]);
  await tamper(client, 'delete from ledger.hold where id = any ($1)', [[noHold, gone]]);
  await tamper(client, 'update ledger.usage set cost = cost + 0.001 where id = $1', [cheaper]);
  const voided = await records.call('tool', '0.003');
  await tamper(client, "update ledger.hold set state = 'voided', cost = null, transaction_id = null where id = $1", [
    voided,
  ]);
  const unbooked = await records.reserve('ask');
  await records.ledger.pend(unbooked, { reference: null, usage: { kind: 'ask' } });
  await records.ledger.release(unbooked);
  await tamper(client, "update ledger.usage set cost = 0.003, cost_source = 'billed' where id = $1", [unbooked]);
  const ledger = named(await reconciled(), 'ledger');
  const sorted = (rows: unknown[]): unknown[] => rows.toSorted((a, b) => String(a).localeCompare(String(b)));
  assert.deepEqual(
    sorted(differences(ledger)),
    sorted([
      ['no_use', noUse, -1, '-0.0025'],
      ['no_hold', noHold, 0, '0'],
      ['no_hold', `settle:${gone}`, -1, '-0.004'],
      ['cost_differs', cheaper, 0, '0.001'],
      ['not_booked', unbooked, 1, '0.003'],
      ['hold_differs', voided, 0, '0'],
    ]),
  );
  assert.equal(ledger.outcome, 'different');
  // One that changes no number counts as one; one that changes money alone is not counted twice.
  assert.deepEqual(ledger.unexplained, { events: 5, usd: '0.0105' });
});

test('lists pending and abandoned costs separately; a process that died before it wrote the use explains itself', async () => {
  const pending = await records.reserve('ask');
  await records.ledger.pend(pending, { reference: 'gen-1', usage: { kind: 'ask' } });
  const dead = await records.reserve('ask');
  const given = await records.reserve('ask');
  await records.ledger.pend(given, { reference: 'gen-2', usage: { kind: 'ask' } });
  await giveUp(database, given, records.now);
  await records.reserve('tool');
  records.now = new Date(records.now.getTime() + 120_000);
  await records.ledger.expire();
  await records.ledger.settle({ hold: dead, cost: parseMoney('0.002'), source: 'router_record' });
  records.billed(dead, '0.002');
  const made = await reconciled();
  const ledger = named(made, 'ledger');
  assert.deepEqual(differences(ledger), [['late_without_use', dead, -1, '-0.002']]);
  assert.deepEqual(ledger.apart, [
    { kind: 'abandoned', events: 1, usd: '0.01' },
    { kind: 'pending', events: 2, usd: '0.02' },
  ]);
  assert.deepEqual([ledger.outcome, made.waits, made.unexplained.events], ['explained', true, 0]);
});

test('compares a bill with extra, missing, dearer, unsettled and foreign calls', async () => {
  const [missing, dearer, free] = [await records.call('ask'), await records.call('ask'), await records.call('ask')];
  records.bill.splice(0, 2);
  records.billed(dearer, '0.003');
  const pending = await records.reserve('ask');
  await records.ledger.pend(pending, { reference: null, usage: { kind: 'ask' } });
  records.billed(pending, '0.001');
  const released = await records.reserve('ask');
  await records.ledger.release(released);
  records.billed(released, '0.0005');
  const failed = await records.reserve('ask');
  await records.ledger.release(failed);
  records.billed(failed, '0');
  const abandoned = await records.reserve('ask');
  await records.ledger.pend(abandoned, { reference: null, usage: { kind: 'ask' } });
  await giveUp(database, abandoned, records.now);
  records.billed(abandoned, '0.0007');
  const unknown = records.billed(randomUUID(), '0.009');
  const nameless = records.billed(undefined, '0.008');
  records.billed(undefined, '0.5', false);
  const own = await records.call('own');
  const made = await reconciled();
  const router = named(made, 'router');
  const sorted = (rows: unknown[]): unknown[] => rows.toSorted((a, b) => String(a).localeCompare(String(b)));
  assert.deepEqual(
    sorted(differences(router)),
    sorted([
      ['not_in_bill', missing, 1, '0.0025'],
      ['amount_differs', dearer, 0, '-0.0005'],
      ['pending', pending, -1, '-0.001'],
      ['released', released, -1, '-0.0005'],
      ['abandoned', abandoned, -1, '-0.0007'],
      ['not_in_ledger', unknown, -1, '-0.009'],
      ['not_in_ledger', nameless, -1, '-0.008'],
    ]),
  );
  assert.deepEqual(router.lines[0], {
    name: 'platform',
    of: null,
    left: { events: 3, usd: '0.0075' },
    right: { events: 7, usd: '0.0247' },
  });
  assert.deepEqual(router.apart.at(-1), { kind: 'other_callers', events: 1, usd: '0.5' });
  assert.ok(!JSON.stringify(router.differences).includes(free) && !JSON.stringify(router.differences).includes(own));
});

test('lists estimated costs, which explain a bill with a different amount or none', async () => {
  const [unbilled, billed] = [await records.reserve('ask'), await records.reserve('ask')];
  for (const hold of [unbilled, billed])
    await records.ledger.settle({ hold, cost: parseMoney('0.01'), source: 'estimated', usage: { kind: 'ask' } });
  records.billed(billed, '0.004');
  const router = named(await reconciled(), 'router');
  assert.deepEqual(
    new Set(differences(router)),
    new Set([
      ['estimated', unbilled, 1, '0.01'],
      ['estimated', billed, 0, '0.006'],
    ]),
  );
  assert.deepEqual(router.apart, [{ kind: 'estimated', events: 2, usd: '0.02' }]);
  records.answer = { outcome: 'totals', calls: 1, amount: parseMoney('0.004') };
  const sums = named(await reconciled(), 'router');
  assert.deepEqual(differences(sums), [
    ['count_differs', null, 1, '0'],
    ['estimated', null, 0, '0.016'],
  ]);
  records.answer = { outcome: 'not known', why: 'no spend logs' };
  const alone = named(await reconciled(), 'router');
  assert.deepEqual([alone.outcome, alone.apart], ['not_known', [{ kind: 'estimated', events: 2, usd: '0.02' }]]);
});

test('compares settled costs with list prices: nothing billed and more than the list are unexplained', async () => {
  const settle = async (cost: string, tokensIn: number, tokensOut: number): Promise<void> => {
    const hold = await records.reserve('ask');
    const usage = { kind: 'ask', model: 'priced', tokensIn, tokensOut };
    await records.ledger.settle({ hold, cost: parseMoney(cost), source: 'router_record', usage });
    records.billed(hold, cost);
  };
  await settle('0.002', 1_000, 100);
  assert.equal(named(await reconciled(), 'prices').outcome, 'equal');
  // Cached tokens are cheaper.
  await settle('0.0015', 1_000, 100);
  const cheaper = named(await reconciled(), 'prices');
  assert.deepEqual([cheaper.outcome, differences(cheaper)], ['explained', [['off_list', 'priced', 0, '-0.0005']]]);
  await settle('0', 1_000, 100);
  const nothing = named(await reconciled(), 'prices');
  assert.deepEqual(
    [nothing.outcome, new Set(differences(nothing))],
    [
      'different',
      new Set([
        ['billed_nothing', 'priced', 0, '-0.002'],
        ['off_list', 'priced', 0, '-0.0005'],
      ]),
    ],
  );
  await settle('0.009', 1_000, 100);
  const dearer = named(await reconciled(), 'prices');
  assert.ok(differences(dearer).some((one) => JSON.stringify(one) === '["above_list","priced",0,"0.0065"]'));
});

test('counts a call across midnight on the day on which it started, and finds its record of the next day', async () => {
  records.now = new Date('2026-03-02T23:59:59.990Z');
  await records.call('ask');
  assert.equal(records.bill[0]?.at.toISOString().slice(0, 10), '2026-03-03');
  for (const each of ['2026-03-02', '2026-03-03'])
    assert.equal(named(await reconciled(new Date('2026-03-04T01:00:00Z'), each), 'router').outcome, 'equal', each);
});

test('up to now: a call settled a minute ago may not be in the bill yet', async () => {
  const fresh = await records.call('ask');
  records.bill.length = 0;
  const made = await reconciled(new Date(records.now.getTime() + 60_000));
  assert.deepEqual(differences(named(made, 'router')), [['not_yet_billed', fresh, 1, '0.0025']]);
  assert.deepEqual([made.complete, made.waits, made.unexplained.events], [false, true, 0]);
});

test('a router that keeps no records is unknown, and never equal; manual entries are found all the same', async () => {
  await records.call('ask');
  records.answer = { outcome: 'not known', why: 'it has no database' };
  const unknown = named(await reconciled(), 'router');
  assert.deepEqual([unknown.outcome, unknown.reason], ['not_known', 'it has no database.']);
  assert.deepEqual(
    unknown.lines.map(({ name }) => name),
    ['account'],
  );
  await records.ledger.post('by-hand-1', 'correction', [
    { account: toPlatformAccount('litellm'), amount: negate(parseMoney('0.1')) },
    { account: toCallerAccount('somebody'), amount: parseMoney('0.1') },
  ]);
  const corrected = named(await reconciled(), 'router');
  assert.deepEqual(differences(corrected), [['other_entries', null, 0, '0.1']]);
  assert.equal(corrected.outcome, 'different');
});

test('compares sums with a router that reports only sums', async () => {
  await records.call('ask');
  const answer = async (calls: number, usd: string): Promise<ComparisonResult> => {
    records.answer = { outcome: 'totals', calls, amount: parseMoney(usd) };
    return named(await reconciled(), 'router');
  };
  assert.equal((await answer(1, '0.0025')).outcome, 'equal');
  assert.deepEqual(differences(await answer(2, '0.0025')), [['count_differs', null, -1, '0']]);
  const other = await answer(1, '0.003');
  assert.deepEqual(differences(other), [['total_differs', null, 0, '-0.0005']]);
  assert.equal(other.outcome, 'different');
  // It counts by the end of a call.
  const late = await records.reserve('ask');
  const { now } = records;
  records.now = new Date('2026-03-03T00:00:01Z');
  await records.ledger.settle({ hold: late, cost: parseMoney('0.001'), source: 'billed', usage: { kind: 'ask' } });
  records.now = now;
  assert.deepEqual(differences(await answer(1, '0.0025')), [
    ['count_differs', null, 1, '0'],
    ['ended_next_day', null, 0, '0.001'],
  ]);
});

test('finds sums that differ from those of their uses, and missing uses', async () => {
  await pass(upTo(6));
  await database.query(rollUp, []);
  const raw = "delete from ledger.usage where id = 'gateway-a-3'";
  await client.query("update metering.progress set received_until = 'infinity'");
  await tamper(client, raw);
  const found = named(await reconciled(), 'sums');
  assert.deepEqual(differences(found), [['sum_differs', '12:00 chat-ui-1 visit use 2xx', -1, '0']]);
  // Summed up again, the sums agree with what is left.
  await client.query('select metering.roll_up($1)', [day]);
  const gone = await reconciled();
  assert.deepEqual(differences(named(gone, 'sums')), [['uses_gone', null, 1, '0']]);
  // Reported there, and not again on each day after.
  const store = new ReconciliationStore(database);
  await store.write(gone);
  const next = named(await reconciled(new Date('2026-03-04T01:00:00Z'), '2026-03-03'), 'sums');
  assert.deepEqual(differences(next), [['gone_before', null, 1, '0']]);
  assert.equal(next.outcome, 'explained');
  await client.query("update metering.progress set received_until = 'infinity'");
  await tamper(client, 'update metering.day set bytes_out = bytes_out + 1');
  const bytes = named(await reconciled(), 'sums');
  assert.deepEqual(differences(bytes)[0], ['sum_differs', 'chat-ui-1 visit use 2xx', 0, '0']);
  assert.equal(bytes.unexplained.events, 2);
});

test('a day is due once, on one replica, and again while it waits; an explanation holds while the difference is the same', async () => {
  const store = new ReconciliationStore(database);
  const schedule = { afterMs: 1_200_000, againMs: 21_600_000, days: 7, leaseMs: 60_000 };
  assert.equal(await store.claimDue(schedule, new Date('2026-03-03T00:10:00Z')), '2026-03-01');
  await store.release('2026-03-01');
  const claims = await Promise.all([1, 2, 3].map(() => store.claimDue(schedule, later)));
  assert.deepEqual(claims.toSorted(), [day, undefined, undefined]);
  // The replica died: another takes it after the lease.
  assert.equal(await store.claimDue(schedule, new Date(later.getTime() + 61_000)), day);
  await store.release(day);

  const call = await records.call('ask');
  await tamper(client, 'delete from ledger.usage where id = $1', [call]);
  const pending = await records.reserve('ask');
  await records.ledger.pend(pending, { reference: null, usage: { kind: 'ask' } });
  const first = await store.write(await reconciled());
  assert.deepEqual([first.waits, first.unexplained.events, first.explanation], [true, 1, null]);
  assert.equal(await store.claimDue(schedule, later), undefined);
  assert.equal(await store.claimDue(schedule, new Date('2026-03-03T07:00:00Z')), day);
  await store.release(day);
  assert.deepEqual((await store.explain(day, 'Deleted by hand.'))?.explanation, 'Deleted by hand.');
  assert.equal((await store.write(await reconciled())).explanation, 'Deleted by hand.');
  await records.ledger.settle({ hold: pending, cost: parseMoney('0.002'), source: 'router_record' });
  records.billed(pending, '0.002');
  await tamper(client, 'delete from ledger.usage where id = $1', [pending]);
  const changed = await store.write(await reconciled());
  // Two calls without a use, of which the second was in the sums already.
  assert.deepEqual([changed.unexplained.events, changed.explanation, changed.waits], [3, null, false]);
  assert.deepEqual(
    (await store.list(undefined, 10)).map((one) => one.day),
    [day],
  );
  assert.equal(await store.explain('2026-03-01', 'Nothing is there.'), undefined);
});
