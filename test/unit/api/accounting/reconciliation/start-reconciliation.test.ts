// The room as the API starts it, on PGlite: yesterday is compared by itself, shown by the endpoints and by the metrics.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { test } from 'vitest';
import { z } from 'zod';
import { startReconciliation } from '../../../../../api/accounting/reconciliation/index.ts';
import { openLedger } from '../../../../../api/billing/index.ts';
import { createRequestListener } from '../../../../../api/http/index.ts';
import { createHttpMetrics } from '../../../../../lib/telemetry.ts';
import { createBlockList } from '../../../../../lib/subnets.ts';
import { baseUrl } from '../../../../support/api/sample.ts';
import { send } from '../../../../support/api/send.ts';
import { migratedDatabase } from '../../../../support/ledger/snapshot.ts';

const log = pino({ level: 'silent' });
const list = z.object({
  days: z.array(z.looseObject({ day: z.string(), url: z.string(), waits: z.boolean() })),
  next: z.string().nullable(),
});

test('yesterday is reconciled by itself, once; endpoints and metrics show it', async () => {
  const registry = new Registry();
  const ledger = openLedger({ databaseUrl: migratedDatabase, registry: new Registry(), log });
  const { endpoints } = startReconciliation({
    baseUrl,
    ledger,
    registry,
    log,
    prices: { models: [], embeddings: [] },
    router: {
      name: 'none',
      fetchBill: () => Promise.resolve({ outcome: 'not known', why: 'no model router is configured' }),
    },
  });
  const app = createRequestListener({
    endpoints,
    baseUrl,
    callers: { salt: 'salt', trustedProxies: createBlockList([]) },
    log,
    metrics: createHttpMetrics(new Registry()),
    ending: new AbortController().signal,
  });
  await ledger.opened;
  const yesterday = new Date(Date.now() - 86_400_000 - 1_200_000).toISOString().slice(0, 10);
  let days: z.output<typeof list>['days'] = [];
  while (days.length === 0) {
    await sleep(20);
    ({ days } = list.parse(await (await send(app, '/api/reconciliation?limit=1')).json()));
  }
  assert.deepEqual(
    days.map(({ day, url, waits }) => [day, url, waits]),
    [[yesterday, `${baseUrl}/api/reconciliation/${yesterday}`, false]],
  );
  const one = z
    .looseObject({ comparisons: z.array(z.looseObject({ name: z.string(), outcome: z.string() })) })
    .parse(await (await send(app, `/api/reconciliation/${yesterday}`)).json());
  assert.deepEqual(
    one.comparisons.map(({ name, outcome }) => [name, outcome]),
    [
      ['gateway', 'equal'],
      ['ledger', 'equal'],
      ['router', 'not_known'],
      ['prices', 'equal'],
      ['sums', 'equal'],
    ],
  );
  const before = await send(app, `/api/reconciliation?before=${yesterday}`);
  assert.deepEqual(await before.json(), { days: [], next: null });
  assert.equal((await send(app, '/api/reconciliation/2020-01-01')).status, 404);
  const metrics = await registry.metrics();
  assert.match(metrics, /moorage_reconciliation_difference_events\{comparison="router"\} 0/);
  assert.match(metrics, /moorage_reconciliation_difference_usd\{comparison="ledger"\} 0/);
  const until = Date.parse(`${yesterday}T00:00:00Z`) / 1_000 + 86_400;
  assert.ok(metrics.includes(`moorage_reconciliation_until_timestamp_seconds ${until}`), metrics);
  await ledger.close();
});

test('without a database the endpoints say so, and the metrics are absent', async () => {
  const registry = new Registry();
  const ledger = openLedger({ databaseUrl: undefined, registry: new Registry(), log });
  const { endpoints } = startReconciliation({
    baseUrl,
    ledger,
    registry,
    log,
    prices: { models: [], embeddings: [] },
    router: { name: 'none', fetchBill: () => Promise.reject(new Error('not asked')) },
  });
  const app = createRequestListener({
    endpoints,
    baseUrl,
    callers: { salt: 'salt', trustedProxies: createBlockList([]) },
    log,
    metrics: createHttpMetrics(new Registry()),
    ending: new AbortController().signal,
  });
  assert.equal((await send(app, '/api/reconciliation')).status, 503);
  assert.doesNotMatch(await registry.metrics(), /^moorage_reconciliation/m);
});
