// A simulated year of uses: apps whose author or share changes, prices that change, late events, refunds, disputes, payouts.
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import type { Database } from '../../../api/billing/database/database.ts';
import { toKeyAccount, toPromotionAccount, toRevenueAccount } from '../../../api/billing/ledger/accounts.ts';
import { Ledger } from '../../../api/billing/ledger/ledger.ts';
import { parseMoney } from '../../../api/billing/ledger/money.ts';
import { type PriceList, readPriceList } from '../../../api/billing/prices.ts';
import { adjust, refund, answerDispute } from '../../../api/accounting/revenue/corrections.ts';
import { findVersion, getFirstDay, noteAuthors, postShares } from '../../../api/accounting/revenue/statement.ts';
import { closeMonths, openDispute } from '../../../api/accounting/revenue/revenue-queries.ts';

const nothing = z.unknown();
const insertVisits = {
  name: 'year-visits',
  text: `insert into ledger.usage (at, id, kind, class, caller, app, status, cost_source, received_at)
    select e.at, e.id, 'visit', e.class, e.caller, e.app, 200, 'none', e.received
    from unnest($1::timestamptz[], $2::text[], $3::text[], $4::text[], $5::text[], $6::timestamptz[]) as e (at, id, class, caller, app, received)
    on conflict do nothing`,
  row: nothing,
};
/** The ledger's uses come with the real time of their arrival. */
const receivedAtOnce = {
  name: 'year-received',
  text: "update ledger.usage set received_at = at + interval '1 second' where kind = 'app' and received_at < at",
  row: nothing,
};
const aCall = {
  name: 'year-a-call',
  text: `select u.id from ledger.usage u join ledger.hold h on h.id::text = u.id join ledger.account a on a.id = h.debit
    where u.kind = 'app' and a.kind = 'key' and u.at < $1 order by md5(u.id || $1::text) limit 1`,
  row: z.object({ id: z.string() }),
};

export const prices = readPriceList(
  JSON.stringify([
    {
      version: '2027-01',
      from: '2027-01-01',
      announced: '2026-12-01',
      use: '0.0001',
      call: '0.0003',
      usesPerVisitor: 3,
    },
    { version: '2027-03', from: '2027-03-28', announced: '2027-03-01', use: '0.000123456789', call: '0.0005' },
    {
      version: '2027-08',
      from: '2027-08-01',
      announced: '2027-07-01',
      use: '0.0002',
      call: '0.0004',
      accrues: ['use', 'call'],
    },
    {
      version: '2027-11',
      from: '2027-11-01',
      announced: '2027-10-10',
      use: '0',
      call: '0.001',
      free: ['call'],
      accrues: ['call'],
    },
  ]),
  14,
);

/** A budget that is never spent. */
export const rules = { prices, budget: parseMoney('1000000') };

/** Numbers between 0 and 1, the same each time. */
export function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

export const authors = ['git.test/ada', 'git.test/bob', 'git.test/cyd'];
const dayMs = 86_400_000;

interface HostingPeriod {
  readonly app: string;
  /** From this day of the year on. */
  readonly from: number;
  readonly author: string;
  readonly sharePpm: number;
}

/** Later rows of an app replace earlier ones from their day on. */
const hosting: readonly HostingPeriod[] = [
  { app: 'one', from: 0, author: 'git.test/ada', sharePpm: 700_000 },
  { app: 'two', from: 0, author: 'git.test/ada', sharePpm: 500_000 },
  { app: 'three', from: 40, author: 'git.test/bob', sharePpm: 333_333 },
  { app: 'one', from: 150, author: 'git.test/ada', sharePpm: 650_000 },
  { app: 'two', from: 200, author: 'git.test/cyd', sharePpm: 700_000 },
];

type Counts = { -readonly [Field in keyof Year]: number };

export interface Year {
  readonly refunds: number;
  readonly disputes: number;
  readonly payouts: number;
  readonly lateEvents: number;
}

/**
 * Of each month the first and the last days, and the days around each change of an app or of prices: what goes wrong
 * goes wrong at an edge. The days between repeat themselves.
 */
export const edgesOfTheYear: readonly number[] = Array.from({ length: 365 }, (_none, day) => day).filter((day) => {
  const date = new Date(Date.UTC(2027, 0, 1 + day)).getUTCDate();
  return date <= 3 || date >= 28 || hosting.some(({ from }) => Math.abs(from - day) <= 4);
});

export const everyDay: readonly number[] = Array.from({ length: 365 }, (_none, day) => day);

/** Lives through these days of the year, one after another. Refunds and the like come as often, however few they are. */
export async function runYear(
  database: Database,
  { days = everyDay, seed = 1 }: { days?: readonly number[]; seed?: number } = {},
): Promise<Year> {
  const chance = random(seed);
  const start = Date.UTC(2027, 0, 1);
  let now = new Date(start);
  const ledger = new Ledger(database, { clock: () => now });
  const counted = { refunds: 0, disputes: 0, payouts: 0, lateEvents: 0 };
  const open: string[] = [];
  const rate = everyDay.length / days.length;
  for (const day of days) {
    const begin = start + day * dayMs;
    now = new Date(begin + 1_000);
    const apps = hostedOn(day);
    if (day === days[0]) await noteAuthors(database, apps.map(submitted), now);
    // A change counts from the next day on, so it is noted the day before.
    await noteAuthors(database, hostedOn(day + 1).map(submitted), now);
    counted.lateEvents += await visit(
      database,
      apps.map(({ app }) => app),
      begin,
      chance,
    );
    for (const { app } of apps) if (chance() < 0.5) await call(ledger, app, (time) => (now = time), begin, chance);
    await database.query(receivedAtOnce, []);
    // Hours after midnight, twice and by two replicas at once.
    now = new Date(begin + dayMs + 3 * 3_600_000 * chance());
    await Promise.all([postShares(database, rules, now), postShares(database, rules, now)]);
    await correct(database, { counted, open, now, day, rate }, chance);
    await database.query(closeMonths, [14, now]);
  }
  // Whatever comes still, comes within the grace of the last day.
  now = new Date(start + ((days.at(-1) ?? 0) + 41) * dayMs);
  await postShares(database, rules, now);
  return counted;
}

