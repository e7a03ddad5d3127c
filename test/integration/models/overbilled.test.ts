// A router that bills far more than its list prices allow for, in front of real API processes on a real PostgreSQL: what an
// attack with many calls at the same time can spend. Only the router is a stand-in.
import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { Registry } from 'prom-client';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { openLedgerDatabase } from '../../../api/billing/database/database.ts';
import { toPlatformAccount } from '../../../api/billing/ledger/accounts.ts';
import { Ledger } from '../../../api/billing/ledger/ledger.ts';
import { formatMoney, toDollarNumber } from '../../../api/billing/ledger/money.ts';
import { createOverrunMetrics } from '../../../api/billing/metrics.ts';
import { readCatalog } from '../../../api/models/catalog.ts';
import { reconcileDay } from '../../../api/accounting/reconciliation/start-reconciliation.ts';
import { parseDay, formatDay } from '../../../api/accounting/reconciliation/comparison.ts';
import { endApis, post, startApi, type ApiProcess } from '../../support/models/lab.ts';
import { listen } from '../../support/free-port.ts';
import { toMigratorUrl, sharePostgres, type SharedPostgres } from '../../support/ledger/postgres.ts';

/** What the router bills for each call, and what it has billed. */
let price = '0.2';
let billed = 0;
let inFlight = 0;
let maximumInFlight = 0;

let server: Server;
let routerUrl: string;
let postgres: SharedPostgres;
beforeAll(async () => {
  server = createServer((request, response) => {
    request.resume().on('end', () => {
      if (request.method !== 'POST') {
        response.writeHead(404).end('{}');
        return;
      }
      inFlight += 1;
      maximumInFlight = Math.max(maximumInFlight, inFlight);
      const cost = price;
      setTimeout(() => {
        inFlight -= 1;
        billed += Number(cost);
        response
          .writeHead(200, { 'content-type': 'application/json' })
          .end(
            `{"id":"gen-1","choices":[{"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":1,"cost":${cost}}}`,
          );
      }, 200);
    });
  });
  routerUrl = `http://127.0.0.1:${await listen(server)}`;
  postgres = await sharePostgres();
});
afterAll(async () => {
  await endApis();
  server.closeAllConnections();
  server.close();
  await postgres.stop();
});

interface Scene {
  readonly databaseUrl: string;
  readonly apis: readonly ApiProcess[];
}

async function scene(
  name: string,
  replicas: number,
  environment: Readonly<Record<string, string>> = {},
): Promise<Scene> {
  const databaseUrl = await postgres.createDatabase(name);
  billed = 0;
  maximumInFlight = 0;
  const router = { url: routerUrl, key: 'sk-platform-12345678' };
  const apis: ApiProcess[] = [];
  for (let replica = 0; replica < replicas; replica += 1)
    apis.push(
      await startApi({ databaseUrl, router, environment: { MOORAGE_ROUTER_KIND: 'openrouter', ...environment } }),
    );
  return { databaseUrl, apis };
}

const reported = z.looseObject({
  type: z.string().optional(),
  detail: z.string().optional(),
  stopped: z.string().optional(),
});

interface Attempt {
  readonly model?: string;
  readonly from?: (index: number) => string;
  readonly path?: string;
  readonly count?: number;
}

