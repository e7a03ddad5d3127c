// Metrics of receipts: how far the signed record is behind the ledger.
import { Counter, Gauge, type Registry } from 'prom-client';
import { readForScrape } from '../../billing/index.ts';

export interface ReceiptMetrics {
  readonly failures: Counter;
  readonly linked: Counter;
}

/** How far the record is behind. */
export interface Lag {
  /** Days that have ended and are not sealed. */
  readonly days: number;
  /** Age of the oldest transaction that is not linked. */
  readonly seconds: number;
}

/** Makes the metrics; `lag` runs at each scrape, undefined where it is not known. */
export function receiptMetrics(registry: Registry, lag: () => Promise<Lag | undefined>): ReceiptMetrics {
  const registers = [registry];
  const read = (): Promise<Lag | undefined> => readForScrape(lag);
  new Gauge({
    name: 'moorage_receipts_days_behind',
    help: 'Days (UTC) that have ended and are not sealed yet. Absent where nothing is signed.',
    registers,
    async collect() {
      const now = await read();
      if (now === undefined) this.remove();
      else this.set(now.days);
    },
  });
  new Gauge({
    name: 'moorage_receipts_links_behind_seconds',
    help: 'For how long the oldest transaction that is not in the signed record has waited for it; 0 if none waits. Absent where nothing is signed.',
    registers,
    async collect() {
      const now = await read();
      if (now === undefined) this.remove();
      else this.set(now.seconds);
    },
  });
  return {
    failures: new Counter({
      name: 'moorage_receipts_failures_total',
      help: 'Times that the signed record could not be continued: the database was away, or the record in it is not the one that was signed last.',
      registers,
    }),
    linked: new Counter({
      name: 'moorage_receipts_linked_total',
      help: 'Transactions that this process has put into the signed record.',
      registers,
    }),
  };
}
