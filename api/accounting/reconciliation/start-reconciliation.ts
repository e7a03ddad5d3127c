// Reconciles each day soon after it ends, and again while records of it may still arrive. Exports the differences as metrics.
import { Gauge, type Registry } from 'prom-client';
import type { Logger } from '../../../lib/telemetry.ts';
import {
  type Database,
  formatMoney,
  type LedgerHandle,
  type OpenLedger,
  parseMoney,
  readForScrape,
  sumMoney,
} from '../../billing/index.ts';
import type { Endpoint } from '../../http/index.ts';
import { rollUpUses } from '../metering/index.ts';
import { compareLedger } from './compare/ledger.ts';
import { comparePrices, type ListPrices } from './compare/prices.ts';
import { compareRouter, type RouterRecords } from './compare/router.ts';
import { compareGateway, compareSums } from './compare/uses.ts';
import { concludeComparison, type Day, parseDay, runInSnapshot } from './comparison.ts';
import { createReconciliationEndpoints } from './endpoints.ts';
import { ReconciliationStore, type Schedule } from './reconciliation-store.ts';
import {
  type ApartKind,
  comparisonNames,
  type ComparisonResult,
  type DifferenceKind,
  type Reconciliation,
} from './result.ts';

export interface ReconciliationOptions {
  /** Like https://moorage.localhost, without a slash at the end. */
  readonly baseUrl: string;
  readonly ledger: LedgerHandle;
  readonly router: RouterRecords;
  readonly prices: ListPrices;
  readonly registry: Registry;
  readonly log: Logger;
}

const schedule: Schedule = { afterMs: 1_200_000, againMs: 21_600_000, days: 7, leaseMs: 1_800_000 };
/** How often to check whether a day is due. */
const everyMs = 600_000;
/** For so long a difference that nobody has explained is shown by the metrics. */
const shownDays = 35;

export function startReconciliation(options: ReconciliationOptions): { readonly endpoints: readonly Endpoint[] } {
  const { ledger, registry, baseUrl } = options;
  let isOpen = false;
  const getStore = (): ReconciliationStore => new ReconciliationStore(ledger.get().database);
  createReconciliationMetrics(registry, async () =>
    isOpen ? { differences: await getStore().readState(shownDays), until: await getStore().readEnd() } : undefined,
  );
  void ledger.opened.then((opened) => {
    if (opened === undefined) return;
    isOpen = true;
    opened.repeat('reconcile days', everyMs, () => reconcileDue(opened, options));
  });
  return { endpoints: createReconciliationEndpoints(getStore, baseUrl) };
}

/** @returns how many days it reconciled: 0 or 1 */
async function reconcileDue({ database }: OpenLedger, { router, prices, log }: ReconciliationOptions): Promise<number> {
  const store = new ReconciliationStore(database);
  const due = await store.claimDue(schedule);
  if (due === undefined) return 0;
  try {
    const now = new Date();
    const made = await store.write(await reconcileDay({ database, router, prices, now }, parseDay(due, now)));
    const { events, usd } = made.unexplained;
    const summary = { day: due, events, usd, waits: made.waits };
    if (events > 0) log.error(summary, 'the reconciliation of a day found unexplained differences');
    else log.info(summary, 'a day was reconciled');
    return 1;
  } finally {
    await store.release(due);
  }
}

export interface ReconcileOptions {
  readonly database: Database;
  readonly router: RouterRecords;
  readonly prices: ListPrices;
  readonly now: Date;
}

/** Kinds that may still change, so that the day is compared again. */
const waiting: ReadonlySet<DifferenceKind | ApartKind> = new Set(['open', 'pending', 'missing', 'not_yet_billed']);

/** Compares the records of a day. Changes nothing but the sums of uses, which it brings up to date. */
export async function reconcileDay(
  { database, router, prices, now }: ReconcileOptions,
  day: Day,
): Promise<Omit<Reconciliation, 'explanation'>> {
  const inside = await runInSnapshot(database, async (transaction) => {
    await rollUpUses(transaction);
    return {
      gateway: concludeComparison(await compareGateway(transaction, day)),
      ledger: concludeComparison(await compareLedger(transaction, day)),
      prices: concludeComparison(await comparePrices(transaction, day, prices)),
      sums: concludeComparison(await compareSums(transaction, day)),
    };
  });
  const bill = concludeComparison(await compareRouter(database, router, day, now));
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

export interface ReconciliationState {
  readonly differences: readonly { readonly comparison: string; readonly events: number; readonly usd: number }[];
  /** Seconds since 1970. */
  readonly until: number | undefined;
}

/** Makes the metrics; `standing` runs at each scrape, and is undefined while the database is not open. */
export function createReconciliationMetrics(
  registry: Registry,
  readStanding: () => Promise<ReconciliationState | undefined>,
): void {
  const registers = [registry];
  const readForGauge = (): Promise<ReconciliationState | undefined> => readForScrape(readStanding);
  const addGauge = (name: string, help: string, of: 'events' | 'usd'): void => {
    new Gauge({
      name,
      help,
      labelNames: ['comparison'],
      registers,
      async collect() {
        const now = await readForGauge();
        this.reset();
        if (now === undefined) return;
        for (const comparison of comparisonNames)
          this.set({ comparison }, now.differences.find((one) => one.comparison === comparison)?.[of] ?? 0);
      },
    });
  };
  addGauge(
    'moorage_reconciliation_difference_events',
    'Requests, uses or calls in which records of the last 35 days differ and nothing explains why, by comparison: gateway, ledger, router, sums.',
    'events',
  );
  addGauge(
    'moorage_reconciliation_difference_usd',
    'Unexplained difference between records of the last 35 days, in USD, by comparison.',
    'usd',
  );
  new Gauge({
    name: 'moorage_reconciliation_until_timestamp_seconds',
    help: 'End of the newest day (UTC) that was reconciled, in seconds since 1970.',
    registers,
    async collect() {
      const until = (await readForGauge())?.until;
      if (until === undefined) this.remove();
      else this.set(until);
    },
  });
}
