// Calls of ours beside what the router's records have of each.
import { z } from 'zod';
import { type BilledCall, money, type Money, sumMoney, zero } from '../../../billing/index.ts';
import { type Difference, less, type Line, nothing, type Sum, total } from '../comparison.ts';

/** Routers write their records with a delay. */
const delayMs = 600_000;

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

export interface Matched {
  /** What the router has of these calls. */
  readonly right: Sum;
  readonly differences: readonly Difference[];
}

/** Each call of ours beside what the router has of it. */
export function matchCalls(ours: readonly LedgerCall[], bill: readonly BilledCall[], now: Date): Matched {
  const byHold = billByHold(bill);
  const sides = ours.map((one) => {
    const billed = byHold.get(one.id);
    const left = bookedOf(one);
    // A record of nothing, of a call that was given back.
    const right =
      billed === undefined || (billed === zero && one.booked === null) ? nothing : { events: 1, usd: billed };
    return { one, left, right, kind: findCause(one, billed, now) };
  });
  return {
    right: total(sides.map(({ right }) => right)),
    differences: sides.flatMap(({ one, left, right, kind }): Difference[] =>
      kind === undefined ? [] : [{ kind, subject: one.id, ...less(left, right) }],
    ),
  };
}

function findCause(call: LedgerCall, billed: Money | undefined, now: Date): Difference['kind'] | undefined {
  const { state, booked } = call;
  if (booked !== null) return causeOfBooked({ ...call, booked }, billed, now);
  if (billed === undefined || billed === zero) return undefined;
  if (state === 'abandoned') return 'abandoned';
  return state === 'open' || state === 'pending' ? 'pending' : 'released';
}

function causeOfBooked(
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
export function matchOwn(
  own: readonly LedgerCall[],
  bill: readonly BilledCall[],
): { line: Line | undefined; differences: readonly Difference[]; unseen: Sum } {
  const byHold = billByHold(bill);
  const seen = own.filter(({ id, booked }) => booked !== null && byHold.has(id));
  const unseen = total(own.filter(({ id }) => !byHold.has(id)).map(bookedOf));
  if (seen.length === 0) return { line: undefined, differences: [], unseen };
  const sides = seen.map((one) => ({
    one,
    left: bookedOf(one),
    right: { events: 1, usd: byHold.get(one.id) ?? zero },
  }));
  return {
    line: {
      name: 'own_key',
      left: total(sides.map(({ left }) => left)),
      right: total(sides.map(({ right }) => right)),
    },
    differences: sides.flatMap(({ one, left, right }): Difference[] =>
      left.usd === right.usd
        ? []
        : [{ kind: one.is_estimated ? 'estimated' : 'amount_differs', subject: one.id, ...less(left, right) }],
    ),
    unseen,
  };
}

export function bookedOf({ booked }: LedgerCall): Sum {
  return { events: booked === null ? 0 : 1, usd: booked ?? zero };
}

/** What the router has of each hold; a call that it made twice has two records. */
function billByHold(bill: readonly BilledCall[]): ReadonlyMap<string, Money> {
  const amounts = new Map<string, Money>();
  for (const { hold, amount } of bill)
    if (hold !== undefined) amounts.set(hold, sumMoney([amounts.get(hold) ?? zero, amount]));
  return amounts;
}
