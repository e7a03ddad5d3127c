// Starts the API alone, for a first look: embedded database, no cluster, this machine only. `--demo-router` answers
// without a model router.
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { z } from 'zod';
import { listenForShutdown } from '../lib/kubernetes/index.ts';
import { count, readConfig } from '../lib/config.ts';
import { createLog } from '../lib/log.ts';
import { createRegistry, httpMetrics } from '../lib/metrics.ts';
import { createApp } from './http/application.ts';
import { readAppSettings } from './apps/config.ts';
import { directory } from './apps/directory.ts';
import { startApps } from './apps/start.ts';
import { blockList, subnets } from './config.ts';
import { discoveryEndpoints } from './discovery/endpoints.ts';
import { readCatalog } from './models/catalog.ts';
import { readModelSettings, type RouterSettings } from './models/config.ts';
import { startDemoRouter, type DemoRouter } from './models/demo-router.ts';
import { startModels } from './models/start.ts';
import { startServer } from './http/server.ts';
import { submitWithoutCluster } from './submit/without-cluster.ts';
import { readToolSettings } from './tools/config.ts';
import { readFetchConfig } from './tools/fetch/config.ts';
import { GuardedFetcher } from './tools/fetch/guarded-fetcher.ts';
import { payersOf } from './models/callers/payers.ts';
import { startTools } from './tools/start.ts';
import { createWorkers } from './tools/engine/workers/pool.ts';

const { values: chosen } = parseArgs({ options: { 'demo-router': { type: 'boolean', default: false } } });
const {
  MOORAGE_PORT: port,
  MOORAGE_HOST: host,
  MOORAGE_STATE: state,
  MOORAGE_TRUSTED_PROXIES: proxies,
} = readConfig(
  z.object({
    MOORAGE_PORT: count.max(65_535).default(8080),
    MOORAGE_HOST: z.string().default('127.0.0.1'),
    MOORAGE_TRUSTED_PROXIES: subnets.default([]),
    MOORAGE_STATE: z.string().default(join(import.meta.dirname, '..', '.moorage', 'alone')),
  }),
);

const log = createLog('api');
const registry = createRegistry();
const shutdown = listenForShutdown({ log, limitMs: 15_000 });
const ending = new AbortController();
mkdirSync(state, { recursive: true });

const read = readModelSettings();
const demo: DemoRouter | undefined = chosen['demo-router']
  ? await startDemoRouter(readCatalog(read.modelsFile))
  : undefined;
const router: RouterSettings | undefined =
  demo === undefined ? read.router : { kind: 'openrouter', url: demo.url, key: undefined };
const baseUrl = `http://localhost:${port}`;
const callerSalt = salt(join(state, 'caller-salt'));
const modelSettings = { ...read, router, databaseUrl: read.databaseUrl ?? `pglite:${join(state, 'ledger')}` };
const models = startModels({
  settings: modelSettings,
  callerSalt,
  baseUrl,
  registry,
  log,
  findApp: () => undefined,
});
await models.ready;
const workers = createWorkers();
const toolSettings = readToolSettings();
const calling = startApps({
  directory: directory({ apps: { get: () => undefined, all: () => [] }, baseUrl }),
  settings: readAppSettings(),
  places: toolSettings,
  payerFor: payersOf(modelSettings, models.services),
  models,
  workers,
  baseUrl,
  registry,
  log,
});
const tools = startTools({
  settings: toolSettings,
  modelSettings,
  models,
  baseUrl,
  registry,
  log,
  workers,
  fetcher: new GuardedFetcher(readFetchConfig()),
  apps: () => [],
  more: calling.more,
  operations: calling.operations,
});
const endpoints = [...models.endpoints, ...tools.endpoints, ...calling.endpoints, ...submitWithoutCluster(baseUrl)];
const app = createApp({
  endpoints: [...endpoints, ...discoveryEndpoints(endpoints, baseUrl, tools.offered)],
  protocols: [tools.mcp, calling.byPath],
  baseUrl,
  callers: { salt: callerSalt, trustedProxies: blockList(proxies) },
  log,
  metrics: httpMetrics(registry),
  ending: ending.signal,
});
const server = await startServer({ port, host, listener: app, log, baseUrl });
log.info(
  router === undefined
    ? { try: `curl ${baseUrl}/api/models`, router: 'none: see what POST /api/ask says, or start with --demo-router' }
    : {
        try: `curl ${baseUrl}/api/ask -H 'content-type: application/json' -d '{"prompt": "Hello"}'`,
        router: demo === undefined ? router.url : 'demo: no model is asked',
      },
  'ready',
);

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
  await server.drain({
    graceMs: 0,
    limitMs: 5_000,
    endStreams: () => {
      ending.abort();
      void tools.mcp.close();
    },
  });
  await tools.stop();
  await calling.stop();
  await workers.close();
  await models.stop();
  await demo?.close();
}

/** Kept, so that a caller is the same one after a restart. */
function salt(file: string): string {
  if (!existsSync(file)) writeFileSync(file, randomBytes(32).toString('hex'), { mode: 0o600 });
  return readFileSync(file, 'utf8');
}
