// Benchmarks really run: two chat apps that call /v1, three models of known ability, price and failure behind a real
// LiteLLM, five tasks, five runs each, in a real PostgreSQL. What is true of the models is what the benchmark says.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, test } from 'vitest';
import { stringify } from 'yaml';
import { z } from 'zod';
import { toAppAccount } from '../../../api/billing/ledger/accounts.ts';
import { formatMoney, parseMoney, sumMoney, type Money } from '../../../api/billing/ledger/money.ts';
import { Measurements } from '../../../api/catalog/bench/measurements.ts';
import { readBenchmark } from '../../../api/catalog/bench/benchmark.ts';
import { createScriptRunner } from '../../../api/catalog/bench/grade.ts';
import { runCampaign, type RunnerEvent } from '../../../api/catalog/bench/run/runner.ts';
import { BenchWriter, readRuns } from '../../../api/catalog/bench/store.ts';
import type { Run } from '../../../api/catalog/bench/statements.ts';
import { type BenchmarkManifest, loadBenchmarks } from '../../../api/catalog/bench/tasks/task.ts';
import type { BenchmarkDetail } from '../../../api/catalog/bench/views.ts';
import { createWorkers } from '../../../api/tools/engine/workers/pool.ts';
import { createAppToken } from '../../../lib/app-tokens.ts';
import {
  type Behaviour,
  type Key,
  createKey,
  ownModelApp,
  passingApp,
  type TestServer,
  upstream,
} from '../../support/bench/lab.ts';
import { patience } from '../../support/tools/call.ts';
import { sharePostgres, type SharedPostgres } from '../../support/ledger/postgres.ts';
import { type LiteLlm, startLiteLlm } from '../../support/models/litellm.ts';
import { appTokenSecret, json, sampleModels, type Sample } from '../../support/models/sample.ts';

const runs = 5;
const models = ['strong', 'weak', 'flaky'];
/** Of 25 questions strong fails 1, weak 16, flaky 1 beside 7 at which its upstream is out. */
const behaviours: Readonly<Record<string, Behaviour>> = {
  strong: (place) => (place === 7 ? 'wrong' : place === 11 ? 'slow' : 'right'),
  weak: (place) => (place % 3 === 0 ? 'right' : 'wrong'),
  flaky: (place) =>
    place % 4 === 0 ? (([429, 503, 500] as const)[place % 3] ?? 429) : place === 3 ? 'wrong' : 'right',
};
const prices: Readonly<Record<string, readonly [string, string]>> = {
  strong: ['0.0000021', '0.0000105'],
  weak: ['0.00000007', '0.00000028'],
  flaky: ['0.0000006', '0.0000025'],
};

const passing = { name: 'chat-ui-4', uid: 'uid-1', enabled: true, dailyBudgetUsd: '50' };
const own = { name: 'own-mind', uid: 'uid-2', enabled: true, dailyBudgetUsd: '50' };
const manifest = loadBenchmarks().find(({ app }) => app === passing.name) ?? assert.fail();
/** The same tasks, by another way of asking. */
const ownManifest: BenchmarkManifest = {
  ...manifest,
  app: own.name,
  attribution: 'app',
  tasks: manifest.tasks.map((task) => ({
    ...task,
    steps: [
      { method: 'POST', path: '/talk', headers: {}, body: { question: '{{prompt}}' }, capture: { answer: '/said/1' } },
    ],
  })),
};

let postgres: SharedPostgres;
let router: LiteLlm;
let sample: Sample;
let keys: Key = new Map();
const users: unknown[] = [];
const servers: TestServer[] = [];
const workers = createWorkers(patience);
const folder = mkdtempSync(join(tmpdir(), 'moorage-bench-'));
const urls: Record<string, string> = {};

