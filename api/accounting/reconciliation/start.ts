// Starts the reconciliation: each day soon after it is over, and again while something of it is awaited.
import type { Registry } from 'prom-client';
import type { Logger } from '../../../lib/log.ts';
import type { LedgerHandle, OpenLedger } from '../../billing/index.ts';
import type { Endpoint } from '../../http/index.ts';
import type { ListPrices } from './compare/prices.ts';
import type { RouterRecords } from './compare/router.ts';
import { dayAt } from './day.ts';
import { reconciliationEndpoints } from './endpoints.ts';
import { reconciliationMetrics } from './metrics.ts';
import { reconcileDay } from './reconcile-day.ts';
import { ReconciliationStore, type Schedule } from './store.ts';

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
/** How often it is looked whether a day is due. */
const everyMs = 600_000;
/** For so long a difference that nobody has explained is shown by the metrics. */
const shownDays = 35;

export function startReconciliation(options: ReconciliationOptions): { readonly endpoints: readonly Endpoint[] } {
  const { ledger, registry, baseUrl } = options;
  let isOpen = false;
  const store = (): ReconciliationStore => new ReconciliationStore(ledger.get().database);
  reconciliationMetrics(registry, async () =>
    isOpen ? { differences: await store().standing(shownDays), until: await store().until() } : undefined,
  );
  void ledger.opened.then((opened) => {
    if (opened === undefined) return;
    isOpen = true;
    opened.repeat('reconcile days', everyMs, () => reconcileDue(opened, options));
  });
  return { endpoints: reconciliationEndpoints(store, baseUrl) };
}

/** @returns how many days it reconciled: 0 or 1 */
async function reconcileDue({ database }: OpenLedger, { router, prices, log }: ReconciliationOptions): Promise<number> {
  const store = new ReconciliationStore(database);
  const due = await store.claimDue(schedule);
  if (due === undefined) return 0;
  try {
    const now = new Date();
    const made = await store.write(await reconcileDay({ database, router, prices, now }, dayAt(due, now)));
    const { events, usd } = made.unexplained;
    const found = { day: due, events, usd, waits: made.waits };
    if (events > 0) log.error(found, 'the reconciliation of a day found unexplained differences');
    else log.info(found, 'a day is reconciled');
    return 1;
  } finally {
    await store.release(due);
  }
}