/** So many calls at the same time, over all replicas. @returns how many were answered with what */
async function attack(
  { apis }: Scene,
  { model = 'alpha-v4-flash', from = () => '203.0.113.5', path = '/api/ask', count = 60 }: Attempt = {},
): Promise<Record<string, number>> {
  const tally: Record<string, number> = {};
  await Promise.all(
    Array.from({ length: count }, async (_, index) => {
      const body =
        path === '/api/ask'
          ? { prompt: 'Hello', model, max_tokens: 50 }
          : { messages: [{ role: 'user', content: 'Hello' }], model, max_tokens: 50 };
      const answer = await post(`${apis[index % apis.length]?.url ?? ''}${path}`, body, {
        'x-forwarded-for': from(index),
      });
      const read = reported.parse(await answer.json());
      const outcome = answer.ok ? 'answered' : (read.type ?? '').replace(/.*\//, '');
      tally[outcome] = (tally[outcome] ?? 0) + 1;
    }),
  );
  return tally;
}

async function ended({ apis }: Scene): Promise<void> {
  await Promise.all(apis.map((api) => api.stop()));
}

for (const [replicas, path] of [
  [1, '/api/ask'],
  [2, '/v1/chat/completions'],
] as const)
  test(`60 parallel calls at ${path} on ${replicas} replicas, each billed $0.20: one is made, its caller and its model are stopped, and it is reported`, async () => {
    const one = await scene(`attacked-${replicas}`, replicas);
    const tally = await attack(one, { path });
    // What the one call cost is over the quota of its caller too, so either may be the reason.
    const { answered, 'calls-stopped': stopped = 0, 'quota-exhausted': exhausted = 0, ...rest } = tally;
    assert.deepEqual([answered, stopped + exhausted, rest], [1, 59, {}]);
    assert.ok(stopped > 0);
    assert.equal(maximumInFlight, 1);
    assert.equal(billed, 0.2);

    // The caller with another model, and others with this model: on every replica, for the day.
    assert.deepEqual(await attack(one, { model: 'beta-K3', path, count: 4 }), { 'calls-stopped': 4 });
    assert.deepEqual(await attack(one, { from: (index) => `198.51.${index}.7`, path, count: 60 }), {
      'calls-stopped': 60,
    });
    assert.equal(billed, 0.2);
    // Others with other models go on.
    price = '0.000001';
    assert.deepEqual(await attack(one, { model: 'beta-K3', from: () => '198.51.100.7', path, count: 1 }), {
      answered: 1,
    });
    price = '0.2';

    const database = await openLedgerDatabase(one.databaseUrl);
    const ledger = new Ledger(database);
    const { used } = await ledger.budget({ account: toPlatformAccount('openrouter'), limit: null });
    assert.equal(formatMoney(used), '0.200001');
    const registry = new Registry();
    createOverrunMetrics(registry, async () => {
      const { calls, excess } = await ledger.overruns();
      return { calls, excessUsd: toDollarNumber(excess) };
    });
    assert.match(await registry.metrics(), /\nmoorage_model_calls_above_hold 1\n/);
    const now = new Date();
    const { comparisons } = await reconcileDay(
      {
        database,
        router: { name: 'openrouter', fetchBill: () => Promise.resolve({ outcome: 'not known', why: 'none' }) },
        prices: readCatalog(),
        now,
      },
      parseDay(formatDay(now), now),
    );
    const shown = comparisons.find(({ name }) => name === 'ledger');
    assert.equal(shown?.outcome, 'different');
    assert.match(
      shown.differences.find(({ kind }) => kind === 'above_hold')?.detail ?? '',
      /^alpha-v4-flash: cost 0\.2 USD, 0\.0000\d+ reserved$/,
    );
    assert.deepEqual(await ledger.audit(), []);
    await database.close();
    await ended(one);
  });

test('12 parallel comparisons with each call billed $0.20: the calls of one comparison are made, and nothing stays reserved', async () => {
  const one = await scene('compared', 2, { MOORAGE_FREE_QUOTA_USD: '1' });
  const models = ['alpha-v4-flash', 'beta-K3', 'gamma5.2', 'delta-5.6-luna', 'epsilon-3.5-flash'];
  await Promise.all(
    Array.from({ length: 12 }, async (_, index) => {
      const body = { prompt: 'Hello', models, max_tokens: 50 };
      const answer = await post(`${one.apis[index % 2]?.url ?? ''}/api/compare`, body, {
        'x-forwarded-for': '203.0.113.5',
      });
      await answer.text();
    }),
  );
  assert.ok(maximumInFlight <= models.length, `${maximumInFlight} in flight`);
  assert.ok(billed < 0.2 * models.length + 0.1, `billed ${billed}`);
  const database = await openLedgerDatabase(one.databaseUrl);
  const ledger = new Ledger(database);
  while ((await ledger.counts()).open > 0) await sleep(20);
  const { held } = await ledger.budget({ account: toPlatformAccount('openrouter'), limit: null });
  assert.equal(formatMoney(held), '0');
  assert.deepEqual(await ledger.counts(), { open: 0, pending: 0, abandoned: 0 });
  assert.deepEqual(await ledger.audit(), []);
  await database.close();
  await ended(one);
});

test('a known caller has no more calls in flight than the limit, and unknown ones no more than the total limit', async () => {
  price = '0.000001';
  const one = await scene('limited', 2, {
    MOORAGE_CALLS_PER_CALLER: '3',
    MOORAGE_CALLS_IN_FLIGHT: '5',
    MOORAGE_FREE_QUOTA_USD: '1',
  });
  assert.deepEqual(await attack(one, { count: 1 }), { answered: 1 });
  maximumInFlight = 0;
  assert.deepEqual(await attack(one, { count: 20 }), { answered: 20 });
  assert.equal(maximumInFlight, 3);
  maximumInFlight = 0;
  const tally = await attack(one, { from: (index) => `198.51.${index}.7`, count: 20 });
  assert.deepEqual(tally, { answered: 20 });
  assert.equal(maximumInFlight, 5);
  price = '0.2';
  await ended(one);
});

test('a stopped call may continue once the operator has lifted the stop', async () => {
  const one = await scene('lifted', 1);
  assert.deepEqual(await attack(one, { count: 1 }), { answered: 1 });
  assert.deepEqual(await attack(one, { count: 1 }), { 'calls-stopped': 1 });
  // The API itself may not lift it.
  const database = await openLedgerDatabase(toMigratorUrl(one.databaseUrl));
  await database.transaction((transaction) =>
    transaction.script('update ledger.overrun set lifted_at = now() where lifted_at is null'),
  );
  await database.close();
  // What it has cost is over the quota of the caller, so another one calls.
  price = '0.000001';
  assert.deepEqual(await attack(one, { from: () => '198.51.100.7', count: 1 }), { answered: 1 });
  price = '0.2';
  await ended(one);
});
