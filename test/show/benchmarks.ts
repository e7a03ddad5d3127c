// `npm run show:benchmarks -- chat-ui-4 research-agent`: benchmarks models through apps that are live on the local cluster,
// by the command that operators have. The models are made up, behind a real LiteLLM on this machine: what each can is
// known, so that what is published can be held against it, and every cost against LiteLLM's own record.
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { execa } from 'execa';
import { Client } from 'pg';
import { z } from 'zod';
import { formatMoney, type Money, parseMoney, sumMoney } from '../../api/billing/ledger/money.ts';
import { type BenchmarkManifest, loadBenchmarks } from '../../api/catalog/bench/tasks/task.ts';
import { readCatalog } from '../../api/models/catalog.ts';
import { readCommandLine, UsageError } from '../../lib/command-line.ts';
import { type Behaviour, type Key, createKey, upstream } from '../support/bench/lab.ts';
import { useRouter } from '../support/bench/cluster-router.ts';
import { baseUrl, get, runKubectl, systemNamespace } from '../support/cluster.ts';
import { findFreePort } from '../support/free-port.ts';
import { startLiteLlm } from '../support/models/litellm.ts';

const usage = `usage: npm run show:benchmarks -- SLUG [SLUG ...]

  SLUG   an app that is live on the local cluster, and has a folder in manifests/bench`;
const apps = readCommandLine({ usage, options: {}, positionals: 8 }, ({ positionals }) =>
  positionals.map((slug) => {
    const manifest = loadBenchmarks().find(({ app }) => app === slug);
    if (manifest === undefined) throw new UsageError(`manifests/bench has no ${slug}`);
    return manifest;
  }),
);

const seedsRow = z.object({ seed: z.string(), held_back_seed: z.string() });
const published = z.looseObject({
  verdict: z.string(),
  verdict_zh: z.string(),
  models: z.array(
    z.looseObject({
      model: z.string(),
      quality: z.looseObject({ passed: z.int(), n: z.int() }),
      delivered: z.looseObject({ passed: z.int(), n: z.int() }),
      cost_per_success_usd: z.number().nullable(),
      latency_ms: z.looseObject({ p50: z.number(), p95: z.number() }),
    }),
  ),
});
const billRow = z.object({ holds: z.array(z.uuid()), cost: z.string() });

const runs = 5;
/** Shorter than the way of the first question to its model. */
const lookMs = 10;
/** Of 25 questions the strong one fails 1, the weak one 16, the flaky one 1 beside 7 at which its upstream is out. */
const behaviours: Readonly<Record<string, Behaviour>> = {
  'beta-K3': (place) => (place === 7 ? 'wrong' : place === 11 ? 'slow' : 'right'),
  'alpha-v4-flash': (place) => (place % 3 === 0 ? 'right' : 'wrong'),
  'gamma5.2': (place) =>
    place % 4 === 0 ? (([429, 503, 500] as const)[place % 3] ?? 429) : place === 3 ? 'wrong' : 'right',
};
const models = Object.keys(behaviours);
const print = (line: string): void => void process.stdout.write(`${line}\n`);

const { models: catalog } = readCatalog('api/models/models.yaml');
let key: Key = new Map();
/** What the LiteLLM of this run calls a model, as it names it to the model's server. */
const namesOf = Object.fromEntries(
  catalog.flatMap(({ id, upstream: name }) => {
    const behaviour = behaviours[id];
    return behaviour === undefined ? [] : [[name.replaceAll('/', '-'), behaviour]];
  }),
);
const server = await upstream(
  namesOf,
  () => key,
  () => undefined,
);
const litellm = await startLiteLlm(
  catalog.map((model) => ({
    name: model.upstream,
    inPerToken: perToken(model.in_per_m),
    outPerToken: perToken(model.out_per_m),
    apiBase: `${server.url}/v1`,
  })),
);
const forward = await forwardDatabase();
const client = new Client({ connectionString: forward.url });
await client.connect();
const router = await useRouter(litellm);
try {
  for (const manifest of apps) await benchmark(manifest);
} finally {
  await router.remove();
  await client.end();
  await forward.close();
  await litellm.stop();
  await server.close();
}

