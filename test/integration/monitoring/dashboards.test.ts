// Every query of every dashboard, asked of a real Prometheus that scrapes the real processes while they do something of
// everything: one that returns no series would be an empty panel.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, test } from 'vitest';
import { dashboards } from '../../../charts/monitoring/all.ts';
import type { Panel } from '../../../charts/monitoring/dashboard.ts';
import { buildApps, makeCalls, useApps, useUpQuota } from '../../support/monitoring/activity.ts';
import { startLab, type Lab } from '../../support/monitoring/lab.ts';
import { listMetrics } from '../../support/monitoring/metric-names.ts';
import { startPrometheus, type Prometheus } from '../../support/monitoring/prometheus.ts';
import { waitFor } from '../../support/operator/world.ts';

let lab: Lab;
let prometheus: Prometheus;
let using: Promise<void> | undefined;
const ending = new AbortController();

beforeAll(async () => {
  lab = await startLab({ api: { MOORAGE_FREE_QUOTA_USD: '0.02' } });
  prometheus = await startPrometheus({ targets: lab.targets });
  await makeCalls(lab);
  await buildApps(lab);
  await makeCalls(lab);
  await useUpQuota(lab);
  // A rate needs two samples: a series that is new with a call has none of that call.
  await waitFor('the first sample', async () => (await prometheus.query('moorage_app_calls_total')).length > 0);
  await makeCalls(lab, '198.51.100.7');
  // Until the end: a quantile has no value once nothing has happened for as long as its rate looks back.
  using = useOn();
});
afterAll(async () => {
  ending.abort();
  await using;
  await prometheus.stop();
  await lab.stop();
});

async function useOn(): Promise<void> {
  while (!ending.signal.aborted) {
    await useApps(lab);
    await sleep(1_000);
  }
}

/** Those of a panel that return nothing; legends name labels that are there. */
async function faultsOf({ queries }: Panel): Promise<string[]> {
  const faults = queries.map(async ({ expr, legend }) => {
    const series = await prometheus.query(expr.replaceAll('$__rate_interval', '30s'));
    if (!series.some(({ value }) => Number.isFinite(value))) return [`no series with a value: ${expr}`];
    const labels = [...legend.matchAll(/\{\{([a-z_]+)\}\}/g)].map(([, label = '']) => label);
    return labels
      .filter((label) => series.every(({ metric }) => metric[label] === undefined))
      .map((label) => `no label ${label}: ${expr}`);
  });
  return (await Promise.all(faults)).flat();
}

for (const { title, rows } of dashboards)
  for (const panel of rows.flatMap((row) => row.panels))
    test(`${title}: ${panel.title}`, async () => {
      let faults: readonly string[] = [];
      await waitFor('series', async () => (faults = await faultsOf(panel)).length === 0, 20).catch(() => {
        assert.deepEqual(faults, []);
      });
    });

test('a process exports every metric of a dashboard', async () => {
  const names = new Set(
    dashboards.flatMap(({ rows }) =>
      rows.flatMap(({ panels }) => panels.flatMap(({ queries }) => queries.flatMap(({ expr }) => listMetrics(expr)))),
    ),
  );
  for (const name of names)
    assert.ok((await prometheus.query(`count({__name__="${name}"})`)).length > 0, `${name} is exported by nobody`);
});
