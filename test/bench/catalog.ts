// Loads 10,000 apps and 1,000,000 uses into a PostgreSQL of its own, with
// 200,000 runs of benchmarks, and measures the catalog: list, filter, detail, rank, benchmarks, pages.
//   npm run bench:catalog -- --apps 10000 --uses 1000000 --runs 200000 --requests 300
// A few apps have much of the use, as it is where apps are popular: the share of the n-th falls with 1/n.
import { Registry } from 'prom-client';
import { z } from 'zod';
import { createAppIndex, appIndexers, type App } from '../../api/apps/hosted-apps.ts';
import type { HostedAppSpec } from '../../crds/hosted-app.ts';
import { type Database, openLedgerDatabase } from '../../api/billing/database/database.ts';
import { selectCalls, selectTraffic } from '../../api/catalog/projects/telemetry.ts';
import { Callers, upsertCallers } from '../../api/catalog/rank/retention.ts';
import { createApi } from '../../api/create-api.ts';
import { readAppSettings } from '../../api/apps/start.ts';
import { readModelSettings } from '../../api/models/config.ts';
import { readToolSettings } from '../../api/tools/config.ts';
import { GuardedFetcher } from '../../api/tools/fetch/fetcher.ts';
import { readCommandLine, parseWholeNumber } from '../../lib/command-line.ts';
import { createStore } from '../../lib/kubernetes/index.ts';
import { createBlockList } from '../../lib/subnets.ts';
import { baseUrl, namespace, sampleApp, silent, site } from '../support/api/sample.ts';
import { send } from '../support/api/send.ts';
import { createLiveStatus } from '../support/discovery/sample.ts';
import { startPostgres } from '../support/ledger/postgres.ts';
import { benchedApp, loadRuns, loadUses, vacuum } from './catalog-data.ts';

const usage = `usage: npm run bench:catalog -- [--apps N] [--uses N] [--runs N] [--requests N]

  --apps N       hosted apps (10000)
  --uses N       uses in the ledger, of the last 60 days (1000000)
  --runs N       runs of benchmarks, of eight apps (200000)
  --requests N   requests of each kind (300)`;

const { apps, uses, runs, requests } = readCommandLine(
  {
    usage,
    options: {
      apps: { type: 'string', default: '10000' },
      uses: { type: 'string', default: '1000000' },
      runs: { type: 'string', default: '200000' },
      requests: { type: 'string', default: '300' },
    },
  },
  ({ values }) => ({
    apps: parseWholeNumber('--apps', values.apps),
    uses: parseWholeNumber('--uses', values.uses),
    runs: parseWholeNumber('--runs', values.runs),
    requests: parseWholeNumber('--requests', values.requests),
  }),
);

function category(index: number): HostedAppSpec['listing']['category'] {
  return (['chat', 'document', 'research', 'writing', 'other'] as const)[index % 5] ?? 'other';
}

function benchApp(index: number): App {
  const slug = `app-${index}`;
  const app = sampleApp(
    slug,
    `https://github.com/owner-${index % 997}/${slug}`,
    index % 4 === 0 ? undefined : createLiveStatus(`https://${slug}.apps.test/`),
  );
  return {
    ...app,
    spec: {
      ...app.spec,
      listing: {
        title: `App ${(index * 7919) % apps}`,
        description: 'Does one thing well.',
        category: category(index),
      },
    },
  };
}

function quantile(sorted: readonly number[], q: number): string {
  return (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? Number.NaN).toFixed(1).padStart(8);
}

async function plan(
  database: Database,
  { text }: { readonly text: string },
  values: readonly unknown[],
): Promise<string> {
  const explained = { name: 'bench-plan', text: `explain ${text}`, row: z.object({ 'QUERY PLAN': z.string() }) };
  // Named statements are planned once; this one has another text each time.
  const rows = await database.query({ ...explained, name: `bench-plan-${text.length}` }, values);
  return rows.map((row) => row['QUERY PLAN']).join('\n');
}

const postgres = await startPostgres();
const databaseUrl = await postgres.createDatabase('catalog');
const database = await openLedgerDatabase(databaseUrl);
let since = performance.now();
const lap = (what: string): void => {
  process.stdout.write(`${what}: ${((performance.now() - since) / 1000).toFixed(1)} s\n`);
  since = performance.now();
};
await loadUses(database, uses, apps);
lap(`${uses} uses loaded`);
await loadRuns(database, runs);
lap(`${runs} runs of benchmarks loaded`);
const callers = new Callers(database);
await callers.update();
await vacuum(database, 'catalog.caller');
lap('callers counted from the ledger');
const observed = await callers.readObservations();
lap(`callers of ${observed.size} apps observed`);