/** What the operator and authors do now and then. */
async function correct(
  database: Database,
  { counted, open, now, day, rate }: { counted: Counts; open: string[]; now: Date; day: number; rate: number },
  chance: () => number,
): Promise<void> {
  if (chance() < 0.05 * rate) counted.refunds += await refundOne(database, now);
  if (chance() < 0.04 * rate) counted.disputes += await dispute(database, open, now, chance);
  if (chance() < 0.1 * rate) await answer(database, open, now, chance);
  if (chance() < 0.02 * rate) counted.payouts += await payOut(database, now, String(day));
}

function hostedOn(day: number): HostingPeriod[] {
  return [...new Map(hosting.filter(({ from }) => from <= day).map((one) => [one.app, one])).values()];
}

function submitted({ app, author, sharePpm }: HostingPeriod): {
  app: string;
  author: string;
  repository: string;
  sharePpm: number;
  submitter: string;
  keys: string[];
} {
  return { app, author, repository: `${author}/${app}`, sharePpm, submitter: `submitter-of-${app}`, keys: [] };
}

/** @returns how many of the uses came days late */
async function visit(
  database: Database,
  apps: readonly string[],
  begin: number,
  chance: () => number,
): Promise<number> {
  const rows: [string, string, string, string, string, string][] = [];
  let late = 0;
  for (const app of apps) {
    for (let count = Math.floor(chance() * 12); count > 0; count -= 1) {
      // At the edges of the day now and then, to the microsecond.
      const edge = chance();
      const offset = edge < 0.05 ? 0 : edge < 0.1 ? dayMs - 1 : Math.floor(chance() * dayMs);
      const at = new Date(begin + offset);
      const wait = chance() < 0.04 ? Math.floor(chance() * 35 * dayMs) : 1_000;
      if (wait > dayMs) late += 1;
      const kind = chance();
      const [id, caller] = [randomUUID(), `visitor-${Math.floor(chance() * 4)}`];
      const row: (typeof rows)[number] = [
        at.toISOString(),
        id,
        kind < 0.8 ? 'use' : kind < 0.9 ? 'asset' : 'own',
        caller,
        app,
        new Date(at.getTime() + wait).toISOString(),
      ];
      rows.push(row);
      // Sent twice.
      if (chance() < 0.1) rows.push(row);
    }
  }
  await database.query(
    insertVisits,
    [0, 1, 2, 3, 4, 5].map((column) => rows.map((row) => row[column])),
  );
  return late;
}

async function call(
  ledger: Ledger,
  app: string,
  at: (time: Date) => void,
  begin: number,
  chance: () => number,
): Promise<void> {
  const time = new Date(begin + Math.floor(chance() * dayMs));
  at(time);
  const version = findVersion(prices, time.toISOString().slice(0, 10));
  const [id, kind] = [randomUUID(), chance()];
  const caller = kind < 0.2 ? `submitter-of-${app}` : `reader-${Math.floor(chance() * 3)}`;
  const account =
    version.free.includes('call') && kind < 0.6
      ? toPromotionAccount('call')
      : kind < 0.6
        ? toKeyAccount(caller)
        : { kind: 'caller', owner: caller, daily: true };
  await ledger.reserve({
    id,
    amount: version.call,
    ttlMs: 60_000,
    debit: { account, limit: null },
    credit: { account: toRevenueAccount(app), limit: null },
  });
  if (chance() < 0.1) {
    await ledger.release(id);
    return;
  }
  const usage = { kind: 'app', caller, app, priceVersion: version.version };
  await ledger.settle({ hold: id, cost: version.call, source: 'tariff', usage });
}

async function refundOne(database: Database, now: Date): Promise<number> {
  const [one] = await database.query(aCall, [new Date(now.getTime() - 2 * dayMs)]);
  if (one === undefined) return 0;
  const line = await refund(database, one.id, 'the answer was empty', now).catch(() => undefined);
  return line === undefined ? 0 : 1;
}

async function dispute(database: Database, open: string[], now: Date, chance: () => number): Promise<number> {
  const author = authors[Math.floor(chance() * authors.length)] ?? '';
  const month = new Date(now.getTime() - Math.floor(chance() * 30) * dayMs).toISOString().slice(0, 7);
  const [opened] = await database.query(openDispute, [
    randomUUID(),
    author,
    getFirstDay(month),
    null,
    'too little',
    now,
  ]);
  if (opened === undefined) return 0;
  open.push(opened.id);
  return 1;
}

async function answer(database: Database, open: string[], now: Date, chance: () => number): Promise<void> {
  const id = open.shift();
  if (id === undefined) return;
  const amount = ['0.01', '-0.005', undefined][Math.floor(chance() * 3)];
  await answerDispute(database, { dispute: id, answer: 'looked at', ...(amount === undefined ? {} : { amount }) }, now);
}

async function payOut(database: Database, now: Date, id: string): Promise<number> {
  const paid = await adjust(
    database,
    { kind: 'payout', author: 'git.test/ada', amount: '-0.001', id, reason: 'bank' },
    now,
  ).catch(() => undefined);
  return paid === undefined ? 0 : 1;
}

export type { PriceList };
