// Starts the activator, which stands before apps that may rest, holds requests while one wakes, and tracks which are in use.
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { collectDefaultMetrics, Registry } from 'prom-client';
import { annotations } from '../crds/names.ts';
import { readConfig } from '../lib/config.ts';
import {
  createClient,
  createReflector,
  readDefaultConnection,
  readInClusterConnection,
  listenForShutdown,
  createReflectorLivenessCheck,
  createReflectorSyncCheck,
  getRuntimeMetrics,
  startHealthServer,
  stopOnShutdown,
} from '../lib/kubernetes/index.ts';
import { createBlockList } from '../lib/subnets.ts';
import { createLog } from '../lib/telemetry.ts';
import { createSessions } from './access.ts';
import { createActivity, createControlServer } from './activity.ts';
import { environment } from './config.ts';
import {
  appIndexers,
  apps,
  createDirectory,
  podIndexers,
  pods,
  podSelector,
  toAppView,
  toPodView,
} from './directory.ts';
import { createActivatorMetrics, createGate } from './gate.ts';
import { createProxy } from './proxy.ts';

const config = readConfig(environment);
const log = createLog('activator');
const registry = new Registry();
collectDefaultMetrics({ register: registry });
const drainMs = config.MOORAGE_ACTIVATOR_DRAIN_SECONDS * 1000;
const shutdown = listenForShutdown({ log, limitMs: drainMs + 15_000 });
const ending = new AbortController();

const { MOORAGE_SERVICE_ACCOUNT: account, MOORAGE_APPS_NAMESPACE: namespace } = config;
const connection = account === undefined ? await readDefaultConnection() : await readInClusterConnection(account);
const client = createClient(connection, { userAgent: 'moorage-activator' });
const shared = { client, namespace, log, metrics: getRuntimeMetrics(registry) };
const reflectors = {
  apps: createReflector({ ...shared, resource: apps, indexers: appIndexers, transform: toAppView }),
  pods: createReflector({
    ...shared,
    resource: pods,
    labelSelector: podSelector,
    indexers: podIndexers,
    transform: toPodView,
  }),
};
const reflecting = Object.values(reflectors).map((reflector) => reflector.run(ending.signal));

const activity = createActivity();
const directory = createDirectory({
  apps: reflectors.apps.store,
  pods: reflectors.pods.store,
  namespace,
  domain: config.MOORAGE_APPS_DOMAIN,
});
const gate = createGate({
  directory,
  activity,
  limits: {
    perApp: config.MOORAGE_ACTIVATOR_HELD_PER_APP,
    total: config.MOORAGE_ACTIVATOR_HELD,
    perClient: config.MOORAGE_ACTIVATOR_HELD_PER_CLIENT,
  },
  async ask(name, number) {
    const body = { metadata: { annotations: { [annotations.wake]: String(number) } } };
    const type = 'application/merge-patch+json';
    await client.patch(apps, { name, namespace }, body, { type, fieldManager: 'moorage-activator' });
  },
  onMeasured(app, depth, ms) {
    metrics.wakes.observe({ depth }, ms / 1000);
    log.info({ app, depth, ms: Math.round(ms) }, 'app woken');
  },
});
const metrics = createActivatorMetrics(registry, () => ({ held: gate.heldRequests, open: activity.inFlight }));
directory.subscribe((app) => {
  gate.checkNow(app);
});

const state = { draining: false };
const reflectorList = Object.values(reflectors);
const health = await startHealthServer({
  port: config.MOORAGE_INTERNAL_PORT,
  registry,
  liveness: reflectorList.map((reflector) => createReflectorLivenessCheck(reflector)),
  readiness: [
    ...reflectorList.map(createReflectorSyncCheck),
    { name: 'draining', check: () => (state.draining ? 'the process is shutting down' : undefined) },
  ],
});
await Promise.all(reflectorList.map(({ store }) => store.waitUntilSynced(shutdown.signal)));
const proxy = createProxy({
  ...{ directory, activity, gate, log },
  baseUrl: config.MOORAGE_BASE_URL,
  trustedProxies: createBlockList(config.MOORAGE_TRUSTED_PROXIES),
  probeToken: config.MOORAGE_PROBE_TOKEN,
  // Those who have the token may look at every app anyway. Without one, sessions end with this process.
  sessions: createSessions(config.MOORAGE_PROBE_TOKEN ?? randomBytes(32).toString('base64url')),
});
const control = createControlServer(activity);
proxy.listen(config.MOORAGE_ACTIVATOR_PORT, config.MOORAGE_ACTIVATOR_HOST);
control.listen(config.MOORAGE_ACTIVATOR_CONTROL_PORT, config.MOORAGE_ACTIVATOR_HOST);
await Promise.all([once(proxy, 'listening'), once(control, 'listening')]);
log.info({ port: config.MOORAGE_ACTIVATOR_PORT }, 'activator listening');

stopOnShutdown(shutdown, log, stop);

/** Requests in progress may finish; the operator still sees them until then. */
async function stop(): Promise<void> {
  state.draining = true;
  const closed = once(proxy, 'close');
  proxy.close();
  proxy.closeIdleConnections();
  const timer = setTimeout(() => {
    proxy.closeAllConnections();
  }, drainMs);
  await closed;
  clearTimeout(timer);
  control.close();
  control.closeAllConnections();
  ending.abort();
  await Promise.all(reflecting);
  await health.close();
  client.close();
}
