// Reconciles one day: all comparisons, and what they come to.
import { type Database, formatMoney, parseMoney, sumMoney } from '../../billing/index.ts';
import { rollUpUses } from '../metering/index.ts';
import { compareGateway } from './compare/gateway.ts';
import { compareLedger } from './compare/ledger.ts';
import { comparePrices, type ListPrices } from './compare/prices.ts';
import { compareRouter, type RouterRecords } from './compare/router.ts';
import { compareSums } from './compare/sums.ts';
import { concluded } from './comparison.ts';
import type { Day } from './day.ts';
import type { ApartKind, ComparisonResult, DifferenceKind, Reconciliation } from './result.ts';
import { inSnapshot } from './snapshot.ts';

export interface ReconcileOptions {
  readonly database: Database;
  readonly router: RouterRecords;
  readonly prices: ListPrices;
  readonly now: Date;
}

/** What may still come, after which the day looks different. */
const waiting: ReadonlySet<DifferenceKind | ApartKind> = new Set(['open', 'pending', 'missing', 'not_yet_billed']);

/** Compares the records of a day. Changes nothing but the sums of uses, which it brings up to date. */
export async function reconcileDay(
  { database, router, prices, now }: ReconcileOptions,
  day: Day,
): Promise<Omit<Reconciliation, 'explanation'>> {
  const inside = await inSnapshot(database, async (transaction) => {
    await rollUpUses(transaction);
    return {
      gateway: concluded(await compareGateway(transaction, day)),
      ledger: concluded(await compareLedger(transaction, day)),
      prices: concluded(await comparePrices(transaction, day, prices)),
      sums: concluded(await compareSums(transaction, day)),
    };
  });
  const bill = concluded(await compareRouter(database, router, day, now));
  const comparisons = [inside.gateway, inside.ledger, bill, inside.prices, inside.sums];
  return {
    day: day.day,
    made_at: now.toISOString(),
    complete: day.isComplete,
    waits: comparisons.some(isWaiting),
    unexplained: {
      events: comparisons.reduce((sum, { unexplained }) => sum + unexplained.events, 0),
      usd: formatMoney(sumMoney(comparisons.map(({ unexplained }) => parseMoney(unexplained.usd)))),
    },
    comparisons,
  };
}

function isWaiting({ apart, differences }: ComparisonResult): boolean {
  return [...apart, ...differences].some(({ kind }) => waiting.has(kind));
}
