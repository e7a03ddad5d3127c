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
  lab = await startLab({ ownPostgres: true });
  // Metrics of the API wait three seconds for the database, and a scrape waits no longer than its interval.
  watching = await watch(lab, { 'moorage-api': 4 });
});
afterAll(async () => {
  await watching.stop();
  await lab.stop();
});

/** Ends when another operator leads: alerts do not wait here. */
async function restartOperator(): Promise<void> {
  const before = Date.now() / 1_000;
  await lab.restartOperator();
  const leader = `moorage_leader == 1 and on (instance) process_start_time_seconds >= ${Math.floor(before)}`;
  await waitFor('a leader', async () => (await watching.prometheus.query(leader)).length > 0);
}

interface Outage {
  readonly component: string;
  readonly alert: string;
  readonly summary: string;
  readonly stop: () => Promise<void>;
  readonly start?: () => Promise<void>;
}

const outages: readonly Outage[] = [
  {
    component: 'activators',
    alert: 'MoorageActivatorsAbsent',
    summary: 'No activator can be scraped',
    stop: () => lab.gatewaySide.stopActivator(),
    start: () => lab.gatewaySide.startActivator(),
  },
  {
    component: 'registry proxy',
    alert: 'MoorageRegistryProxyAbsent',
    summary: 'No registry proxy can be scraped',
    stop: () => lab.registryProxy.stop(),
    start: () => lab.registryProxy.start(),
  },
  {
    component: 'workers',
    alert: 'MoorageWorkersAbsent',
    summary: 'No pod of the workers can be scraped',
    stop: () => lab.workers.stop(),
    start: () => lab.workers.start(),
  },
  {
    component: 'gateway',
    alert: 'MoorageGatewayUnreachable',
    summary: 'The gateway takes no TLS connection for apps.localhost',
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
    alert: 'MoorageApiAbsent',
    summary: 'No replica of the API can be scraped',
    stop: () => lab.api.stop(),
    start: () => lab.api.start(),
  },
  {
    component: 'operator',
    alert: 'MoorageOperatorWithoutLeader',
    summary: 'No replica of the operator leads',
    stop: () => lab.operator.kill(),
    async start() {
      await lab.world.removeLease();
      await restartOperator();
    },
  },
  // Its data goes with it, so it is the last.
  {
    component: 'PostgreSQL',
    alert: 'MoorageDatabaseUnreachable',
    summary: 'A replica of the API does not reach the database',
    stop: () => lab.postgres.stop(),
  },
];

/** Waits until exactly these alerts fire. A scrape that times out on a busy machine fires one more for a moment. */
async function firesOnly(...alerts: readonly string[]): Promise<void> {
  let firing: readonly string[] = [];
  await waitFor('no other alert', async () => (firing = await watching.firing()).join() === alerts.join()).catch(() => {
    assert.deepEqual(firing, alerts);
  });
}

for (const { component, alert, summary, stop, start } of outages) {
  test(`without ${component}, only ${alert} fires`, async () => {
    await firesOnly();
    await stop();
    try {
      assert.equal(await watching.summaryOf(alert), summary);
      for (let call = 0; call < 15; call += 1) {
        // Without a database it is refused.
        await ask(lab, 'Hello').catch(() => undefined);
        await sleep(400);
      }
      await firesOnly(alert);
    } finally {
      await start?.();
    }
    if (start !== undefined) await watching.ended(alert);
  });
}