function perToken(perMillion: Money): string {
  return formatMoney((perMillion / 1_000_000n) as Money);
}

/** @returns the URL of the cluster's database on this machine */
async function forwardDatabase(): Promise<{ url: string; close: () => Promise<void> }> {
  const secret = await runKubectl(
    '-n',
    systemNamespace,
    'get',
    'secret',
    'moorage-database',
    '-o',
    'jsonpath={.data.url}',
  );
  const port = await findFreePort();
  const child = execa(
    '.moorage/kubectl',
    ['-n', systemNamespace, 'port-forward', 'svc/moorage-postgres', `${port}:5432`],
    {
      env: { KUBECONFIG: '.moorage/kubeconfig' },
      reject: false,
    },
  );
  await once(child.stdout, 'data');
  const url = new URL(Buffer.from(secret, 'base64').toString('utf8'));
  // The certificate is for its name in the cluster.
  [url.hostname, url.port, url.search] = ['127.0.0.1', String(port), ''];
  return {
    url: url.href,
    async close() {
      child.kill();
      await child;
    },
  };
}

async function benchmark(manifest: BenchmarkManifest): Promise<void> {
  print(`\n${manifest.app}`);
  const command = execa(
    'npm',
    [
      ...['run', '--silent', 'bench:models', '--', '--app', manifest.app, '--models', models.join(',')],
      // Names of the local domain need no resolver this way.
      ...['--runs', String(runs), '--gateway', `https://127.0.0.1:${baseUrl.port === '' ? '443' : baseUrl.port}`],
    ],
    {
      env: {
        DATABASE_URL: forward.url,
        KUBECONFIG: '.moorage/kubeconfig',
        MOORAGE_ROUTER_KIND: 'litellm',
        MOORAGE_ROUTER_URL: litellm.url,
      },
      stdout: 'inherit',
      stderr: 'inherit',
    },
  );
  const ended = new AbortController();
  await Promise.all([
    command.finally(() => {
      ended.abort();
    }),
    learnQuestions(manifest, ended.signal),
  ]).finally(() => command.kill());
  await show(manifest.app);
}

/** The models answer by a key of the questions, which are made of seeds that only the database has. */
async function learnQuestions(manifest: BenchmarkManifest, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const { rows } = await client.query(
      'select seed, held_back_seed from bench.campaign where app = $1 and finished_at is null order by registered_at desc limit 1',
      [manifest.app],
    );
    const [row] = z.array(seedsRow).parse(rows);
    if (row !== undefined) key = createKey(manifest, { seed: row.seed, heldBack: row.held_back_seed }, runs);
    await sleep(lookMs);
  }
}

async function show(app: string): Promise<void> {
  const { status, body } = await get(new URL(`/api/bench/${app}`, baseUrl));
  if (status !== 200) throw new Error(body);
  const { verdict, verdict_zh, models: measured } = published.parse(JSON.parse(body));
  for (const { model, quality, delivered, cost_per_success_usd: each, latency_ms: latency } of measured)
    print(
      `  ${model.padEnd(16)} quality ${quality.passed}/${quality.n}, delivered ${delivered.passed}/${delivered.n}, ${each ?? '?'} USD per success, p50 ${Math.round(latency.p50)} and p95 ${Math.round(latency.p95)} ms`,
    );
  print(`  ${verdict}\n  ${verdict_zh}`);
  await compareCosts(app);
}

/** The costs of the runs as they are published, and what LiteLLM has recorded for the same calls. */
async function compareCosts(app: string): Promise<void> {
  const { rows } = await client.query(
    `select array(select hold::text from bench.call join bench.run on run.id = call.run where app = $1) as holds,
            (select coalesce(sum(cost), 0)::text from bench.run where app = $1) as cost`,
    [app],
  );
  const [{ holds, cost }] = z.tuple([billRow]).parse(rows);
  const spent = await litellm.spent(0);
  const billed = formatMoney(sumMoney(holds.map((hold) => spent.get(hold) ?? (0n as Money))));
  const published = formatMoney(parseMoney(cost));
  print(`  ${holds.length} model calls: published ${published} USD, LiteLLM's record ${billed} USD`);
  if (published !== billed) throw new Error(`${app}: the costs differ`);
}
