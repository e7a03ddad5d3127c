// Comparisons are reserved wholly or not at all, and wait for their turn without holding up each other: real API processes on a
// real PostgreSQL, before the demo router, whose answers are delayed and counted.
import assert from 'node:assert/strict';
import { createServer, request as send, type Server } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { z } from 'zod';
import { openLedgerDatabase, type Database } from '../../../api/billing/database/database.ts';
import { toPlatformAccount } from '../../../api/billing/ledger/accounts.ts';
import { Ledger } from '../../../api/billing/ledger/ledger.ts';
import { formatMoney } from '../../../api/billing/ledger/money.ts';
import { reconcile } from '../../../api/billing/ledger/reconciler.ts';
import { readCatalog } from '../../../api/models/catalog.ts';
import { startDemoRouter, type DemoRouter } from '../../../api/models/router/demo-router.ts';
import { endApis, post, startApi, type ApiProcess } from '../../support/models/lab.ts';
import { listen } from '../../support/free-port.ts';
import { sharePostgres, type SharedPostgres } from '../../support/ledger/postgres.ts';

/** Each can cost up to $0.005 with 2,000 tokens. */
const models = ['beta-K3', 'beta-K3-codex', 'epsilon-3.5-flash'];
const five = [...models, 'gamma5.2', 'delta-5.6-luna'];
const question = { prompt: 'Hello', models, max_tokens: 2_000 };

let delayMs = 0;
/** Calls are answered once this has happened. */
let gate: Promise<unknown> = Promise.resolve();
let calls = 0;
let inFlight = 0;
let maximumInFlight = 0;

let router: DemoRouter;
let server: Server;
let routerUrl: string;
let postgres: SharedPostgres;
beforeAll(async () => {
  router = await startDemoRouter(readCatalog());
  server = createServer((request, response) => {
    const isCall = request.method === 'POST';
    const forward = async (): Promise<void> => {
      if (isCall) {
        calls += 1;
        inFlight += 1;
        maximumInFlight = Math.max(maximumInFlight, inFlight);
        response.once('close', () => {
          inFlight -= 1;
        });
        await gate;
        await sleep(delayMs);
      }
      const { method, url, headers } = request;
      const upstream = send(`${router.url}${url ?? ''}`, { method, headers }, (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(response);
      });
      upstream.on('error', () => response.destroy());
      request.pipe(upstream);
    };
    void forward();
  });
  routerUrl = `http://127.0.0.1:${await listen(server)}`;
  postgres = await sharePostgres();
});
afterAll(async () => {
  await endApis();
  server.closeAllConnections();
  server.close();
  await router.close();
  await postgres.stop();
});

interface Scene {
  readonly database: Database;
  readonly ledger: Ledger;
  readonly apis: readonly ApiProcess[];
  end(): Promise<void>;
}

async function scene(name: string, environment: Readonly<Record<string, string>> = {}, replicas = 1): Promise<Scene> {
  const databaseUrl = await postgres.createDatabase(name);
  [delayMs, calls, maximumInFlight] = [0, 0, 0];
  const apis: ApiProcess[] = [];
  for (let replica = 0; replica < replicas; replica += 1)
    apis.push(
      await startApi({
        databaseUrl,
        router: { url: routerUrl, key: 'sk-demo-platform' },
        environment: { MOORAGE_ROUTER_KIND: 'openrouter', ...environment },
      }),
    );
  const database = await openLedgerDatabase(databaseUrl);
  return {
    database,
    ledger: new Ledger(database),
    apis,
    end: async () => {
      await Promise.all(apis.map((api) => api.stop()));
      await database.close();
    },
  };
}

/** What all callers have spent, and what is reserved, in USD, once what was answered is settled. */
async function total(ledger: Ledger): Promise<{ used: string; held: string }> {
  while ((await ledger.counts()).open > 0) await sleep(20);
  const { used, held } = await ledger.budget({ account: toPlatformAccount('openrouter'), limit: null });
  return { used: formatMoney(used), held: formatMoney(held) };
}

const answered = z.looseObject({
  results: z.array(z.looseObject({ answer: z.string(), error: z.string().optional() })),
});

