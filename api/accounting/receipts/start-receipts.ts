// Starts receipts: the task that links and seals transactions, its metrics, and the endpoints.
import { Counter, Gauge, type Registry } from 'prom-client';
import type { Logger } from '../../../lib/telemetry.ts';
import { type LedgerHandle, type OpenLedger, readForScrape } from '../../billing/index.ts';
import type { Endpoint } from '../../http/index.ts';
import type { PayerFor } from '../../models/index.ts';
import { createChargesEndpoint } from './charges.ts';
import type { ReceiptSettings } from './config.ts';
import { createRecordEndpoints } from './endpoints.ts';
import { lag } from './ledger-log-queries.ts';
import { advanceLog, marginMs, type Signer } from './ledger-log.ts';
import { Receipts } from './receipts.ts';

export interface StartOptions {
  readonly settings: ReceiptSettings;
  readonly ledger: LedgerHandle;
  readonly payerFor: PayerFor;
  /** Like https://moorage.localhost, without a slash at the end. */
  readonly baseUrl: string;
  readonly registry: Registry;
  readonly log: Logger;
  /** How often what was posted is linked; default 10 s. */
  readonly everyMs?: number | undefined;
}

export interface StartedReceipts {
  readonly receipts: Receipts;
  readonly endpoints: readonly Endpoint[];
}

export function startReceipts(options: StartOptions): StartedReceipts {
  const { ledger, log } = options;
  const receipts = new Receipts(options);
  const { signer } = receipts;
  let opened: OpenLedger | undefined;
  const metrics = createReceiptMetrics(options.registry, async () =>
    signer === undefined ? undefined : (await opened?.database.query(lag, [marginMs]))?.[0],
  );
  void ledger.opened.then((open) => {
    if (open === undefined) return;
    opened = open;
    if (signer === undefined) log.warn('receipts are not signed: MOORAGE_RECEIPT_KEY is not set');
    else open.repeat('link and seal', options.everyMs ?? 10_000, () => advance(open, signer, metrics));
  });
  return {
    receipts,
    endpoints: [...createRecordEndpoints({ ...options, receipts }), createChargesEndpoint({ ...options, receipts })],
  };
}

/** @returns 0 when nothing is left to do until the next time */
async function advance({ database }: OpenLedger, signer: Signer, metrics: ReceiptMetrics): Promise<number> {
  try {
    const { linked, more } = await advanceLog({ database, signer });
    metrics.linked.inc(linked);
    return more ? 1 : 0;
  } catch (error) {
    metrics.failures.inc();
    throw error;
  }
}

export interface ReceiptMetrics {
  readonly failures: Counter;
  readonly linked: Counter;
}

/** How far the record lags behind the ledger. */
export interface Lag {
  /** Days that have ended and are not sealed. */
  readonly days: number;
  /** Age of the oldest transaction that is not linked. */
  readonly seconds: number;
}

/** Makes the metrics; `lag` runs at each scrape, undefined where it is not known. */
export function createReceiptMetrics(registry: Registry, lag: () => Promise<Lag | undefined>): ReceiptMetrics {
  const registers = [registry];
  const readLag = (): Promise<Lag | undefined> => readForScrape(lag);
  new Gauge({
    name: 'moorage_receipts_days_behind',
    help: 'Days (UTC) that have ended and are not sealed yet. Absent where nothing is signed.',
    registers,
    async collect() {
      const now = await readLag();
      if (now === undefined) this.remove();
      else this.set(now.days);
    },
  });
  new Gauge({
    name: 'moorage_receipts_links_behind_seconds',
    help: 'For how long the oldest transaction that is not in the signed record has waited for it; 0 if none waits. Absent where nothing is signed.',
    registers,
    async collect() {
      const now = await readLag();
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
