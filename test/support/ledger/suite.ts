// What the ledger promises, as tests that run on any database it supports.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, test } from 'vitest';
import { z } from 'zod';
import {
  toAuthorAccount,
  toCallerAccount,
  toOwnKeyAccount,
  toOwnKeyRouterAccount,
  toKeyAccount,
  toRevenueAccount,
} from '../../../api/billing/ledger/accounts.ts';
import { type Database, migrationsFolder } from '../../../api/billing/database/database.ts';
import { Ledger, type Line, type ReserveRequest } from '../../../api/billing/ledger/ledger.ts';
import { negate, parseMoney, type Money } from '../../../api/billing/ledger/money.ts';
import { migrate, readMigrations } from '../../../api/billing/database/migrate.ts';
import { reconcile, type LookupResult } from '../../../api/billing/ledger/reconciler.ts';
import { recordUses } from '../../../api/accounting/metering/usage-store.ts';
import { estimateSuite } from './estimate-suite.ts';
import { groupSuite } from './group-suite.ts';
import { createHold } from './hold.ts';
import { idempotencySuite } from './idempotency-suite.ts';
import { modelSuite } from './model-suite.ts';

const usd = parseMoney;
const unfinishedHolds = {
  name: 'test-unfinished',
  text: "select id from ledger.hold where state in ('open', 'pending') union select hold_id from ledger.pending where abandoned_at is null",
  row: z.object({ id: z.string() }),
};

/** A charge, and the share of it that goes on to an author. */
function chargeLines(payer: string, app: string, author: string, price: Money, share: Money): Line[] {
  return [
    { account: toKeyAccount(payer), amount: price },
    { account: toRevenueAccount(app), amount: negate(price) },
    { account: toRevenueAccount(app), amount: share },
    { account: toAuthorAccount(author), amount: negate(share) },
  ];
}

