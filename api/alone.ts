// `npm start`: the API alone, for a first look, with an embedded database, without a cluster, on this machine only.
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { readCommandLine, parseWholeNumber } from '../lib/command-line.ts';
import { listenForShutdown, stopOnShutdown } from '../lib/kubernetes/index.ts';
import { readConfig } from '../lib/config.ts';
import { createLog, createRegistry } from '../lib/telemetry.ts';
import { aloneEnvironment } from './config.ts';
import { readAppSettings, createSubmitWithoutCluster } from './apps/index.ts';
import { createApi } from './create-api.ts';
import { createBlockList } from '../lib/subnets.ts';
import {
  type DemoRouter,
  readCatalog,
  readModelSettings,
  type RouterSettings,
  startDemoRouter,
} from './models/index.ts';
import { startServer } from './http/index.ts';
import { readReceiptSettings } from './accounting/index.ts';
import { GuardedFetcher, readFetchConfig, readToolSettings } from './tools/index.ts';

const usage = `usage: npm start -- [--port N] [--demo-router]

  --port N        port on this machine (default: MOORAGE_PORT, else 8080)
  --demo-router   answer prompts without a model router

All other configuration is read from the environment, as in a cluster.`;

const chosen = readCommandLine(
  { usage, options: { port: { type: 'string' }, 'demo-router': { type: 'boolean', default: false } } },
  ({ values }) => ({
    demoRouter: values['demo-router'],
    port: values.port === undefined ? undefined : parseWholeNumber('--port', values.port, { maximum: 65_535 }),
  }),
);
const {
  MOORAGE_PORT: configuredPort,
  MOORAGE_HOST: host,
  MOORAGE_STATE: stateFolder,
  MOORAGE_TRUSTED_PROXIES: proxies,
} = readConfig(aloneEnvironment);
const state = resolve(import.meta.dirname, '..', stateFolder);

const port = chosen.port ?? configuredPort;
const log = createLog('api');
const registry = createRegistry();
const shutdown = listenForShutdown({ log, limitMs: 15_000 });
const ending = new AbortController();
mkdirSync(state, { recursive: true });

const configured = readModelSettings();
const demo: DemoRouter | undefined = chosen.demoRouter
  ? await startDemoRouter(readCatalog(configured.modelsFile))
  : undefined;
const router: RouterSettings | undefined =
  demo === undefined ? configured.router : { kind: 'openrouter', url: demo.url, key: undefined };
const baseUrl = `http://localhost:${port}`;
const { MOORAGE_RECEIPT_KEY: receiptKey = '' } = process.env;
const callerSalt = readOrCreateSecret('caller-salt', () => randomBytes(32).toString('hex'));
const modelSettings = {
  ...configured,
  router,
  databaseUrl: configured.databaseUrl ?? `pglite:${join(state, 'ledger')}`,
};
const api = createApi({
  baseUrl,
  callers: { salt: callerSalt, trustedProxies: createBlockList(proxies) },
  models: modelSettings,
  tools: readToolSettings(),
  appCalls: readAppSettings(),
  receipts: readReceiptSettings({
    ...process.env,
    MOORAGE_RECEIPT_KEY: receiptKey === '' ? readOrCreateSecret('receipt-key.pem', createReceiptKey) : receiptKey,
  }),
  apps: {
    apps: { get: () => undefined, findNameHolder: () => undefined, listAll: () => [], listPreviews: () => [] },
    site: { domain: 'localhost', port },
  },
  findModelApp: () => undefined,
  submitting: createSubmitWithoutCluster(baseUrl),
  fetcher: new GuardedFetcher(readFetchConfig()),
  registry,
  log,
  ending: ending.signal,
});
await api.models.ready;
const server = await startServer({ port, host, listener: api.app, log, baseUrl }).catch(refusePort);
log.info(
  router === undefined
    ? {
        try: `curl ${baseUrl}/api/models`,
        router: 'none: POST /api/ask reports how to connect one, or start with --demo-router',
      }
    : {
        try: `curl ${baseUrl}/api/ask -H 'content-type: application/json' -d '{"prompt": "Hello"}'`,
        router: demo === undefined ? router.url : 'demo: no model is asked',
      },
  'ready',
);

stopOnShutdown(shutdown, log, stop);

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

/** Exits with advice if another program uses the port. */
function refusePort(error: unknown): never {
  if (!(error instanceof Error && 'code' in error && error.code === 'EADDRINUSE')) throw error;
  process.stderr.write(`port ${port} is already in use: choose another one with --port N\n`);
  process.exit(1);
}

/** Keeps a secret across restarts, so that caller hashes stay the same and signatures stay verifiable. */
function readOrCreateSecret(name: string, create: () => string): string {
  const file = join(state, name);
  if (!existsSync(file)) writeFileSync(file, create(), { mode: 0o600 });
  return readFileSync(file, 'utf8');
}

function createReceiptKey(): string {
  return generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
}