beforeAll(async () => {
  postgres = await sharePostgres();
  const server = await upstream(
    behaviours,
    () => keys,
    ({ user }) => users.push(user),
  );
  servers.push(server);
  router = await startLiteLlm(
    models.map((name) => ({
      name,
      inPerToken: prices[name]?.[0] ?? '0',
      outPerToken: prices[name]?.[1] ?? '0',
      apiBase: `${server.url}/v1`,
    })),
  );
  const perMillion = (price = '0'): string => formatMoney((parseMoney(price) * 1_000_000n) as Money);
  const modelsFile = join(folder, 'models.yaml');
  writeFileSync(
    modelsFile,
    stringify({
      models: models.map((id) => ({
        id,
        label: id,
        maker: id,
        quality: 'light',
        tier: 'free',
        in_per_m: perMillion(prices[id]?.[0]),
        out_per_m: perMillion(prices[id]?.[1]),
        upstream: id,
      })),
    }),
  );
  sample = await sampleModels({
    environment: {
      MOORAGE_ROUTER_KIND: 'litellm',
      MOORAGE_ROUTER_URL: router.url,
      MOORAGE_ROUTER_KEY: router.key,
      MOORAGE_MODELS_FILE: modelsFile,
      MOORAGE_DAILY_CAP_USD: '100',
    },
    apps: [passing, own],
    databaseUrl: await postgres.createDatabase('bench'),
  });
  const asking = (app: typeof passing) => (body: object) =>
    sample.requestOfApps(
      '/v1/chat/completions',
      json(body, { authorization: `Bearer ${createAppToken(app, appTokenSecret)}` }),
    );
  const apps = [await passingApp(asking(passing)), await ownModelApp(asking(own), 'weak')];
  servers.push(...apps);
  [urls[passing.name] = '', urls[own.name] = ''] = apps.map(({ url }) => url);
});
afterAll(async () => {
  await Promise.all(servers.map((server) => server.close()));
  await workers.close();
  await sample.stop();
  await router.stop();
  await postgres.stop();
  rmSync(folder, { recursive: true, force: true });
});

const release = { commit: 'c0ffee', image: 'registry.example/app@sha256:1', router: 'litellm' };

async function benchmark(
  of: BenchmarkManifest,
  report: (event: RunnerEvent) => void = () => undefined,
): Promise<BenchmarkDetail> {
  const { end } = await runCampaign({
    writer: new BenchWriter(sample.database),
    choice: { manifest: of, models, runs, seed: 'a seed' },
    url: urls[of.app] ?? assert.fail(),
    release: () => Promise.resolve(release),
    runScript: createScriptRunner(workers),
    report: (event) => {
      if (event.kind === 'begun') keys = createKey(of, event.campaign.seeds, runs);
      report(event);
    },
    signal: new AbortController().signal,
    costsMs: 0,
  });
  assert.equal(end, 'finished');
  const source = {
    database: () => sample.database,
    baseUrl: 'https://moorage.example',
    manifests: [manifest],
    measurements: new Measurements(),
  };
  return (await readBenchmark(source, of.app)) ?? assert.fail('no benchmark');
}

async function runsOf(app: string): Promise<Run[]> {
  const all: Run[] = [];
  for await (const page of readRuns(sample.database, app, 20)) all.push(...page);
  return all;
}

/** The truths about the models, whatever the app. */
function checkTruths({ models: seen, pairs, verdict, verdict_zh, errors }: BenchmarkDetail): void {
  const of = (model: string): BenchmarkDetail['models'][number] =>
    seen.find((one) => one.model === model) ?? assert.fail();
  const counts = (model: string): unknown => {
    const { quality, delivered } = of(model);
    return [quality.passed, quality.n, delivered.passed, delivered.n];
  };
  assert.deepEqual(counts('strong'), [24, 25, 24, 25]);
  assert.deepEqual(counts('weak'), [9, 25, 9, 25]);
  // Its upstream is out at 7 questions: no part of its quality, but not delivered.
  assert.deepEqual(counts('flaky'), [17, 18, 17, 25]);
  assert.deepEqual(of('flaky').errors['outage'], 7);
  assert.equal(errors['outage'], 7);
  const pair = (one: string, other: string): string => {
    const found = pairs.find(({ a, b }) => a === one && b === other) ?? assert.fail(`no pair ${one} ${other}`);
    return found.verdict;
  };
  assert.deepEqual([pair('flaky', 'strong'), pair('flaky', 'weak'), pair('strong', 'weak')], ['tie', 'a', 'a']);
  assert.match(verdict, /^Tie between strong \(96 %\) and flaky \(94 %\): /);
  assert.match(verdict_zh, /^平局：strong/);
  assert.ok(of('strong').latency_ms.p95 >= of('strong').latency_ms.p50);
  assert.ok(
    of('strong').by_task.some(({ latency_ms }) => latency_ms.p95 > 900),
    'the slow answer is in no p95',
  );
  assert.equal(of('strong').by_task.length, 5);
}