/** Adds the suite. `open` gives a migrated database, which the suite closes. */
export function ledgerSuite(
  engine: string,
  open: () => Promise<Database>,
  runs: { readonly sequential: number; readonly concurrent: number },
  /** Opens the same database as the owner of its schema, where `open` uses another role. */
  openAsOwner?: () => Promise<Database>,
): void {
  describe(`ledger on ${engine}`, () => {
    let database: Database;
    let ledger: Ledger;
    beforeAll(async () => {
      database = await open();
      ledger = new Ledger(database);
    });
    // Sweeping and reconciling see the whole ledger, so no test may leave work behind for another.
    beforeEach(async () => {
      const unfinished = await database.query(unfinishedHolds, []);
      await Promise.all(unfinished.map(({ id }) => ledger.release(id)));
    });
    afterAll(async () => {
      assert.deepEqual(await ledger.audit(), []);
      await database.close();
    });

    test('a hold reserves for both sides, a settlement charges the real cost and frees the rest', async () => {
      const hold = createHold();
      const held = await ledger.reserve(hold);
      assert.equal(held.outcome, 'reserved');
      assert.deepEqual(held.debit, { limit: usd('1'), used: 0n, held: usd('0.01') });
      assert.deepEqual(held.credit, { limit: usd('10'), used: 0n, held: usd('0.01') });
      const settled = await ledger.settle({ hold: hold.id, cost: usd('1.35e-05'), source: 'router_computed' });
      assert.deepEqual(settled, {
        outcome: 'settled',
        was: 'open',
        cost: usd('0.0000135'),
        held: usd('0.01'),
        debit: { limit: null, used: usd('0.0000135'), held: 0n },
      });
      assert.equal(await ledger.balance(hold.debit.account), usd('0.0000135'));
      assert.equal(await ledger.balance(hold.credit.account), negate(usd('0.0000135')));
    });

    /** Requests of a /48 with a new site, for some /64 and /56 of it. */
    const inSite = (amount: Money): ((subnet: string, home: string) => ReserveRequest) => {
      const [site, router] = [randomUUID(), randomUUID()];
      return (subnet, home) => ({
        ...createHold({ router, cap: usd('5'), amount }),
        debit: {
          account: toCallerAccount(`${site} ${subnet}`),
          limit: usd('0.05'),
          within: [
            { network: site, limit: usd('0.2') },
            { network: `${site} ${home}`, limit: usd('0.1') },
          ],
        },
      });
    };

    test('the networks around a caller share limits: a /48 cannot spend what everybody may', async () => {
      const from = inSite(usd('0.02'));
      // From each /64 of a /48 as much as it gets, many at the same time.
      const requests = [...Array(96).keys()].map((n) => from(String(n >> 1), String(n >> 4)));
      const answers = await Promise.all(requests.map((request) => ledger.reserve(request)));
      const held = requests.filter((_request, index) => answers[index]?.outcome === 'reserved');
      assert.equal(held.length, 10);
      const refused = answers.filter(({ outcome }) => outcome === 'refused');
      assert.deepEqual(new Set(refused.map(({ refused_by }) => refused_by)), new Set(['network']));
      assert.equal((await ledger.budget(held[0]?.credit ?? assert.fail('nothing held'))).held, usd('0.2'));
      assert.equal((await ledger.reserve(inSite(usd('0.02'))('another', '1'))).outcome, 'reserved');
    });

    test('what a network has taken follows its holds: replayed, released, settled below and above', async () => {
      const from = inSite(usd('0.05'));
      const held = ['a', 'b', 'c', 'd'].map((name) => from(name, name));
      for (const request of held) assert.equal((await ledger.reserve(request)).outcome, 'reserved');
      const [a, b, c] = held.map(({ id }) => id);
      assert.equal((await ledger.reserve(held[0] ?? assert.fail())).outcome, 'replayed');
      const next = async (amount: Money): Promise<string> => {
        const request = { ...from(randomUUID(), randomUUID()), amount };
        const { outcome, debit } = await ledger.reserve(request);
        if (outcome === 'refused') assert.deepEqual([debit?.limit, debit?.held], [usd('0.2'), 0n]);
        return outcome;
      };
      assert.equal(await next(usd('0.000001')), 'refused');
      await ledger.release(a ?? '');
      await ledger.settle({ hold: b ?? '', cost: usd('0.02'), source: 'billed' });
      assert.deepEqual(
        [await next(usd('0.05')), await next(usd('0.03')), await next(usd('0.000001'))],
        ['reserved', 'reserved', 'refused'],
      );
      // A cost above its hold counts whole.
      await ledger.settle({ hold: c ?? '', cost: usd('0.15'), source: 'billed' });
      await ledger.release(held[3]?.id ?? '');
      assert.equal(await next(usd('0.000001')), 'refused');
    });

    test('a home has twice the quota of one of its networks', async () => {
      const [site, home] = [randomUUID(), randomUUID()];
      const take = async (subnet: string): Promise<string> => {
        const within = [
          { network: site, limit: usd('0.2') },
          { network: home, limit: usd('0.1') },
        ];
        const debit = { account: toCallerAccount(subnet), limit: usd('0.05'), within };
        const { outcome, refused_by } = await ledger.reserve({ ...createHold({ amount: usd('0.05') }), debit });
        return `${outcome} ${refused_by ?? ''}`.trim();
      };
      const [a, b, c] = [randomUUID(), randomUUID(), randomUUID()];
      assert.deepEqual(
        [await take(a), await take(a), await take(b), await take(c)],
        ['reserved', 'refused debit', 'reserved', 'refused network'],
      );
    });

    test('a refusal says which side refused, what is used and held, and when the day ends', async () => {
      const clock = (): Date => new Date('2026-03-04T23:59:59.500Z');
      const timed = new Ledger(database, { clock });
      const hold = createHold({ amount: usd('0.6') });
      await timed.reserve(hold);
      const refused = await timed.reserve({ ...hold, id: randomUUID() });
      assert.equal(refused.outcome, 'refused');
      assert.equal(refused.refused_by, 'debit');
      assert.deepEqual(refused.debit, { limit: usd('1'), used: 0n, held: usd('0.6') });
      assert.equal(refused.day_ends_at.toISOString(), '2026-03-05T00:00:00.000Z');
      const capped = await timed.reserve({
        ...createHold(),
        amount: usd('0.5'),
        credit: { account: hold.credit.account, limit: usd('1') },
      });
      assert.equal(capped.refused_by, 'credit');
      assert.equal((await timed.budget(hold.credit)).held, usd('0.6'));
    });

    test('the last pico-dollar can be reserved, and nothing beyond it', async () => {
      const hold = createHold({ amount: usd('1') });
      assert.equal((await ledger.reserve(hold)).outcome, 'reserved');
      assert.equal((await ledger.reserve({ ...hold, id: randomUUID(), amount: usd('1e-12') })).outcome, 'refused');
      await ledger.settle({ hold: hold.id, cost: usd('0.999999999999'), source: 'billed' });
      assert.equal((await ledger.reserve({ ...hold, id: randomUUID(), amount: usd('2e-12') })).outcome, 'refused');
      assert.equal((await ledger.reserve({ ...hold, id: randomUUID(), amount: usd('1e-12') })).outcome, 'reserved');
    });

    test('200 holds at once with room for 7 give exactly 7 [spec limits.quota]', async () => {
      for (const options of [{}, { batch: 1, concurrency: database.connections }]) {
        const many = new Ledger(database, options);
        const [caller, router] = [randomUUID(), randomUUID()];
        const answers = await Promise.all(
          Array.from({ length: 200 }, () => many.reserve(createHold({ caller, router, quota: usd('0.0799') }))),
        );
        assert.equal(answers.filter(({ outcome }) => outcome === 'reserved').length, 7);
        assert.equal(answers.filter(({ outcome }) => outcome === 'refused').length, 193);
      }
    });

    test('a cost above what was held is booked, and counts against the quota', async () => {
      const hold = createHold({ amount: usd('0.5') });
      await ledger.reserve(hold);
      await ledger.settle({ hold: hold.id, cost: usd('1.25'), source: 'billed' });
      assert.deepEqual(await ledger.budget(hold.debit), { limit: usd('1'), used: usd('1.25'), held: 0n });
      assert.equal((await ledger.reserve({ ...hold, id: randomUUID(), amount: usd('0') })).outcome, 'refused');
    });

    test('settling again keeps the first cost, whichever comes', async () => {
      const hold = createHold();
      await ledger.reserve(hold);
      const answers = await Promise.all(
        ['0.002', '0.003', '0.004'].map((cost) => ledger.settle({ hold: hold.id, cost: usd(cost), source: 'billed' })),
      );
      const costs = answers.map((answer) => (answer.outcome === 'unknown' ? undefined : answer.cost));
      assert.equal(new Set(costs).size, 1);
      assert.equal(answers.filter(({ outcome }) => outcome === 'settled').length, 1);
      assert.equal(await ledger.balance(hold.debit.account), costs[0]);
      assert.deepEqual(await ledger.settle({ hold: randomUUID(), cost: usd('1'), source: 'billed' }), {
        outcome: 'unknown',
      });
    });

    test('a hold sent again after midnight is the same hold; the new day has a new quota', async () => {
      let now = Date.parse('2026-05-01T23:59:59Z');
      const timed = new Ledger(database, { clock: () => new Date(now) });
      const hold = createHold({ amount: usd('1') });
      await timed.reserve(hold);
      now += 2_000;
      assert.equal((await timed.reserve(hold)).outcome, 'replayed');
      const next = { ...hold, id: randomUUID() };
      assert.equal((await timed.reserve(next)).outcome, 'reserved');
      await timed.settle({ hold: hold.id, cost: usd('0.25'), source: 'billed' });
      assert.equal((await timed.budget(hold.debit)).used, 0n);
      assert.equal((await timed.budget(hold.debit)).held, usd('1'));
      now -= 2_000;
      assert.equal((await timed.budget(hold.debit)).used, usd('0.25'));
    });

    test('a hold whose process died stays reserved until its cost is found, which is then booked', async () => {
      let now = Date.parse('2026-06-01T10:00:00Z');
      const timed = new Ledger(database, { clock: () => new Date(now) });
      const hold = createHold({ ttlMs: 1_000 });
      await timed.reserve(hold);
      now += 999;
      assert.equal(await timed.expire(), 0);
      now += 1;
      assert.equal(await timed.expire(), 1);
      assert.equal((await timed.budget(hold.debit)).held, usd('0.01'));
      now += 90_000;
      assert.equal(await timed.oldestPending(), 90);
      const options = { waitMs: 1_000, attempts: 3, leaseMs: 10_000 };
      const asked: string[] = [];
      const tally = await reconcile(timed, {
        ...options,
        lookUp: (pending) => {
          asked.push(pending.hold, pending.reason);
          return Promise.resolve({ outcome: 'found', cost: usd('0.004'), source: 'router_record' });
        },
      });
      assert.deepEqual(tally, { settled: 1, released: 0, deferred: 0, estimated: 0 });
      assert.deepEqual(asked, [hold.id, 'expired']);
      assert.equal(await timed.balance(hold.debit.account), usd('0.004'));
      assert.equal((await timed.budget(hold.debit)).held, 0n);
      assert.deepEqual(await timed.counts(), { ...(await timed.counts()), pending: 0 });
      assert.equal(await timed.oldestPending(), 0);
      assert.deepEqual(await timed.auditAtLength(), { faults: [], imbalance: 0n });
    });

    test('the last room of a quota is not given away between the expiry of a hold and the look for its cost', async () => {
      let now = Date.parse('2026-06-03T10:00:00Z');
      const timed = new Ledger(database, { clock: () => new Date(now) });
      const dead = createHold({ ttlMs: 1_000, amount: usd('0.6') });
      await timed.reserve(dead);
      now += 1_000;
      assert.equal(await timed.expire(), 1);
      const next = { ...dead, id: randomUUID() };
      assert.equal((await timed.reserve(next)).outcome, 'refused');
      const lookUp = (cost: string | undefined) => ({
        waitMs: 1_000,
        attempts: 2,
        leaseMs: 1_000,
        lookUp: (): Promise<LookupResult> =>
          Promise.resolve(
            cost === undefined
              ? { outcome: 'not yet', why: 'no record' }
              : { outcome: 'found', cost: usd(cost), source: 'router_record' },
          ),
      });
      await reconcile(timed, lookUp(undefined));
      assert.equal((await timed.reserve(next)).outcome, 'refused');
      now += 1_000;
      await reconcile(timed, lookUp('0.5'));
      assert.equal((await timed.reserve(next)).outcome, 'refused');
      assert.equal((await timed.reserve({ ...next, amount: usd('0.5') })).outcome, 'reserved');
      await timed.release(next.id);
    });

    test('old detail goes, and every balance stays; what is still looked for stays too', async () => {
      let now = Date.parse('2025-01-01T10:00:00Z');
      const timed = new Ledger(database, { clock: () => new Date(now) });
      const [caller, router] = [randomUUID(), randomUUID()];
      const [old, sought, recent] = [
        createHold({ caller, router }),
        createHold({ caller, router }),
        createHold({ caller, router }),
      ];
      const settle = (hold: ReserveRequest) =>
        timed.settle({ hold: hold.id, cost: usd('0.004'), source: 'billed', usage: { kind: 'ask' } });
      await timed.reserve(old);
      await settle(old);
      await timed.reserve(sought);
      await timed.pend(sought.id, { reference: null, usage: { kind: 'ask' } });
      const first = now;
      now += 30 * 86_400_000;
      await timed.reserve(recent);
      await settle(recent);
      const left = async (): Promise<string[]> =>
        (
          await database.query(
            {
              name: 'test-left',
              text: 'select h.id::text from ledger.hold h join ledger.usage u on u.id = h.id::text where h.id = any ($1::uuid[])',
              row: z.object({ id: z.string() }),
            },
            [[old.id, sought.id, recent.id]],
          )
        )
          .map(({ id }) => id)
          .sort();
      while ((await timed.purge(31, 1)) > 0) continue;
      assert.deepEqual(await left(), [old.id, sought.id, recent.id].sort());
      while ((await timed.purge(30, 1)) > 0) continue;
      assert.deepEqual(await left(), [old.id, sought.id, recent.id].sort());
      now += 1;
      while ((await timed.purge(30, 1)) > 0) continue;
      assert.deepEqual(await left(), [sought.id, recent.id].sort());
      await timed.settle({ hold: sought.id, cost: usd('0.002'), source: 'router_record' });
      while ((await timed.purge(29)) > 0) continue;
      assert.deepEqual(await left(), [recent.id]);
      assert.equal(await timed.balance(recent.debit.account), usd('0.004'));
      now = first;
      assert.equal(await timed.balance(old.debit.account), usd('0.006'));
      assert.deepEqual(await timed.audit(), []);
    });

    estimateSuite(() => database);
    groupSuite(() => database);

    test('no two reconcilers get the same pending cost', async () => {
      const holds = Array.from({ length: 20 }, () => createHold());
      await Promise.all(
        holds.map(async (hold) => {
          await ledger.reserve(hold);
          await ledger.pend(hold.id, { reference: null, retryMs: 0 });
        }),
      );
      const claims = (await Promise.all(Array.from({ length: 6 }, () => ledger.claimPending(5, 60_000))))
        .flat()
        .map(({ hold }) => hold);
      assert.equal(new Set(claims).size, claims.length);
      assert.deepEqual(claims.toSorted(), holds.map(({ id }) => id).toSorted());
      await Promise.all(holds.map(({ id }) => ledger.release(id)));
    });

    test('a transaction that does not sum to zero is refused by the database itself', async () => {
      const line = { account: toKeyAccount(randomUUID()), amount: usd('1') };
      await assert.rejects(ledger.post(randomUUID(), 'test', [line]), /does not balance: its entries sum to 1\.0/);
      const hold = createHold();
      await ledger.reserve(hold);
      await assert.rejects(
        ledger.settle({ hold: hold.id, cost: usd('0'), source: 'billed', lines: [line] }),
        /does not balance/,
      );
      const touch = { name: 'test-touch', text: 'update ledger.entry set amount = 0', row: z.unknown() };
      await assert.rejects(
        database.query(touch, []),
        openAsOwner === undefined
          ? /refused: book a reversing transaction instead/
          : /permission denied for table entry/,
      );
      assert.equal(await ledger.balance(line.account), 0n);
      await ledger.release(hold.id);
    });

    test('one bad request among many spoils none of the others', async () => {
      const holds = Array.from({ length: 10 }, () => createHold());
      const sent = holds.map((hold, index) => ledger.reserve(index === 4 ? { ...hold, id: 'not a uuid' } : hold));
      const outcomes = (await Promise.allSettled(sent)).map((result) =>
        result.status === 'fulfilled' ? result.value.outcome : 'failed',
      );
      assert.deepEqual(
        outcomes,
        holds.map((_, index) => (index === 4 ? 'failed' : 'reserved')),
      );
      await Promise.all(holds.filter((_, index) => index !== 4).map(({ id }) => ledger.release(id)));
    });

    test('a plain transaction is recorded once per reference, also when sent by many at once', async () => {
      const [app, author, payer, reference] = [randomUUID(), randomUUID(), randomUUID(), randomUUID()];
      const lines = chargeLines(payer, app, author, usd('0.000000000101'), usd('0.00000000007'));
      const outcomes = await Promise.all(Array.from({ length: 8 }, () => ledger.post(reference, 'charge', lines)));
      assert.deepEqual(outcomes.toSorted(), ['posted', ...Array.from({ length: 7 }, () => 'replayed')]);
      assert.equal(await ledger.balance(toAuthorAccount(author)), negate(usd('0.00000000007')));
      assert.equal(await ledger.balance(toRevenueAccount(app)), negate(usd('0.000000000031')));
      assert.equal(await ledger.balance(toKeyAccount(payer)), usd('0.000000000101'));
      assert.equal(
        await ledger.post(reference, 'charge', chargeLines(payer, app, author, usd('5'), usd('0'))),
        'conflict',
      );
    });

    test('a charge is booked with the cost of its call, in one transaction [spec service.share]', async () => {
      const hold = createHold();
      const [app, author] = [randomUUID(), randomUUID()];
      await ledger.reserve(hold);
      await ledger.settle({
        hold: hold.id,
        cost: usd('0.001'),
        source: 'billed',
        lines: chargeLines(app, app, author, usd('0.002'), usd('0.001')),
      });
      assert.equal(await ledger.balance(toAuthorAccount(author)), negate(usd('0.001')));
      assert.equal(await ledger.balance(hold.debit.account), usd('0.001'));
    });

    test('spending with a key of the caller needs no limit, and a limit set later counts what was before', async () => {
      const [caller, router] = [randomUUID(), randomUUID()];
      const own = {
        debit: { account: toOwnKeyAccount(caller), limit: null },
        credit: { account: toOwnKeyRouterAccount(router), limit: null },
      };
      const holds = [createHold(own), createHold(own)];
      for (const hold of holds) assert.equal((await ledger.reserve(hold)).outcome, 'reserved');
      await ledger.settle({ hold: holds[0]?.id ?? '', cost: usd('0.25'), source: 'billed' });
      const limited = { ...createHold(own), debit: { account: toOwnKeyAccount(caller), limit: usd('0.26') } };
      assert.deepEqual((await ledger.reserve(limited)).debit, {
        limit: usd('0.26'),
        used: usd('0.25'),
        held: usd('0.01'),
      });
      await ledger.release(holds[1]?.id ?? '');
      assert.equal((await ledger.reserve(limited)).outcome, 'reserved');
      await ledger.release(limited.id);
    });

    test('a use sent twice is counted once', async () => {
      const events = ['a', 'b', 'a'].map((name) => ({
        id: `${name}-${engine}`,
        kind: 'visit',
        app: 'hello',
        at: new Date('2026-01-01'),
      }));
      const late = { id: `c-${engine}`, kind: 'visit', at: new Date('2026-01-03'), status: 200, instance: 7n };
      assert.deepEqual([...(await recordUses(database, events))], [[undefined, 2]]);
      assert.deepEqual([...(await recordUses(database, [...events, late]))], [[7n, 1]]);
      assert.deepEqual([...(await recordUses(database, [late]))], []);
      assert.deepEqual([...(await recordUses(database, []))], []);
    });

    test('migrations are applied once, also by replicas that start together; a changed or misplaced one is refused', async () => {
      const owner = (await openAsOwner?.()) ?? database;
      const migrations = readMigrations(migrationsFolder);
      assert.deepEqual(await Promise.all([migrate(owner, migrations), migrate(owner, migrations)]), [[], []]);
      const [first] = migrations;
      assert.ok(first !== undefined);
      await assert.rejects(
        migrate(owner, [{ ...first, checksum: 'other' }]),
        /001-accounts\.sql was changed after it was applied/,
      );
      await assert.rejects(
        migrate(owner, [...migrations, { name: '000-late.sql', sql: 'select 1', checksum: '' }]),
        /000-late\.sql comes before/,
      );
      await assert.rejects(
        migrate(owner, [
          ...migrations,
          { name: '998-bad.sql', sql: 'create table half (); select nonsense', checksum: '' },
        ]),
        /998-bad\.sql failed, nothing was applied/,
      );
      assert.deepEqual(
        await migrate(owner, [
          ...migrations,
          { name: '998-good.sql', sql: 'create table half (); drop table half', checksum: '' },
        ]),
        ['998-good.sql'],
      );
      assert.deepEqual(await migrate(owner, migrations), []);
      if (owner !== database) await owner.close();
    });

    idempotencySuite(() => database);
    modelSuite(() => database, runs);
  });
}
