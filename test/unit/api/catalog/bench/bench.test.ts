// The endpoints of benchmarks over an embedded database, and a runner that is killed at every line it can be.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { openLedgerDatabase, type Database } from '../../../../../api/billing/database/database.ts';
import { readBenchmarks, readEntry } from '../../../../../api/catalog/bench/benchmark.ts';
import { createBenchEndpoints } from '../../../../../api/catalog/bench/endpoints.ts';
import { readFigures } from '../../../../../api/catalog/bench/bench.ts';
import { type CampaignEnd, prepareCampaign, runCampaign } from '../../../../../api/catalog/bench/run/runner.ts';
import { BenchWriter, readRuns } from '../../../../../api/catalog/bench/store.ts';
import type { Run } from '../../../../../api/catalog/bench/statements.ts';
import { Measurements } from '../../../../../api/catalog/bench/measurements.ts';
import { loadBenchmarks } from '../../../../../api/catalog/bench/tasks/task.ts';
import { benchmarkDetail, benchmarkList } from '../../../../../api/catalog/bench/views.ts';
import { createRequestListener } from '../../../../../api/http/application.ts';
import { createHttpMetrics } from '../../../../../lib/telemetry.ts';
import { createBlockList } from '../../../../../lib/subnets.ts';
import { Registry } from 'prom-client';
import { serve, type TestServer } from '../../../../support/bench/lab.ts';
import { baseUrl, silent } from '../../../../support/api/sample.ts';
import { send } from '../../../../support/api/send.ts';
import { migratedDatabase } from '../../../../support/ledger/snapshot.ts';

const manifest = loadBenchmarks().find(({ app }) => app === 'chat-ui-4') ?? assert.fail();
const choice = { manifest, models: ['b', 'a'], runs: 6, seed: 'seed' };

let database: Database;
let app: TestServer;
let request: (path: string, init?: RequestInit) => Promise<Response>;
beforeAll(async () => {
  database = await openLedgerDatabase(migratedDatabase);
  app = await serve((_path, _body, response) => {
    response.end(JSON.stringify({ choices: [{ message: { content: 'no idea' } }] }));
  });
  const source = { database: () => database, baseUrl, manifests: [manifest], measurements: new Measurements() };
  const application = createRequestListener({
    endpoints: createBenchEndpoints(source),
    baseUrl,
    callers: { salt: 'salt', trustedProxies: createBlockList(['127.0.0.0/8']) },
    log: silent,
    metrics: createHttpMetrics(new Registry()),
    ending: new AbortController().signal,
  });
  request = (path, init) => send(application, path, init);
});
afterAll(async () => {
  await app.close();
  await database.close();
});

/** Dies at the n-th call of the database: before it, or after it as a lost connection does. */
class Mortal extends BenchWriter {
  constructor(lives: number, after: boolean) {
    let calls = 0;
    const dying = async <Row>(work: () => Promise<Row>): Promise<Row> => {
      calls += 1;
      if (calls === lives && !after) throw new Error('killed');
      const result = await work();
      if (calls === lives) throw new Error('killed');
      return result;
    };
    const mortal: Pick<Database, 'query' | 'replay'> = {
      query: (statement, values) => dying(() => database.query(statement, values)),
      replay: (statement, values) => dying(() => database.replay(statement, values)),
    };
    super(mortal as Database);
  }
}

async function run(writer: BenchWriter, of = choice): Promise<CampaignEnd> {
  const { end } = await runCampaign({
    writer,
    choice: of,
    url: app.url,
    release: () => Promise.resolve({ commit: 'abc', image: 'image@sha256:1', router: 'litellm' }),
    runScript: () => Promise.resolve(false),
    report: () => undefined,
    signal: new AbortController().signal,
    costsMs: 0,
  });
  return end;
}

async function allRuns(slug: string): Promise<Run[]> {
  const all: Run[] = [];
  for await (const page of readRuns(database, slug, 7)) all.push(...page);
  return all;
}

test('where nothing was registered the index is empty, and a slug is refused with those that are near [spec endpoint.bench]', async () => {
  assert.deepEqual(await (await request('/api/bench')).json(), []);
  assert.equal((await request('/api/bench/chat-ui-4')).status, 404);
});

test('killed at any line and started again, every run of the plan finishes once and what was cut off is marked', async () => {
  for (let lives = 1; lives <= 12; lives += 1)
    for (const after of [false, true])
      await run(new Mortal(lives, after)).catch((error: unknown) => {
        assert.match(String(error), /killed/);
      });
  assert.equal(await run(new BenchWriter(database)), 'finished');
  const all = await allRuns('chat-ui-4');
  // Those that were killed while they registered are no campaigns, or were gone on with.
  const campaigns = Map.groupBy(all, ({ campaign }) => campaign);
  for (const runs of campaigns.values()) {
    const finished = runs.filter(({ state }) => state === 'finished');
    assert.equal(finished.length, 60);
    assert.equal(new Set(finished.map(({ model, task, number }) => `${model} ${task} ${number}`)).size, 60);
    assert.ok(runs.every(({ state }) => state === 'finished' || state === 'interrupted'));
  }
  assert.equal(campaigns.size, 1);
  assert.ok(all.some(({ state }) => state === 'interrupted'));
});

