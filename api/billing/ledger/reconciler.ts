// Reconciles pending costs with the router's records: settles what it finds, waits longer each time, gives up after a
// while.
import type { CostSource, Ledger } from './ledger.ts';
import type { Money } from './money.ts';
import type { PendingCost } from './shapes.ts';

/** What the router's records have of a call. `not made`: it never arrived, so it cost nothing. */
export type LookupResult =
  | { readonly outcome: 'found'; readonly cost: Money; readonly source: CostSource }
  | { readonly outcome: 'not made' }
  | { readonly outcome: 'not yet'; readonly why: string };

export interface ReconcilerOptions {
  readonly lookUp: (pending: PendingCost) => Promise<LookupResult>;
  /** First wait; doubles with each attempt up to an hour. */
  readonly waitMs: number;
  /** After so many looks the cost is abandoned. */
  readonly attempts: number;
  /** How long one lookup may last. */
  readonly leaseMs: number;
}

export interface ReconcileCounts {
  settled: number;
  released: number;
  deferred: number;
  abandoned: number;
}

/** Looks once at what is due, at most 20 calls. @returns what became of them; all zero when nothing was due. */
export async function reconcile(ledger: Ledger, options: ReconcilerOptions): Promise<ReconcileCounts> {
  const tally: ReconcileCounts = { settled: 0, released: 0, deferred: 0, abandoned: 0 };
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
      await ledger.settle({ hold: pending.hold, cost: found.cost, source: found.source });
      return 'settled';
    case 'not made':
      await ledger.release(pending.hold);
      return 'released';
    case 'not yet':
      if (pending.attempts >= options.attempts) {
        await ledger.abandonPending(pending.hold, found.why);
        return 'abandoned';
      }
      await ledger.deferPending(
        pending.hold,
        Math.min(options.waitMs * 2 ** (pending.attempts - 1), 3_600_000),
        found.why,
      );
      return 'deferred';
  }
}
