// Compares what the ledger owes the router for the calls of a day with the router's own records: call by call if they carry
// the ids of our holds, otherwise by the sum.
import { z } from 'zod';
import {
  type BilledCall,
  type BillWindow,
  type Database,
  money,
  type Money,
  negate,
  type RouterBill,
  type Statement,
  sumMoney,
  type Transaction,
  zero,
} from '../../../billing/index.ts';
import {
  addSums,
  type Comparison,
  type Day,
  type Difference,
  type Line,
  negateSum,
  runInSnapshot,
  subtract,
  type Sum,
  zeroSum,
} from '../comparison.ts';
import type { ApartKind } from '../result.ts';

/** A router's own records, and its name in the ledger. The models of this API implement it. */
export interface RouterRecords {
  readonly name: string;
  readonly fetchBill: (window: BillWindow) => Promise<RouterBill>;
}

/** Clocks differ, and a call may begin before midnight and reach the router after it. */
const marginMs = 1_800_000;

/** A call as the ledger has it. */
export const ledgerCall = z.object({
  id: z.string(),
  state: z.enum(['open', 'pending', 'settled', 'voided', 'expired', 'abandoned']),
  booked: money.nullable(),
  held: money,
  closed_at: z.date().nullable(),
  creditor: z.enum(['platform', 'own-key-router']),
  /** Settled at list prices, since the router had no record of it. */
  is_estimated: z.boolean(),
});
export type LedgerCall = z.output<typeof ledgerCall>;

const calls: Statement<LedgerCall> = {
  name: 'reconciliation-router-calls',
  text: `select c.id, state, booked::text, held::text, closed_at, creditor, e.id is not null as is_estimated
    from reconciliation.calls($1, $2) c
    left join (select id from ledger.usage where at >= $1 and at < $2 and cost_source = 'estimated') e on e.id = c.id
    where router = $3 and creditor in ('platform', 'own-key-router') and state is not null order by c.id`,
  row: ledgerCall,
};

const knownHolds: Statement<{ id: string }> = {
  name: 'reconciliation-known-holds',
  text: 'select id::text from ledger.hold where id = any ($1::uuid[])',
  row: z.object({ id: z.string() }),
};

/** What the platform's account of that day owes the router. */
const account: Statement<{ owed: Money }> = {
  name: 'reconciliation-account',
  text: `select coalesce(-sum(e.amount), 0)::text as owed from ledger.entry e join ledger.account a on a.id = e.account_id
    where a.kind = 'platform' and a.owner = $1 and a.day = $2::date`,
  row: z.object({ owed: money }),
};

/** Calls that ended in the day, whenever they began. */
const endedIn: Statement<{ usd: Money }> = {
  name: 'reconciliation-ended',
  text: `select coalesce(sum(booked), 0)::text as usd
    from reconciliation.calls($1::timestamptz - interval '1 hour', $2) where router = $3 and creditor = 'platform' and booked is not null
      and closed_at >= $1 and closed_at < $2`,
  row: z.object({ usd: money }),
};

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export async function compareRouter(
  database: Database,
  router: RouterRecords,
  day: Day,
  now: Date,
): Promise<Comparison> {
  const { from, to } = day;
  const bill = await router.fetchBill({ from, to });
  // Asked for last, so that each call of the bill has its hold by now.
  const { ours, owed, ended } = await runInSnapshot(database, (transaction) =>
    readLedgerSide(transaction, router.name, day),
  );
  const platform = ours.filter(({ creditor }) => creditor === 'platform');
  const ownKeyCalls = ours.filter(({ creditor }) => creditor === 'own-key-router');
  const settled = addSums(platform.map(toBookedSum));
  const accounts = compareAccount(owed, settled);
  if (bill.outcome === 'not known')
    return {
      name: 'router',
      lines: [accounts.line],
      differences: accounts.differences,
      apart: listApart(platform, addSums(ownKeyCalls.map(toBookedSum))),
      notKnown: `${bill.why}.`,
    };
  if (bill.outcome === 'totals') {
    const right = { events: bill.calls, usd: bill.amount };
    return {
      name: 'router',
      lines: [{ name: 'platform', left: settled, right }, accounts.line],
      differences: [...compareTotals(settled, right, ended, platform), ...accounts.differences],
      apart: listApart(platform, addSums(ownKeyCalls.map(toBookedSum))),
    };
  }
  const wide = await readWideBill(router, bill, day);
  const matched = matchCalls(platform, wide, now);
  const others = await findStrangers(database, wide, ours, day);
  const ownMatched = matchOwnKeyCalls(ownKeyCalls, wide);
  return {
    name: 'router',
    lines: [
      { name: 'platform', left: settled, right: addSums([matched.right, ...others.unknown.map(({ sum }) => sum)]) },
      ...(ownMatched.line === undefined ? [] : [ownMatched.line]),
      accounts.line,
    ],
    differences: [
      ...matched.differences,
      ...others.unknown.map(({ subject, sum }): Difference => ({ kind: 'not_in_ledger', subject, ...negateSum(sum) })),
      ...ownMatched.differences,
      ...accounts.differences,
    ],
    apart: [...listApart(platform, ownMatched.unseen), { kind: 'other_callers', ...others.foreign }],
  };
}

