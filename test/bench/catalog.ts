// Loads 10,000 apps and 1,000,000 uses into a PostgreSQL of its own, and measures the catalog: list, filter, detail, rank.
//   npm run bench:catalog -- --apps 10000 --uses 1000000 --requests 300
// A few apps have much of the use, as it is where apps are popular: the share of the n-th falls with 1/n.
import { Registry } from 'prom-client';
import { z } from 'zod';
import { appIndex, appIndexers, type App } from '../../api/apps/hosted-apps.ts';
import type { Database, Statement } from '../../api/billing/database/database.ts';
import { openLedgerDatabase } from '../../api/billing/database/open.ts';
import { usedBy } from '../../api/catalog/projects/telemetry.ts';
import { Callers, readCalls } from '../../api/catalog/rank/callers.ts';
import { createApi } from '../../api/create-api.ts';
import { readAppSettings } from '../../api/apps/config.ts';
import { readModelSettings } from '../../api/models/config.ts';
import { readToolSettings } from '../../api/tools/config.ts';
import { GuardedFetcher } from '../../api/tools/fetch/guarded-fetcher.ts';
import { readCommandLine, wholeNumber } from '../../lib/command-line.ts';
import { createStore } from '../../lib/kubernetes/index.ts';
import { blockList } from '../../lib/subnets.ts';
import { baseUrl, namespace, sampleApp, silent, site } from '../support/api/sample.ts';
import { send } from '../support/api/send.ts';
import { liveAt } from '../support/discovery/sample.ts';
import { startPostgres } from '../support/ledger/postgres.ts';

const usage = `usage: npm run bench:catalog -- [--apps N] [--uses N] [--requests N]

  --apps N       hosted apps (10000)
  --uses N       uses in the ledger, of the last 60 days (1000000)
  --requests N   requests of each kind (300)`;

const { apps, uses, requests } = readCommandLine(
  {
    usage,
    options: {
      apps: { type: 'string', default: '10000' },
      uses: { type: 'string', default: '1000000' },
      requests: { type: 'string', default: '300' },
    },
  },
  ({ values }) => ({
    apps: wholeNumber('--apps', values.apps),
    uses: wholeNumber('--uses', values.uses),
    requests: wholeNumber('--requests', values.requests),
  }),
);

const statement = (name: string, text: string): Statement<unknown> => ({
  name: `bench-${name}`,
  text,
  row: z.unknown(),
});
/** Half of the uses are calls of apps by 200,000 callers, half calls of models by apps. */
const load = statement(
  'load',
  `insert into ledger.usage (id, kind, at, caller, app, model, latency_ms, cost, cost_source)
    select gen_random_uuid()::text, kind, clock_timestamp() - random() * interval '60 days',
      case when kind = 'app' then 'caller-' || (random() * 200000)::int end, 'app-' || least(floor(($3::int + 1) ^ random()), $3)::int,
      case when kind = 'v1' then 'm' end, (exp(random() * 7))::int, (random() / 100)::numeric(20,12),
      case when kind = 'app' then 'tariff' else 'billed' end
    from (select case when random() < 0.5 then 'app' else 'v1' end as kind from generate_series($1::int, $2::int)) k`,
);

async function fill(database: Database): Promise<void> {
  const slice = 50_000;
  for (let from = 1; from <= uses; from += slice)
    await database.query(load, [from, Math.min(from + slice - 1, uses), apps]);
  await database.query(statement('vacuum', 'vacuum analyze ledger.usage'), []);
}

function category(index: number): App['spec']['listing']['category'] {
  return (['chat', 'document', 'research', 'writing', 'other'] as const)[index % 5] ?? 'other';
}

function benchApp(index: number): App {
  const slug = `app-${index}`;
  const app = sampleApp(
    slug,
    `https://github.com/owner-${index % 997}/${slug}`,
    index % 4 === 0 ? undefined : liveAt(`https://${slug}.apps.test/`),
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
await fill(database);
lap(`${uses} uses loaded`);
const callers = new Callers(database);
await callers.update();
await database.query(statement('vacuum-callers', 'vacuum analyze catalog.caller'), []);
lap('callers counted from the ledger');
const observed = await callers.observations();
lap(`callers of ${observed.size} apps observed`);

const store = createStore<App>({ indexers: appIndexers, freeze: false });
store.replace(Array.from({ length: apps }, (_, index) => benchApp(index + 1)));
const ending = new AbortController();
const api = createApi({
  baseUrl,
  callers: { salt: 'salt', trustedProxies: blockList([]) },
  models: readModelSettings({ DATABASE_URL: databaseUrl }),
  tools: readToolSettings({}),
  appCalls: readAppSettings({}),
  apps: { apps: appIndex(store, namespace), site, defaultHost: 'github.com' },
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
    const response = await send(api.app, path(index));
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
const plans = [
  ['detail', await plan(database, usedBy, ['app-1', null])],
  ['detail of a small app', await plan(database, usedBy, [`app-${apps}`, null])],
  ['calls of a minute', await plan(database, readCalls, [new Date(Date.now() - 660_000), new Date()])],
  [
    'calls of a day',
    await plan(database, readCalls, [new Date(Date.now() - 30 * day), new Date(Date.now() - 29 * day)]),
  ],
] as const;
for (const [name, text] of plans) {
  process.stdout.write(`\n${name}\n${text}\n`);
  if (/Seq Scan on usage/.test(text)) throw new Error(`${name} reads all uses`);
}
ending.abort();
await api.stop();
await database.close();
await postgres.stop();