test('a process whose campaign another one took over writes nothing more', async () => {
  const slow = { ...choice, seed: 'taken' };
  const [first, second] = [new BenchWriter(database), new BenchWriter(database)];
  const { id } = await prepareCampaign(slow, first);
  const started = await first.startNext(id, { commit: null, image: null, router: null }, 1_000);
  assert.ok(typeof started === 'object');
  assert.equal((await prepareCampaign(slow, second)).interrupted, 1);
  const result = { passed: true, score: 1, latencyMs: 1, error: undefined, detail: undefined, outputHash: undefined };
  assert.equal(await first.finish(started.id, result), false);
  assert.equal(await first.startNext(id, { commit: null, image: null, router: null }, 1_000), 'taken');
  const [row] = (await allRuns('chat-ui-4')).filter((one) => one.id === started.id);
  assert.deepEqual([row?.state, row?.passed], ['interrupted', null]);
});

test('the index and the detail are of their schemas, and count what has not finished [spec endpoint.bench]', async () => {
  const [entry] = benchmarkList.parse(await (await request('/api/bench')).json());
  assert.ok(entry !== undefined && entry.slug === 'chat-ui-4' && entry.models === 2 && entry.tasks === 5);
  const answer = await request('/api/bench/chat-ui-4');
  assert.equal(answer.status, 200);
  const detail = benchmarkDetail.parse(await answer.json());
  assert.equal(detail.verdict, entry.verdict);
  assert.equal(detail.unfinished.registered, 60);
  assert.deepEqual(
    detail.models.map(({ model, delivered }) => [model, delivered.passed, delivered.n]),
    [
      ['a', 0, 30],
      ['b', 0, 30],
    ],
  );
  // The app called no model: nothing was billed, and a success costs at least nothing.
  assert.deepEqual(
    detail.models.map((one) => [one.cost_per_success_usd, one.cost_per_success_at_least_usd]),
    [
      [null, 0],
      [null, 0],
    ],
  );
  assert.deepEqual(detail.tasks.map(({ slug }) => slug).sort(), [
    'arithmetic',
    'extract',
    'number-words',
    'reorder',
    'table',
  ]);
  assert.equal(detail.campaigns.length, 2);
  assert.ok(!JSON.stringify(detail).includes('held_back_seed'));
});

test('one entry is that of the index, and the figures of an app are those of its models together', async () => {
  const source = { database: () => database, baseUrl, manifests: [manifest], measurements: new Measurements() };
  const [indexed] = await readBenchmarks(source);
  assert.deepEqual(await readEntry(source, 'chat-ui-4'), indexed);
  assert.equal(await readEntry(source, 'chat-ui-1'), undefined);
  const { models } = benchmarkDetail.parse(await (await request('/api/bench/chat-ui-4')).json());
  const figures = (await readFigures(source)).get('chat-ui-4') ?? assert.fail();
  const sum = (count: (model: (typeof models)[number]) => number): number =>
    models.reduce((total, model) => total + count(model), 0);
  assert.ok(figures.delivered.n > 0);
  assert.equal(
    figures.delivered.n,
    sum(({ delivered }) => delivered.n),
  );
  assert.equal(
    figures.quality.n,
    sum(({ quality }) => quality.n),
  );
  assert.equal(
    figures.quality.passed,
    sum(({ quality }) => quality.passed),
  );
  assert.equal(figures.cost === undefined, sum(({ cost_unknown }) => cost_unknown) > 0);
});

test('a slug without a benchmark names the near ones, and unknown query fields are refused', async () => {
  const answer = await request('/api/bench/chat-ui-44');
  const problem = z.looseObject({ type: z.string(), nearest: z.array(z.string()) }).parse(await answer.json());
  assert.deepEqual([answer.status, problem.nearest], [404, ['chat-ui-4']]);
  assert.match(problem.type, /unknown-benchmark$/);
  assert.equal((await request('/api/bench/nothing/runs.csv')).status, 404);
  assert.equal((await request('/api/bench?all=1')).status, 400);
});

test('the downloads have every run, whatever became of it', async () => {
  const all = await allRuns('chat-ui-4');
  const csv = await request('/api/bench/chat-ui-4/runs.csv');
  assert.match(csv.headers.get('content-type') ?? '', /^text\/csv/);
  assert.match(csv.headers.get('link') ?? '', /creativecommons\.org\/licenses\/by\/4\.0/);
  const [header, ...lines] = (await csv.text()).trimEnd().split('\r\n');
  assert.match(header ?? '', /^id,campaign,app,model,task/);
  assert.equal(lines.length, all.length);
  const jsonLines = (await (await request('/api/bench/chat-ui-4/runs.jsonl')).text()).trimEnd().split('\n');
  const read = jsonLines.map((line) => z.looseObject({ id: z.string(), state: z.string() }).parse(JSON.parse(line)));
  assert.deepEqual(
    read.map(({ id }) => id),
    all.map(({ id }) => id),
  );
  assert.ok(read.some(({ state }) => state === 'registered') && read.some(({ state }) => state === 'interrupted'));
  const head = await request('/api/bench/chat-ui-4/runs.csv', { method: 'HEAD' });
  assert.deepEqual([head.status, await head.text()], [200, '']);
});