const store = createStore<App>({ indexers: appIndexers, freeze: false });
store.replace(Array.from({ length: apps }, (_, index) => benchApp(index + 1)));
const ending = new AbortController();
const api = createApi({
  baseUrl,
  callers: { salt: 'salt', trustedProxies: createBlockList([]) },
  models: readModelSettings({ DATABASE_URL: databaseUrl }),
  tools: readToolSettings({}),
  appCalls: readAppSettings({}),
  apps: { apps: createAppIndex(store, namespace), site, defaultHost: 'github.com' },
  findModelApp: () => undefined,
  submitting: [],
  fetcher: new GuardedFetcher(),
  registry: new Registry(),
  log: silent,
  ending: ending.signal,
});
await api.models.ready;
lap('API started');

const words = (index: number): string => `app ${(index * 31) % 100}`;
const kinds: readonly (readonly [name: string, path: (index: number) => string])[] = [
  ['list', () => '/api/projects'],
  ['list 200', () => '/api/projects?limit=200&sort=since'],
  ['filter', (index) => `/api/projects?category=chat&state=live&q=${encodeURIComponent(words(index))}`],
  ['detail', (index) => `/api/projects/app-${((index * 7919) % apps) + 1}`],
  ['largest', () => '/api/projects/app-1'],
  ['rank', () => '/api/rank'],
  ['weights', (index) => `/api/rank?weights=retention:${(index % 9) + 1}`],
  ['bench', () => '/api/bench'],
  ['bench app', () => `/api/bench/${benchedApp}`],
  ['page /', () => '/'],
  ['page app', (index) => `/apps/app-${((index * 7919) % apps) + 1}`],
  ['page rank', () => '/rank'],
  ['page bench', () => `/bench/${benchedApp}`],
];
process.stdout.write(`\n${apps} apps, ${uses} uses, ${requests} requests of each, one after the other\n`);
process.stdout.write(
  `${'request'.padEnd(10)} ${'first'.padStart(8)} ${'p50 ms'.padStart(8)} ${'p95 ms'.padStart(8)} ${'max'.padStart(8)}\n`,
);
async function measure(
  name: string,
  path: (index: number) => string,
  before: (index: number) => void = () => undefined,
): Promise<void> {
  const latencies: number[] = [];
  for (let index = 0; index < requests; index += 1) {
    before(index);
    const start = performance.now();
    const isPage = name.startsWith('page');
    const response = await send(api.app, path(index), isPage ? { headers: { accept: 'text/html' } } : {});
    await response.arrayBuffer();
    if (response.status !== 200) throw new Error(`${path(index)} answered with status ${response.status}`);
    latencies.push(performance.now() - start);
  }
  const [first = Number.NaN] = latencies;
  const sorted = latencies.slice(1).toSorted((a, b) => a - b);
  process.stdout.write(
    `${name.padEnd(10)} ${quantile([first], 0)} ${quantile(sorted, 0.5)} ${quantile(sorted, 0.95)} ${quantile(sorted, 1)}\n`,
  );
}
for (const [name, path] of kinds) await measure(name, path);
await measure(
  'changing',
  () => '/api/projects?sort=since',
  (index) => {
    const app = benchApp((index % apps) + 1);
    store.set({ ...app, metadata: { ...app.metadata, resourceVersion: String(index + 2) } });
  },
);

const day = 86_400_000;
const windows = [24, 168, 720];
const plans = [
  ['calls of an app', await plan(database, selectCalls, ['app-1', null, windows])],
  ['traffic of an app', await plan(database, selectTraffic, ['app-1', new Date(), windows])],
  ['calls of a minute', await plan(database, upsertCallers, [new Date(Date.now() - 660_000), new Date()])],
  [
    'calls of a day',
    await plan(database, upsertCallers, [new Date(Date.now() - 30 * day), new Date(Date.now() - 29 * day)]),
  ],
] as const;
for (const [name, text] of plans) {
  process.stdout.write(`\n${name}\n${text}\n`);
  // Of a day to come, nothing is quicker to read than its empty table.
  if (/Seq Scan on usage\S* \S* ?\(cost=\S+ rows=\d{3,} /.test(text)) throw new Error(`${name} reads all uses`);
}
ending.abort();
await api.stop();
await database.close();
await postgres.stop();
