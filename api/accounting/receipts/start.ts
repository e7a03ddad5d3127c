// Starts receipts: the task that links and seals, its metrics, and the endpoints.
import type { Registry } from 'prom-client';
import type { Logger } from '../../../lib/log.ts';
import type { LedgerHandle, OpenLedger } from '../../billing/index.ts';
import type { Endpoint } from '../../http/index.ts';
import type { PayerFor } from '../../models/index.ts';
import { chargesEndpoint } from './charges.ts';
import type { ReceiptSettings } from './config.ts';
import { recordEndpoints } from './endpoints.ts';
import { advanceLog, marginMs } from './log/log.ts';
import type { Signer } from './log/signer.ts';
import { lag } from './log/statements.ts';
import { receiptMetrics, type ReceiptMetrics } from './metrics.ts';
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
  const metrics = receiptMetrics(options.registry, async () =>
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
    endpoints: [...recordEndpoints({ ...options, receipts }), chargesEndpoint({ ...options, receipts })],
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