const holds = {
  name: 'test-holds',
  text: 'select hold::text as hold, run::text as run from bench.call',
  row: z.object({ hold: z.string(), run: z.string() }),
};

/** Each run cost what LiteLLM has recorded for its calls, to the last digit. */
async function checkCosts(app: string, detail: BenchmarkDetail): Promise<Money> {
  const spent = await router.spent(0);
  const calls = await sample.database.query(holds, []);
  const billed = (run: string): Money =>
    sumMoney(calls.filter((call) => call.run === run).map(({ hold }) => spent.get(hold) ?? (0n as Money)));
  const all = await runsOf(app);
  for (const { id, cost_usd } of all) assert.equal(parseMoney(cost_usd ?? 'none'), billed(id), id);
  const total = (of: readonly Run[]): Money => sumMoney(of.map(({ id }) => billed(id)));
  for (const {
    model,
    cost_per_success_usd: each,
    cost_per_success_at_least_usd: atLeast,
    delivered,
    cost_unknown,
  } of detail.models) {
    const expected = Number(formatMoney(total(all.filter((run) => run.model === model)))) / delivered.passed;
    const stated = cost_unknown === 0 ? each : atLeast;
    assert.ok(stated !== null && Math.abs(stated - expected) < 1e-11, `${model}: ${stated} is not ${expected}`);
  }
  return total(all);
}

test('through an app that forwards requests, the results are correct, and each run costs what the router billed [spec bench.records]', async () => {
  let visits = 0;
  const visit = async (): Promise<void> => {
    visits += 1;
    const body = { model: 'weak', messages: [{ role: 'user', content: 'I only visit' }] };
    const answer = await fetch(`${urls[passing.name]}/api/openai/v1/chat/completions`, json(body));
    assert.equal(z.looseObject({ model: z.string() }).parse(await answer.json()).model, 'weak');
  };
  const visitors: Promise<void>[] = [];
  const detail = await benchmark(manifest, () => {
    if (visits < 5) visitors.push(visit());
  });
  await Promise.all(visitors);
  checkTruths(detail);
  assert.deepEqual(detail.app, { commit: release.commit, image: release.image });
  const total = await checkCosts(passing.name, detail);
  // Visitors paid for themselves: the app's account has both, and no run has theirs.
  const recorded = await router.spent(0);
  assert.equal(await sample.ledger.balance(toAppAccount(passing.name)), sumMoney(recorded.values()));
  assert.ok(total < sumMoney(recorded.values()));
  assert.ok(
    users.every((user) => user === undefined || user === null),
    'a provider could see that it is measured',
  );
});

test('through an app that uses its own model and shows failures as answers, the results are the same', async () => {
  const before = sumMoney((await router.spent(0)).values());
  const detail = await benchmark(ownManifest);
  checkTruths(detail);
  const total = await checkCosts(own.name, detail);
  const after = sumMoney((await router.spent(0)).values());
  assert.equal(total, after - before);
  assert.equal(await sample.ledger.balance(toAppAccount(own.name)), total);
});

test('publishes every run of the plan once, with instance, release and output', async () => {
  for (const app of [passing.name, own.name]) {
    const all = await runsOf(app);
    assert.equal(all.length, 75);
    assert.equal(new Set(all.map(({ model, task, number }) => `${model} ${task} ${number}`)).size, 75);
    assert.ok(all.every(({ state, image, at }) => state === 'finished' && image === release.image && at !== null));
    assert.ok(all.every(({ error, output_hash: hash }) => error === 'outage' || hash !== null));
    // Models are compared on the same instances, half of which are held back.
    assert.equal(new Set(all.map(({ instance }) => instance)).size, 25);
    assert.equal(new Set(all.filter(({ held_back }) => held_back).map(({ instance }) => instance)).size, 10);
  }
});
