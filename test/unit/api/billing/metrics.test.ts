// Metrics of the ledger: what is not known is absent, and no scrape fails because the database is away.
import assert from 'node:assert/strict';
import { Registry } from 'prom-client';
import { test } from 'vitest';
import { Database, DatabaseUnavailable } from '../../../../api/billing/database/database.ts';
import { toPlatformAccount } from '../../../../api/billing/ledger/accounts.ts';
import { Ledger } from '../../../../api/billing/ledger/ledger.ts';
import {
  createBillingMetrics,
  createDailyLimitMetrics,
  createDatabaseMetrics,
  createOverrunMetrics,
} from '../../../../api/billing/metrics.ts';
import { createMeteringMetrics } from '../../../../api/accounting/metering/metering-metrics.ts';
import { createReceiptMetrics } from '../../../../api/accounting/receipts/start-receipts.ts';
import { createReconciliationMetrics } from '../../../../api/accounting/reconciliation/start-reconciliation.ts';

/** The samples of a scrape. */
async function samples(registry: Registry): Promise<string[]> {
  return (await registry.metrics()).split('\n').filter((line) => line !== '' && !/^#|moorage_quota/.test(line));
}

test('holds, the oldest pending cost and the limit of the day', async () => {
  const registry = new Registry();
  createBillingMetrics(registry, {
    holds: () => Promise.resolve({ open: 3, pending: 1, abandoned: 0 }),
    oldestPendingSeconds: () => Promise.resolve(12.5),
  });
  createDailyLimitMetrics(registry, 5, () => Promise.resolve(1.25));
  createDatabaseMetrics(registry, () => Promise.resolve());
  assert.deepEqual(await samples(registry), [
    'moorage_ledger_holds{state="open"} 3',
    'moorage_ledger_holds{state="pending"} 1',
    'moorage_ledger_holds{state="abandoned"} 0',
    'moorage_ledger_oldest_pending_seconds 12.5',
    'moorage_daily_limit_usd 5',
    'moorage_daily_limit_used_usd 1.25',
    'moorage_database_up 1',
  ]);
});

test('a database that is away makes what is read of it absent, and is itself reported', async () => {
  const registry = new Registry();
  const away = (): Promise<never> => Promise.reject(new Error('connection refused'));
  createBillingMetrics(registry, { holds: away, oldestPendingSeconds: away });
  createDailyLimitMetrics(registry, 5, away);
  createDatabaseMetrics(registry, away);
  assert.deepEqual(await samples(registry), ['moorage_daily_limit_usd 5', 'moorage_database_up 0']);
});

test('a scrape sends each statement once to a database that refuses it, while a call retries', async () => {
  const sent: string[] = [];
  const refuse = (): Promise<never> => Promise.reject(new DatabaseUnavailable('refused'));
  const ledger = new Ledger(
    new Database({
      connections: 1,
      rows({ name }) {
        sent.push(name);
        return refuse();
      },
      script: refuse,
      transaction: refuse,
      close: () => Promise.resolve(),
    }),
  );
  const registry = new Registry();
  createBillingMetrics(registry, { holds: () => ledger.counts(), oldestPendingSeconds: () => ledger.oldestPending() });
  createDailyLimitMetrics(registry, 5, async () => {
    await ledger.budget({ account: toPlatformAccount('openrouter'), limit: null });
    return 0;
  });
  createOverrunMetrics(registry, async () => ({ calls: (await ledger.overruns()).calls, excessUsd: 0 }));
  createDatabaseMetrics(registry, () => ledger.ping());
  assert.deepEqual(await samples(registry), ['moorage_daily_limit_usd 5', 'moorage_database_up 0']);
  assert.deepEqual(
    [...sent].sort(),
    ['budget', 'counts', 'oldest-pending', 'overruns', 'overruns', 'ping'].map((name) => `ledger-${name}`),
  );

  sent.length = 0;
  await assert.rejects(ledger.counts(), DatabaseUnavailable);
  assert.equal(sent.length, 5);
});

test('a scrape ends although the database never answers', async () => {
  const registry = new Registry();
  const never = (): Promise<never> => new Promise(() => undefined);
  createBillingMetrics(registry, { holds: never, oldestPendingSeconds: never });
  createDatabaseMetrics(registry, never);
  createMeteringMetrics(registry, never);
  createReceiptMetrics(registry, never);
  createReconciliationMetrics(registry, never);
  const read = (await samples(registry)).filter((line) =>
    /^moorage_(database|ledger|receipts_.*behind|reconciliation|metering_requests_unaccounted)/.test(line),
  );
  assert.deepEqual(read, ['moorage_database_up 0']);
});

test('an audit is absent until there was one', async () => {
  const registry = new Registry();
  const metrics = createBillingMetrics(registry, {
    holds: () => Promise.resolve({ open: 0, pending: 0, abandoned: 0 }),
    oldestPendingSeconds: () => Promise.resolve(0),
  });
  assert.ok((await samples(registry)).every((line) => !line.includes('audit') && !line.includes('imbalance')));
  metrics.reportAudit(2, -0.5);
  const after = await samples(registry);
  assert.ok(after.includes('moorage_ledger_audit_faults 2') && after.includes('moorage_ledger_imbalance_usd -0.5'));
  assert.ok(after.some((line) => /^moorage_ledger_audit_timestamp_seconds \d{10}/.test(line)));
});
