// Metrics of the reconciliation, read from what is stored: every replica shows the same.
import { Gauge, type Registry } from 'prom-client';
import { readForScrape } from '../../billing/index.ts';
import { comparisonNames } from './result.ts';

export interface ReconciliationStanding {
  readonly differences: readonly { readonly comparison: string; readonly events: number; readonly usd: number }[];
  /** Seconds since 1970. */
  readonly until: number | undefined;
}

/** Makes the metrics; `standing` runs at each scrape, and is undefined while the database is not open. */
export function reconciliationMetrics(
  registry: Registry,
  standing: () => Promise<ReconciliationStanding | undefined>,
): void {
  const registers = [registry];
  const read = (): Promise<ReconciliationStanding | undefined> => readForScrape(standing);
  const difference = (name: string, help: string, of: 'events' | 'usd'): void => {
    new Gauge({
      name,
      help,
      labelNames: ['comparison'],
      registers,
      async collect() {
        const now = await read();
        this.reset();
        if (now === undefined) return;
        for (const comparison of comparisonNames)
          this.set({ comparison }, now.differences.find((one) => one.comparison === comparison)?.[of] ?? 0);
      },
    });
  };
  difference(
    'moorage_reconciliation_difference_events',
    'Requests, uses or calls in which records of the last 35 days differ and nothing explains why, by comparison: gateway, ledger, router, sums.',
    'events',
  );
  difference(
    'moorage_reconciliation_difference_usd',
    'USD by which records of the last 35 days differ and nothing explains why, by comparison.',
    'usd',
  );
  new Gauge({
    name: 'moorage_reconciliation_until_timestamp_seconds',
    help: 'End of the newest day (UTC) that was reconciled, in seconds since 1970.',
    registers,
    async collect() {
      const until = (await read())?.until;
      if (until === undefined) this.remove();
      else this.set(until);
    },
  });
}