async function readLedgerSide(
  transaction: Transaction,
  name: string,
  { day, from, to }: Day,
): Promise<{ ours: readonly LedgerCall[]; owed: Money; ended: Money }> {
  const [owed] = await transaction.query(account, [name, day]);
  const [ended] = await transaction.query(endedIn, [from, to, name]);
  return {
    ours: await transaction.query(calls, [from, to, name]),
    owed: owed?.owed ?? zero,
    ended: ended?.usd ?? zero,
  };
}

/** The bill with the time around the day: asked for only where there is a call that it could explain. */
async function readWideBill(
  router: RouterRecords,
  bill: Extract<RouterBill, { outcome: 'calls' }>,
  { from, to, isComplete }: Day,
): Promise<readonly BilledCall[]> {
  const before = await router.fetchBill({ from: new Date(from.getTime() - marginMs), to: from });
  const after = isComplete ? await router.fetchBill({ from: to, to: new Date(to.getTime() + marginMs) }) : before;
  const marginCalls = [before, after].flatMap((one) => (one.outcome === 'calls' ? one.calls : []));
  return [...new Map([...marginCalls, ...bill.calls].map((one) => [one.reference, one])).values()];
}

/** Calls of the day that the router has and that are none of ours: paid by the platform's key, or by somebody else's. */
async function findStrangers(
  database: Database,
  bill: readonly BilledCall[],
  ours: readonly LedgerCall[],
  { from, to }: Day,
): Promise<{ unknown: readonly { subject: string; sum: Sum }[]; foreign: Sum }> {
  const ids = new Set(ours.map(({ id }) => id));
  const rest = bill.filter(({ hold, at }) => at >= from && at < to && !(hold !== undefined && ids.has(hold)));
  const holdIds = rest.flatMap(({ hold }) => (hold !== undefined && uuid.test(hold) ? [hold] : []));
  // Of another day, on which they are compared.
  const known = new Set((await database.query(knownHolds, [holdIds])).map(({ id }) => id));
  const strangers = rest.filter(({ hold, amount }) => amount !== zero && !(hold !== undefined && known.has(hold)));
  return {
    unknown: strangers
      .filter(({ isPlatform }) => isPlatform !== false)
      .map(({ reference, amount }) => ({ subject: reference, sum: { events: 1, usd: amount } })),
    foreign: addSums(
      strangers.filter(({ isPlatform }) => isPlatform === false).map(({ amount }) => ({ events: 1, usd: amount })),
    ),
  };
}

/** Of a router that reports sums alone. A day counts the calls that began in it, or those that ended. */
function compareTotals(left: Sum, right: Sum, ended: Money, ours: readonly LedgerCall[]): Difference[] {
  const { events, usd } = subtract(left, right);
  // Routers count requests that failed, too.
  const number: Difference[] = events === 0 ? [] : [{ kind: 'count_differs', events, usd: zero }];
  if (usd === zero) return number;
  const isPending = ours.some(({ state }) => state === 'open' || state === 'pending');
  const isEstimated = ours.some(({ is_estimated }) => is_estimated);
  const cause = isPending ? 'pending' : isEstimated ? 'estimated' : 'total_differs';
  return [...number, { kind: ended === right.usd ? 'ended_next_day' : cause, events: 0, usd }];
}

/** The account of the day has the settlements of its calls, and nothing else. */
function compareAccount(owed: Money, settled: Sum): { line: Line; differences: Difference[] } {
  const usd = sumMoney([owed, negate(settled.usd)]);
  return {
    line: { name: 'account', left: { events: settled.events, usd: owed }, right: settled },
    differences: usd === zero ? [] : [{ kind: 'other_entries', events: 0, usd }],
  };
}

