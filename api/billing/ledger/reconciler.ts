// Reconciles pending costs with the router's records: settles what it finds, waits longer each time, and settles at an
// estimate what cannot be found. Also the shape of what a router has billed in a span of time, by its own records.
import type { CostSource, Ledger } from './ledger.ts';
import { type Money, zero } from './money.ts';
import type { PendingCost } from './statements.ts';

/**
 * What the router's records have of a call. `not made`: it never arrived, so it cost nothing. `never`: the router keeps no
 * record in which it could be found. `tokens`: how many it counted, where the record says so.
 */
export type LookupResult =
  | {
      readonly outcome: 'found';
      readonly cost: Money;
      readonly source: CostSource;
      readonly tokens?: number | undefined;
    }
  | { readonly outcome: 'never'; readonly why: string }
  | { readonly outcome: 'not made' }
  | { readonly outcome: 'not yet'; readonly why: string };

export interface ReconcilerOptions {
  readonly lookUp: (pending: PendingCost) => Promise<LookupResult>;
  /** First wait; doubles with each attempt up to an hour. */
  readonly waitMs: number;
  /** After so many looks the cost is settled at the estimate. */
  readonly attempts: number;
  /** How long one lookup may last. */
  readonly leaseMs: number;
}

export interface ReconcileCounts {
  settled: number;
  released: number;
  deferred: number;
  estimated: number;
}

/** Looks once at what is due, at most 20 calls. @returns what became of them; all zero when nothing was due. */
export async function reconcile(ledger: Ledger, options: ReconcilerOptions): Promise<ReconcileCounts> {
  const tally: ReconcileCounts = { settled: 0, released: 0, deferred: 0, estimated: 0 };
  const due = await ledger.claimPending(20, options.leaseMs);
  await Promise.all(
    due.map(async (pending) => {
      tally[await reconcileOne(ledger, pending, options)] += 1;
    }),
  );
  return tally;
}

async function reconcileOne(
  ledger: Ledger,
  pending: PendingCost,
  options: ReconcilerOptions,
): Promise<keyof ReconcileCounts> {
  const found = await options.lookUp(pending).catch((error: unknown): LookupResult => ({
    outcome: 'not yet',
    why: error instanceof Error ? error.message : String(error),
  }));
  switch (found.outcome) {
    case 'found':
      if (isDoubtful(found, pending))
        return postpone(
          ledger,
          pending,
          options,
          `the router recorded a cost of 0 for ${found.tokens ?? 'its'} tokens`,
        );
      await ledger.settle({ hold: pending.hold, cost: found.cost, source: found.source });
      return 'settled';
    case 'not made':
      await ledger.release(pending.hold);
      return 'released';
    case 'never':
      // A process that died may have left the cost in its journal, which is read when it starts again.
      if (pending.reason === 'missing') return settleAtEstimate(ledger, pending);
      return postpone(ledger, pending, options, found.why);
    case 'not yet':
      return postpone(ledger, pending, options, found.why);
  }
}

/** Routers are known to record 0 before they have computed a cost (BerriAI/litellm#37923). What is reserved shows whether the model has a price. */
export function isDoubtful(
  { cost, tokens }: { readonly cost: Money; readonly tokens?: number | undefined },
  { held }: Pick<PendingCost, 'held'>,
): boolean {
  return cost === zero && held > zero && tokens !== 0;
}

async function postpone(
  ledger: Ledger,
  pending: PendingCost,
  { waitMs, attempts }: ReconcilerOptions,
  why: string,
): Promise<'estimated' | 'deferred'> {
  if (pending.attempts >= attempts) return settleAtEstimate(ledger, pending);
  await ledger.deferPending(pending.hold, Math.min(waitMs * 2 ** (pending.attempts - 1), 3_600_000), why);
  return 'deferred';
}

async function settleAtEstimate(ledger: Ledger, pending: PendingCost): Promise<'estimated'> {
  await ledger.settle({ hold: pending.hold, cost: pending.estimate, source: 'estimated' });
  return 'estimated';
}

/** A span of time: from `from` on, and before `to`. */
export interface BillWindow {
  readonly from: Date;
  readonly to: Date;
}

/** A call as the router's records have it. */
export interface BilledCall {
  /** The id that was sent along with it, of its hold; undefined where the record has none that is ours. */
  readonly hold: string | undefined;
  /** What the router knows it by. */
  readonly reference: string;
  /** When it began, by the router's clock. */
  readonly at: Date;
  readonly amount: Money;
  /** Whether the platform's key paid; undefined where the record does not say. */
  readonly isPlatform: boolean | undefined;
}

/**
 * `calls`: one by one; `totals`: only what they add up to, of the platform's key; `not known`: there is no bill, for the
 * reason given.
 */
export type RouterBill =
  | { readonly outcome: 'calls'; readonly calls: readonly BilledCall[] }
  | { readonly outcome: 'totals'; readonly calls: number; readonly amount: Money }
  | { readonly outcome: 'not known'; readonly why: string };

/** What is needed to ask for a bill besides the address. */
export interface BillRequest extends BillWindow {
  /** Hash (SHA-256, hexadecimal) of the platform's key, as routers name a key; undefined where there is no key. */
  readonly keyHash: string | undefined;
}
