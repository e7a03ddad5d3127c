// Each component is stopped in turn, as if it were scaled to zero, while callers go on: one alert fires, and only one.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, test } from 'vitest';
import { ask } from '../../support/monitoring/activity.ts';
import { startLab, type Lab } from '../../support/monitoring/lab.ts';
import { watch, type Watch } from '../../support/monitoring/watch.ts';
import { waitFor } from '../../support/operator/world.ts';

let lab: Lab;
let watching: Watch;

beforeAll(async () => {
  lab = await startLab();
  // Metrics of the API wait three seconds for the database, and a scrape waits no longer than its interval.
  watching = await watch(lab, 4);
});
afterAll(async () => {
  await watching.stop();
  await lab.stop();
});

/** Ends when another operator leads: alerts do not wait here. */
async function restartOperator(): Promise<void> {
  await lab.restartOperator();
  await waitFor(
    'no leader',
    async () => (await watching.prometheus.query('moorage_leader == 1')).length === 0,
    20,
  ).catch(() => undefined);
  await waitFor('a leader', async () => (await watching.prometheus.query('moorage_leader == 1')).length > 0);
}

interface Outage {
  readonly component: string;
  readonly alert: string;
  readonly fires: () => Promise<string>;
  readonly stop: () => Promise<void>;
  readonly start?: () => Promise<void>;
}

const outages: readonly Outage[] = [
  {
    component: 'activators',
    fires: () => watching.summaryOf('MoorageActivatorsAbsent'),
    alert: 'MoorageActivatorsAbsent',
    stop: () => lab.gatewaySide.stopActivator(),
    start: () => lab.gatewaySide.startActivator(),
  },
  {
    component: 'registry proxy',
    fires: () => watching.summaryOf('MoorageRegistryProxyAbsent'),
    alert: 'MoorageRegistryProxyAbsent',
    stop: () => lab.registryProxy.stop(),
    start: () => lab.registryProxy.start(),
  },
  {
    component: 'workers',
    fires: () => watching.summaryOf('MoorageWorkersAbsent'),
    alert: 'MoorageWorkersAbsent',
    stop: () => lab.workers.stop(),
    start: () => lab.workers.start(),
  },
  {
    component: 'gateway',
    fires: () => watching.summaryOf('MoorageGatewayUnreachable'),
    alert: 'MoorageGatewayUnreachable',
    async stop() {
      await lab.gateway.stop();
      // It looks when it begins to lead, and every five minutes.
      await restartOperator();
    },
    async start() {
      await lab.gateway.start();
      await restartOperator();
    },
  },
  {
    component: 'API',
    fires: () => watching.summaryOf('MoorageApiAbsent'),
    alert: 'MoorageApiAbsent',
    stop: () => lab.api.stop(),
    start: () => lab.api.start(),
  },
  {
    component: 'operator',
    fires: () => watching.summaryOf('MoorageOperatorWithoutLeader'),
    alert: 'MoorageOperatorWithoutLeader',
    stop: () => lab.operator.kill(),
    start: restartOperator,
  },
  // Its data goes with it, so it is the last.
  {
    component: 'PostgreSQL',
    fires: () => watching.summaryOf('MoorageDatabaseUnreachable'),
    alert: 'MoorageDatabaseUnreachable',
    stop: () => lab.postgres.stop(),
  },
];

for (const { component, alert, fires, stop, start } of outages) {
  test(`without ${component}, only ${alert} fires`, async () => {
    let before: string[] = [];
    await waitFor('quiet', async () => (before = await watching.firing()).length === 0, 60).catch(() => undefined);
    assert.deepEqual(before, []);
    await stop();
    try {
      await fires();
      const seen = new Map<string, number>();
      for (let second = 0; second < 15; second += 1) {
        // Without a database it is refused.
        await ask(lab, 'Hello').catch(() => undefined);
        for (const name of await watching.firing()) seen.set(name, (seen.get(name) ?? 0) + 1);
        await sleep(1_000);
      }
      // A scrape that times out on a busy machine is no outage: in earnest an alert waits for minutes.
      const lasting = [...seen].filter(([, times]) => times >= 5).map(([name]) => name);
      assert.deepEqual(lasting, [alert], JSON.stringify([...seen]));
    } finally {
      await start?.();
    }
    if (start !== undefined) await watching.ended(alert);
  });
}
