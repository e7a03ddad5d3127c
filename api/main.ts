// Starts the API: configuration, cluster client, cache, endpoints, servers, shutdown. Wiring only.
import {
  createClient,
  createReflector,
  readDefaultConnection,
  listenForShutdown,
  createReflectorLivenessCheck,
  createReflectorSyncCheck,
  getRuntimeMetrics,
  startHealthServer,
  stopOnShutdown,
} from '../lib/kubernetes/index.ts';
import { createLookupClient } from '../lib/git/lookup.ts';
import { createLog, createRegistry } from '../lib/telemetry.ts';
import {
  createAppIndex,
  createControlWriter,
  createForgeTokens,
  createSecretCreator,
  appIndexers,
  createRepositoryCheck,
  createSubmitter,
  hostedApps,
  SlugClaims,
  createLogMetrics,
  createLogOpener,
  readAppSettings,
  readMailSettings,
  readSignInProviders,
  createSubmitEndpoints,
  createSubmitMetrics,
} from './apps/index.ts';
import { readApiConfig } from './config.ts';
import { createApi } from './create-api.ts';
import { readMeteringSettings, readReceiptSettings, readRevenueSettings } from './accounting/index.ts';
import { toModelApp, readModelSettings } from './models/index.ts';
import { startServer } from './http/index.ts';
import { GuardedFetcher, readFetchConfig, readToolSettings } from './tools/index.ts';

const config = readApiConfig();
const models = readModelSettings();
const log = createLog('api');
const registry = createRegistry();
const shutdown = listenForShutdown({ log, limitMs: (config.drainSeconds + 15) * 1000 });
const ending = new AbortController();

const connection = await readDefaultConnection();
const client = createClient(connection, { userAgent: 'moorage-api' });
const reflector = createReflector({
  client,
  resource: hostedApps,
  namespace: config.appsNamespace,
  indexers: appIndexers,
  log,
  metrics: getRuntimeMetrics(registry),
});
const apps = createAppIndex(reflector.store, config.appsNamespace);
const reflecting = reflector.run(ending.signal);

const metering = readMeteringSettings();
const mail = readMailSettings();
const lookUp =
  config.operatorUrl === undefined || metering.token === undefined
    ? undefined
    : createLookupClient({ operatorUrl: config.operatorUrl, token: metering.token });
const checkRepository = lookUp === undefined ? undefined : createRepositoryCheck({ lookUp });
const submit = createSubmitter({
  client,
  apps,
  namespace: config.appsNamespace,
  pollMs: config.pollSeconds * 1000,
  modelsUsd: config.submittedModelsUsd,
  checkRepository,
  claims: new SlugClaims(() => api.models.ledger.get().database),
  limits: { perCallerAndDay: config.submissionsPerDay, apps: config.maxApps, perNetwork: config.appsPerNetwork },
});
const submitting = createSubmitEndpoints({
  apps,
  submit,
  hosts: config.hosts,
  baseUrl: config.baseUrl,
  site: config.site,
  ownershipSecret: models.appTokenSecret,
  logStreams: config.logStreams,
  openLog: createLogOpener(connection, config.buildsNamespace),
  identifyAuthor: (slug, context, what) => api.identifyAuthor(slug, context, what),
  lookUp,
  findOperationsFault: (slug) => api.apps.findOperations(slug)?.fault,
  metrics: createSubmitMetrics(registry),
});
// Also where nothing is collected, so that a dashboard shows that.
const logMetrics = createLogMetrics(registry);
const api = createApi({
  baseUrl: config.baseUrl,
  callers: { salt: config.callerSalt, trustedProxies: config.trustedProxies },
  models,
  tools: readToolSettings(),
  appCalls: readAppSettings(),
  metering,
  receipts: readReceiptSettings(),
  revenue: readRevenueSettings(),
  apps: { apps, site: config.site, defaultHost: config.hosts.allowed[0], systemNamespace: config.systemNamespace },
  findModelApp: (name) => toModelApp(apps.get(name)),
  submitting,
  signInProviders: readSignInProviders(),
  ...(lookUp === undefined
    ? {}
    : {
        author: {
          lookUpKeys: (repository) => lookUp(repository, { keys: true }),
          writeControl: createControlWriter({ client, apps }),
          createSecret: createSecretCreator(client),
          readApp: (name) => client.get(hostedApps, { name, namespace: config.appsNamespace }),
          maximumReplicas: config.authorReplicas,
          offersDomains: config.offersDomains,
          forgeTokens: createForgeTokens(client, config.systemNamespace),
          mail,
          logs: {
            client,
            openLog: createLogOpener(connection, config.appsNamespace),
            namespace: config.appsNamespace,
            key: models.appTokenSecret,
            streams: config.logStreams,
            metrics: logMetrics,
          },
        },
      }),
  fetcher: new GuardedFetcher(readFetchConfig()),
  registry,
  log,
  ending: ending.signal,
});

const state = { draining: false };
const health = await startHealthServer({
  port: config.internalPort,
  registry,
  routes: api.metering.routes,
  liveness: [createReflectorLivenessCheck(reflector)],
  readiness: [
    createReflectorSyncCheck(reflector),
    { name: 'draining', check: () => (state.draining ? 'the process is shutting down' : undefined) },
  ],
});
// Until the cache is filled, every app would be unknown.
await reflector.store.waitUntilSynced(shutdown.signal);
api.start();
const server = await startServer({ port: config.port, listener: api.app, log, baseUrl: config.baseUrl });
const appServer = await startServer({ port: config.appsPort, listener: api.appsOnly, log, baseUrl: config.baseUrl });

stopOnShutdown(shutdown, log, stop);

async function stop(): Promise<void> {
  state.draining = true;
  const drain = {
    graceMs: config.drainSeconds * 1000,
    limitMs: 10_000,
    endStreams: () => {
      ending.abort();
      api.closeStreams();
    },
  };
  await Promise.all([server.drain(drain), appServer.drain(drain)]);
  await api.stop();
  await reflecting;
  await health.close();
  client.close();
}
