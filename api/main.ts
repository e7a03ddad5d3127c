// Starts the API: settings, cluster client, cache, endpoints, servers, shutdown. Wiring only.
import { Counter, Gauge } from 'prom-client';
import {
  createClient,
  createReflector,
  defaultConnection,
  listenForShutdown,
  reflectorAlive,
  reflectorSynced,
  runtimeMetrics,
  startHealthServer,
} from '../lib/kubernetes/index.ts';
import { createLog } from '../lib/log.ts';
import { createRegistry, httpMetrics } from '../lib/metrics.ts';
import { createApp } from './http/application.ts';
import { readAppSettings } from './apps/config.ts';
import { directory } from './apps/directory.ts';
import { startApps } from './apps/start.ts';
import { readApiConfig } from './config.ts';
import { discoveryEndpoints } from './discovery/endpoints.ts';
import { readModelSettings } from './models/config.ts';
import { startModels } from './models/start.ts';
import { modelAppOf } from './models/v1/apps.ts';
import { startServer } from './http/server.ts';
import { submitEndpoints } from './submit/endpoints.ts';
import { appIndex, appIndexers, hostedApps } from './apps/hosted-apps.ts';
import { liveApps } from './apps/live-apps.ts';
import { podLogs } from './submit/log/pod-log.ts';
import { createSubmitter } from './submit/submit-app.ts';
import { readToolSettings } from './tools/config.ts';
import { readFetchConfig } from './tools/fetch/config.ts';
import { GuardedFetcher } from './tools/fetch/guarded-fetcher.ts';
import type { HostedAppSummary } from './tools/engine/tool-dependencies.ts';
import { payersOf } from './models/callers/payers.ts';
import { startTools } from './tools/start.ts';
import { createWorkers } from './tools/engine/workers/pool.ts';

const config = readApiConfig();
const modelSettings = readModelSettings();
const log = createLog('api');
const registry = createRegistry();
const registers = [registry];
const shutdown = listenForShutdown({ log, limitMs: (config.drainSeconds + 15) * 1000 });
const ending = new AbortController();

const connection = await defaultConnection();
const client = createClient(connection, { userAgent: 'moorage-api' });
const reflector = createReflector({
  client,
  resource: hostedApps,
  namespace: config.appsNamespace,
  indexers: appIndexers,
  log,
  metrics: runtimeMetrics(registry),
});
const apps = appIndex(reflector.store, config.appsNamespace);
const reflecting = reflector.run(ending.signal);

const submit = createSubmitter({
  client,
  apps,
  namespace: config.appsNamespace,
  pollMs: config.pollSeconds * 1000,
  limits: { perCallerAndDay: config.submissionsPerDay, apps: config.maxApps },
});
const submitting = submitEndpoints({
  apps,
  submit,
  hosts: config.hosts,
  baseUrl: config.baseUrl,
  logStreams: config.logStreams,
  openLog: podLogs(connection, config.buildsNamespace),
  metrics: {
    submissions: new Counter({
      name: 'moorage_submissions_total',
      help: 'Submissions by result.',
      labelNames: ['result'],
      registers,
    }),
    streams: new Gauge({ name: 'moorage_log_streams', help: 'Build logs being followed.', registers }),
  },
});
const models = startModels({
  settings: modelSettings,
  callerSalt: config.callerSalt,
  baseUrl: config.baseUrl,
  registry,
  log,
  findApp: (name) => modelAppOf(apps.get(name)),
});
const live = (): HostedAppSummary[] => liveApps(apps.all());
const workers = createWorkers();
const toolSettings = readToolSettings();
const calling = startApps({
  directory: directory({ apps, baseUrl: config.baseUrl }),
  settings: readAppSettings(),
  places: toolSettings,
  payerFor: payersOf(modelSettings, models.services),
  models,
  workers,
  baseUrl: config.baseUrl,
  registry,
  log,
});
const tools = startTools({
  settings: toolSettings,
  modelSettings,
  models,
  baseUrl: config.baseUrl,
  registry,
  log,
  workers,
  fetcher: new GuardedFetcher(readFetchConfig()),
  apps: live,
  more: calling.more,
  operations: calling.operations,
});
const endpoints = [...models.endpoints, ...tools.endpoints, ...calling.endpoints, ...submitting];
const serving = {
  baseUrl: config.baseUrl,
  callers: { salt: config.callerSalt, trustedProxies: config.trustedProxies },
  log,
  metrics: httpMetrics(registry),
  ending: ending.signal,
};
const app = createApp({
  ...serving,
  endpoints: [...endpoints, ...discoveryEndpoints(endpoints, config.baseUrl, tools.offered)],
  protocols: [tools.mcp, calling.byPath],
});
// Apps reach this port without the gateway, so nothing that trusts what the gateway says of a caller answers there.
const forApps = createApp({ ...serving, endpoints: endpoints.filter(({ path }) => path.startsWith('/v1/')) });

const state = { draining: false };
const health = await startHealthServer({
  port: config.internalPort,
  registry,
  liveness: [reflectorAlive(reflector)],
  readiness: [
    reflectorSynced(reflector),
    { name: 'draining', check: () => (state.draining ? 'the process is about to end' : undefined) },
  ],
});
// Before the cache is filled, every app would be unknown.
await reflector.store.whenSynced(shutdown.signal);
calling.start();
const server = await startServer({ port: config.port, listener: app, log, baseUrl: config.baseUrl });
const appServer = await startServer({ port: config.appsPort, listener: forApps, log, baseUrl: config.baseUrl });

shutdown.signal.addEventListener('abort', () => {
  void stop()
    .catch((error: unknown) => {
      log.error({ err: error }, 'stopping failed');
    })
    .finally(() => {
      shutdown.finish();
    });
});

async function stop(): Promise<void> {
  state.draining = true;
  const drain = {
    graceMs: config.drainSeconds * 1000,
    limitMs: 10_000,
    endStreams: () => {
      ending.abort();
      void tools.mcp.close();
    },
  };
  await Promise.all([server.drain(drain), appServer.drain(drain)]);
  await tools.stop();
  await calling.stop();
  await workers.close();
  await models.stop();
  await reflecting;
  await health.close();
  client.close();
}