function listApart(ours: readonly LedgerCall[], ownKeys: Sum): (Sum & { kind: ApartKind })[] {
  const states = ['open', 'pending', 'abandoned'] as const;
  return [
    ...states.map((kind) => ({
      kind,
      ...addSums(ours.filter(({ state }) => state === kind).map(({ held }) => ({ events: 1, usd: held }))),
    })),
    { kind: 'estimated', ...addSums(ours.filter(({ is_estimated }) => is_estimated).map(toBookedSum)) },
    { kind: 'own_key_unseen', ...ownKeys },
  ];
}

/** Routers write their records with a delay. */
const delayMs = 600_000;

export interface MatchResult {
  /** What the router has of these calls. */
  readonly right: Sum;
  readonly differences: readonly Difference[];
}

/** Pairs each of our calls with the router's record of it. */
export function matchCalls(ours: readonly LedgerCall[], bill: readonly BilledCall[], now: Date): MatchResult {
  const byHold = groupByHold(bill);
  const sides = ours.map((one) => {
    const billed = byHold.get(one.id);
    const left = toBookedSum(one);
    // A record of nothing, of a call that was given back.
    const right =
      billed === undefined || (billed === zero && one.booked === null) ? zeroSum : { events: 1, usd: billed };
    return { one, left, right, kind: findCause(one, billed, now) };
  });
  return {
    right: addSums(sides.map(({ right }) => right)),
    differences: sides.flatMap(({ one, left, right, kind }): Difference[] =>
      kind === undefined ? [] : [{ kind, subject: one.id, ...subtract(left, right) }],
    ),
  };
}

function findCause(call: LedgerCall, billed: Money | undefined, now: Date): Difference['kind'] | undefined {
  const { state, booked } = call;
  if (booked !== null) return findBookedCause({ ...call, booked }, billed, now);
  if (billed === undefined || billed === zero) return undefined;
  if (state === 'abandoned') return 'abandoned';
  return state === 'open' || state === 'pending' ? 'pending' : 'released';
}

function findBookedCause(
  { booked, closed_at, is_estimated }: LedgerCall & { readonly booked: Money },
  billed: Money | undefined,
  now: Date,
): Difference['kind'] | undefined {
  if (is_estimated) return billed === booked ? undefined : 'estimated';
  const agoMs = now.getTime() - (closed_at?.getTime() ?? 0);
  if (billed === undefined) return agoMs < delayMs ? 'not_yet_billed' : 'not_in_bill';
  return billed === booked ? undefined : 'amount_differs';
}

/** Calls with callers' own keys: a router that does not show them to the platform's key is no difference. */
export function matchOwnKeyCalls(
  ownKeyCalls: readonly LedgerCall[],
  bill: readonly BilledCall[],
): { line: Line | undefined; differences: readonly Difference[]; unseen: Sum } {
  const byHold = groupByHold(bill);
  const seen = ownKeyCalls.filter(({ id, booked }) => booked !== null && byHold.has(id));
  const unseen = addSums(ownKeyCalls.filter(({ id }) => !byHold.has(id)).map(toBookedSum));
  if (seen.length === 0) return { line: undefined, differences: [], unseen };
  const sides = seen.map((one) => ({
    one,
    left: toBookedSum(one),
    right: { events: 1, usd: byHold.get(one.id) ?? zero },
  }));
  return {
    line: {
      name: 'own_key',
      left: addSums(sides.map(({ left }) => left)),
      right: addSums(sides.map(({ right }) => right)),
    },
    differences: sides.flatMap(({ one, left, right }): Difference[] =>
      left.usd === right.usd
        ? []
        : [{ kind: one.is_estimated ? 'estimated' : 'amount_differs', subject: one.id, ...subtract(left, right) }],
    ),
    unseen,
  };
}

export function toBookedSum({ booked }: LedgerCall): Sum {
  return { events: booked === null ? 0 : 1, usd: booked ?? zero };
}

/** What the router has of each hold; a call that it made twice has two records. */
function groupByHold(bill: readonly BilledCall[]): ReadonlyMap<string, Money> {
  const amounts = new Map<string, Money>();
  for (const { hold, amount } of bill)
    if (hold !== undefined) amounts.set(hold, sumMoney([amounts.get(hold) ?? zero, amount]));
  return amounts;
}
