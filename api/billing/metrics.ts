// Metrics of the ledger and the quotas. Labels are kinds and states from here: sets that cannot grow.
import { Counter, Gauge, type Registry } from 'prom-client';
import type { Payer } from './payer.ts';

export interface BillingMetrics {
  refused(kind: Payer['kind'], by: 'caller' | 'everyone'): void;
}

/** Makes the metrics; `counts` runs at each scrape. */
export function billingMetrics(
  registry: Registry,
  counts: () => Promise<{ open: number; pending: number; abandoned: number }>,
): BillingMetrics {
  const registers = [registry];
  const refusals = new Counter({
    name: 'moorage_quota_refusals_total',
    help: 'Calls refused because a quota did not cover them.',
    labelNames: ['caller', 'quota'],
    registers,
  });
  new Gauge({
    name: 'moorage_ledger_holds',
    help: 'Holds by state: open, pending (cost being looked up) and abandoned (cost never found).',
    labelNames: ['state'],
    registers,
    async collect() {
      // A scrape must not fail because the database is away.
      const now = await counts().catch(() => undefined);
      this.reset();
      for (const [state, count] of Object.entries(now ?? {})) this.set({ state }, count);
    },
  });
  return {
    refused(caller, quota) {
      refusals.inc({ caller, quota });
    },
  };
}
