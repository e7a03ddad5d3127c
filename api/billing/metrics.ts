// Metrics of the ledger and the quotas. Labels are kinds and states from here: sets that cannot grow.
import { setTimeout as sleep } from 'node:timers/promises';
import { Counter, Gauge, type Registry } from 'prom-client';
import { runWithoutRetries } from './database/database.ts';
import type { Payer } from './ledger/accounts.ts';

export interface BillingMetrics {
  refused(kind: Payer['kind'], by: 'caller' | 'everyone'): void;
  /** What an audit of the whole ledger found; `imbalance`: the sum of all entries, in USD. */
  reportAudit(faults: number, imbalance: number): void;
}

/** Read at each scrape. */
export interface BillingCounts {
  readonly holds: () => Promise<Readonly<Record<'open' | 'pending' | 'abandoned', number>>>;
  /** Seconds since the oldest cost is looked up; 0 where none is. */
  readonly oldestPendingSeconds: () => Promise<number>;
}

/** A scrape must neither fail nor take long because the database is away. */
const limitMs = 3_000;

/** Makes the metrics. */
export function createBillingMetrics(registry: Registry, counts: BillingCounts): BillingMetrics {
  const registers = [registry];
  const refusals = new Counter({
    name: 'moorage_quota_refusals_total',
    help: 'Calls refused because a quota did not cover them.',
    labelNames: ['caller', 'quota'],
    registers,
  });
  // From the first scrape on, so that the first refusal is an increase.
  for (const caller of ['anonymous', 'key', 'app'] satisfies Payer['kind'][])
    for (const quota of ['caller', 'everyone']) refusals.inc({ caller, quota }, 0);
  new Gauge({
    name: 'moorage_ledger_holds',
    help: 'Holds by state: open, pending (cost being looked up) and abandoned (cost never found).',
    labelNames: ['state'],
    registers,
    async collect() {
      const now = await readForScrape(counts.holds);
      this.reset();
      for (const [state, count] of Object.entries(now ?? {})) this.set({ state }, count);
    },
  });
  new Gauge({
    name: 'moorage_ledger_oldest_pending_seconds',
    help: 'Seconds for which the oldest pending cost has been looked up; 0 if there is none.',
    registers,
    async collect() {
      setOrRemove(this, await readForScrape(counts.oldestPendingSeconds));
    },
  });
  const audit = createAuditMetrics(registers);
  return {
    refused(caller, quota) {
      refusals.inc({ caller, quota });
    },
    reportAudit(faults, imbalance) {
      audit.faults.set(faults);
      audit.imbalance.set(imbalance);
      audit.at.setToCurrentTime();
    },
  };
}

function createAuditMetrics(registers: Registry[]): Record<'faults' | 'imbalance' | 'at', Gauge> {
  const metrics = {
    faults: new Gauge({
      name: 'moorage_ledger_audit_faults',
      help: 'Faults that the last audit of the ledger found: sums and totals that disagree with the entries.',
      registers,
    }),
    imbalance: new Gauge({
      name: 'moorage_ledger_imbalance_usd',
      help: 'Sum of all entries of the ledger at the last audit, in USD; 0 in a ledger that balances.',
      registers,
    }),
    at: new Gauge({
      name: 'moorage_ledger_audit_timestamp_seconds',
      help: 'When the ledger was last audited, in seconds since 1970.',
      registers,
    }),
  };
  // Before the first audit nothing is known, which is not 0.
  for (const gauge of Object.values(metrics)) gauge.remove();
  return metrics;
}

/** Whether the database answers, seen at each scrape: also before it was ever open. */
export function createDatabaseMetrics(registry: Registry, answers: () => Promise<unknown>): void {
  new Gauge({
    name: 'moorage_database_up',
    help: '1 if the database answered at this scrape, else 0. Absent if none is configured.',
    registers: [registry],
    async collect() {
      this.set((await readForScrape(() => answers().then(() => true))) === true ? 1 : 0);
    },
  });
}

/** What the platform's key may cost a day, and has. */
export function createDailyLimitMetrics(registry: Registry, limitUsd: number, usedUsd: () => Promise<number>): void {
  const registers = [registry];
  new Gauge({
    name: 'moorage_daily_limit_usd',
    help: 'Daily limit of all calls that are paid with the platform key, in USD.',
    registers,
  }).set(limitUsd);
  new Gauge({
    name: 'moorage_daily_limit_used_usd',
    help: 'What of the daily limit is used or held today (UTC), in USD.',
    registers,
    async collect() {
      setOrRemove(this, await readForScrape(usedUsd));
    },
  });
}

/** Model calls that cost more than was reserved for them. */
export function createOverrunMetrics(
  registry: Registry,
  today: () => Promise<{ calls: number; excessUsd: number }>,
): void {
  const gauge = (name: string, help: string, read: (now: { calls: number; excessUsd: number }) => number): void => {
    new Gauge({
      name,
      help,
      registers: [registry],
      async collect() {
        const now = await readForScrape(today);
        setOrRemove(this, now === undefined ? undefined : read(now));
      },
    });
  };
  gauge(
    'moorage_model_calls_above_hold',
    'Model calls of today (UTC) that cost the platform more than was reserved for them. Their callers and models are stopped.',
    ({ calls }) => calls,
  );
  gauge(
    'moorage_model_calls_above_hold_usd',
    'What these calls cost beyond what was reserved, in USD.',
    ({ excessUsd }) => excessUsd,
  );
}

function setOrRemove(gauge: Gauge, value: number | undefined): void {
  if (value === undefined) gauge.remove();
  else gauge.set(value);
}

/**
 * Reads from the database for a gauge. Without a retry: the next scrape is one, and a scraper that gives up before the
 * last retry would not see that the database is away. @returns undefined where it fails or takes too long
 */
export async function readForScrape<T>(read: () => Promise<T>): Promise<T | undefined> {
  const ending = new AbortController();
  const late = sleep(limitMs, undefined, { signal: ending.signal, ref: false }).catch(() => undefined);
  try {
    return await Promise.race([runWithoutRetries(read).catch(() => undefined), late]);
  } finally {
    ending.abort();
  }
}
