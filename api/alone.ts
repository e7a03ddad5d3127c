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
import { createRegistry } from '../lib/metrics.ts';
import { readAppSettings } from './apps/config.ts';
import { createApi } from './create-api.ts';
import { blockList, subnets } from '../lib/subnets.ts';
import { readCatalog } from './models/catalog.ts';
import { readModelSettings, type RouterSettings } from './models/config.ts';
import { startDemoRouter, type DemoRouter } from './models/router/demo-router.ts';
import { startServer } from './http/server.ts';
import { submitWithoutCluster } from './submit/without-cluster.ts';
import { readToolSettings } from './tools/config.ts';
import { readFetchConfig } from './tools/fetch/config.ts';
import { GuardedFetcher } from './tools/fetch/guarded-fetcher.ts';

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
const api = createApi({
  baseUrl,
  callers: { salt: callerSalt, trustedProxies: blockList(proxies) },
  models: modelSettings,
  tools: readToolSettings(),
  appCalls: readAppSettings(),
  apps: { apps: { get: () => undefined, all: () => [] } },
  findModelApp: () => undefined,
  submitting: submitWithoutCluster(baseUrl),
  fetcher: new GuardedFetcher(readFetchConfig()),
  registry,
  log,
  ending: ending.signal,
});
await api.models.ready;
const server = await startServer({ port, host, fetch: api.app.fetch, log, baseUrl });
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
      api.closeStreams();
    },
  });
  await api.stop();
  await demo?.close();
}

/** Kept, so that a caller is the same one after a restart. */
function salt(file: string): string {
  if (!existsSync(file)) writeFileSync(file, randomBytes(32).toString('hex'), { mode: 0o600 });
  return readFileSync(file, 'utf8');
}