interface Way {
  readonly name: string;
  readonly path: string;
  readonly body: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

const mcp = { accept: 'application/json, text/event-stream', 'mcp-protocol-version': '2025-11-25' };
const rpc = (method: string, params: unknown): unknown => ({ jsonrpc: '2.0', id: 1, method, params });
const ways: readonly Way[] = [
  { name: 'POST /api/compare', path: '/api/compare', body: question },
  { name: 'POST /api/compare, stream', path: '/api/compare', body: { ...question, stream: true } },
  {
    name: 'POST /api/compare with an Idempotency-Key',
    path: '/api/compare',
    body: question,
    headers: { 'idempotency-key': '3f0d2f1e-6c0a-4c7b-9a57-0d5b8a7c9e11' },
  },
  { name: 'POST /t/compare_models', path: '/t/compare_models', body: question },
  {
    name: 'MCP',
    path: '/mcp',
    headers: mcp,
    body: rpc('tools/call', { name: 'compare_models', arguments: question }),
  },
  {
    name: 'A2A',
    path: '/a2a',
    body: rpc('message/send', {
      message: {
        kind: 'message',
        messageId: 'a-message',
        role: 'user',
        parts: [{ kind: 'data', data: { tool: 'compare_models', arguments: question } }],
      },
    }),
  },
];

test('a partly used quota that covers only some of the models: every protocol rejects, and nothing is called or reserved', async () => {
  const one = await scene('partly-used', { MOORAGE_FREE_QUOTA_USD: '0.013' });
  const [url] = one.apis.map((api) => api.url);
  const from = { 'x-forwarded-for': '203.0.113.5' };
  const first = await post(`${url}/api/ask`, { prompt: 'Hello', model: 'beta-K3', max_tokens: 50 }, from);
  assert.equal(first.status, 200, await first.text());
  const before = { calls, ...(await total(one.ledger)) };
  assert.notEqual(before.used, '0');
  for (const { name, path, body, headers } of ways) {
    const response = await post(`${url}${path}`, body, { ...from, ...headers });
    const text = await response.text();
    assert.match(text, /quota-exhausted/, name);
    assert.match(
      text,
      /This call can cost up to \$0\.015\d*\. You have \$0\.01[23]\d* of your \$0\.013 daily quota left/,
      name,
    );
    if (!['MCP', 'A2A'].includes(name)) assert.equal(response.status, 402, name);
    assert.deepEqual({ calls, ...(await total(one.ledger)) }, before, name);
    assert.deepEqual(await one.ledger.counts(), { open: 0, pending: 0, abandoned: 0 }, name);
  }
  // All of it is there for a smaller comparison.
  const smaller = await post(`${url}/api/compare`, { ...question, max_tokens: 1_000 }, from);
  const { results } = answered.parse(await smaller.json());
  assert.deepEqual([smaller.status, results.map(({ error }) => error)], [200, [undefined, undefined, undefined]]);
  assert.deepEqual(await one.ledger.audit(), []);
  await one.end();
});

for (const [covers, quota] of [
  ['one', '0.0155'],
  ['one and a half', '0.0226'],
] as const)
  test(`two parallel comparisons on two replicas with a quota for ${covers}: one succeeds completely, the other is rejected`, async () => {
    const two = await scene(
      `edge-${quota.slice(2)}`,
      { MOORAGE_FREE_QUOTA_USD: quota, MOORAGE_DAILY_CAP_USD: '100' },
      2,
    );
    for (let caller = 1; caller <= 10; caller += 1) {
      const before = calls;
      // The one that is reserved is in progress until the other has been refused.
      const refused = Promise.withResolvers<undefined>();
      gate = refused.promise;
      const outcomes = await Promise.all(
        two.apis.map(async ({ url }) => {
          const response = await post(`${url}/api/compare`, question, { 'x-forwarded-for': `198.51.${caller}.7` });
          const body: unknown = await response.json();
          if (response.status !== 200) {
            refused.resolve(undefined);
            return response.status;
          }
          return answered.parse(body).results.filter(({ error }) => error === undefined).length;
        }),
      );
      assert.deepEqual(outcomes.toSorted(), [3, 402], `caller ${caller}`);
      assert.equal(calls - before, 3);
    }
    assert.equal((await total(two.ledger)).held, '0');
    assert.deepEqual(await two.ledger.audit(), []);
    await two.end();
  });

describe('two replicas', () => {
  let one: Scene;
  beforeAll(async () => {
    const environment = {
      MOORAGE_CALLS_PER_CALLER: '2',
      MOORAGE_CALLS_IN_FLIGHT: '3',
      MOORAGE_FREE_QUOTA_USD: '1',
    };
    one = await scene('more-models', environment, 2);
  });
  afterAll(() => one.end());

  for (const stream of [false, true])
    test(`more models than calls in flight are allowed, from several callers in parallel: all succeed, within the limits (stream: ${String(stream)})`, async () => {
      [delayMs, calls, maximumInFlight] = [100, 0, 0];
      const network = stream ? '198.52' : '198.51';
      // Two at the same time of each of three callers, of whom nobody has called before.
      const texts = await Promise.all(
        [1, 2, 3, 1, 2, 3].map(async (caller, index) => {
          const body = { prompt: 'Hello', models: five, max_tokens: 50, stream };
          const response = await post(`${one.apis[index % 2]?.url ?? ''}/api/compare`, body, {
            'x-forwarded-for': `${network}.${caller}.7`,
          });
          return [response.status, await response.text()] as const;
        }),
      );
      for (const [status, text] of texts) {
        assert.equal(status, 200, text);
        assert.doesNotMatch(text, /"error"/);
        assert.equal(text.match(/"cost_source":"billed"/g)?.length, 5, text);
      }
      assert.equal(calls, 30);
      assert.ok(maximumInFlight <= 3, `${maximumInFlight} in flight`);
      assert.equal((await total(one.ledger)).held, '0');
    });
});

test('kill -9 during a comparison: calls not made yet are released, and calls made are looked up', async () => {
  const one = await scene('killed', { MOORAGE_CALLS_PER_CALLER: '2', MOORAGE_FREE_QUOTA_USD: '0.1' });
  delayMs = 60_000;
  const [api] = one.apis;
  const asking = post(
    `${api?.url ?? ''}/api/compare`,
    { ...question, models: five },
    { 'x-forwarded-for': '203.0.113.5' },
  );
  asking.catch(() => undefined);
  while (inFlight < 2) await sleep(20);
  assert.deepEqual(await one.ledger.counts(), { open: 5, pending: 0, abandoned: 0 });
  await api?.kill();
  await asking.catch(() => undefined);

  const later = new Ledger(one.database, { clock: () => new Date(Date.now() + 600_000) });
  assert.equal(await later.expire(), 5);
  assert.deepEqual(await one.ledger.counts(), { open: 0, pending: 2, abandoned: 0 });
  const ended = await reconcile(later, {
    lookUp: () => Promise.resolve({ outcome: 'not made' }),
    waitMs: 1_000,
    attempts: 3,
    leaseMs: 60_000,
  });
  assert.equal(ended.released, 2);
  assert.deepEqual(await total(one.ledger), { used: '0', held: '0' });
  assert.deepEqual(await one.ledger.audit(), []);
  await one.database.close();
});

test('a caller who disconnects: calls not made yet are released immediately', async () => {
  const one = await scene('left', { MOORAGE_CALLS_PER_CALLER: '2', MOORAGE_FREE_QUOTA_USD: '0.1' });
  delayMs = 60_000;
  const [api] = one.apis;
  const leaving = new AbortController();
  const asking = fetch(`${api?.url ?? ''}/api/compare`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-forwarded-for': '203.0.113.5' },
    body: JSON.stringify({ ...question, models: five }),
    signal: leaving.signal,
  });
  const before = inFlight;
  while (inFlight < before + 2) await sleep(20);
  leaving.abort();
  await asking.catch(() => undefined);
  while ((await one.ledger.counts()).open > 0) await sleep(20);
  // The two that were called are looked up; they may have cost something.
  assert.deepEqual(await one.ledger.counts(), { open: 0, pending: 2, abandoned: 0 });
  assert.equal(calls, 2);
  await one.end();
});

test("neither the free quota nor the limit of calls in flight applies to a comparison with the caller's own key", async () => {
  const one = await scene('own-key', { MOORAGE_CALLS_PER_CALLER: '1', MOORAGE_FREE_QUOTA_USD: '0.000001' });
  delayMs = 500;
  const [api] = one.apis;
  const response = await post(
    `${api?.url ?? ''}/api/compare`,
    { ...question, models: five },
    { authorization: 'Bearer sk-demo-12345678' },
  );
  const { results } = answered.parse(await response.json());
  assert.deepEqual([response.status, results.filter(({ error }) => error === undefined).length], [200, 5]);
  assert.equal(maximumInFlight, 5);
  assert.deepEqual(await total(one.ledger), { used: '0', held: '0' });
  assert.deepEqual(await one.ledger.counts(), { open: 0, pending: 0, abandoned: 0 });
  await one.end();
});
