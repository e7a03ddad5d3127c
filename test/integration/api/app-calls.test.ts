// The money of calls of apps on a real PostgreSQL: booked exactly to caller, app and author, never over a quota, and
// given back when the process ends.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import type { App } from '../../../api/apps/hosted-apps.ts';
import { computeKeyedHash } from '../../../api/http/request.ts';
import {
  toAuthorAccount,
  toCallerAccount,
  toKeyAccount,
  toRevenueAccount,
  type Account,
} from '../../../api/billing/ledger/accounts.ts';
import type { Ledger } from '../../../api/billing/ledger/ledger.ts';
import { formatMoney, parseMoney } from '../../../api/billing/ledger/money.ts';
import { sampleAppsServer, addAgentPaths, type AppsSample } from '../../support/apps/sample.ts';
import { startScriptedRouter, type ScriptedRouter } from '../../support/models/scripted-router.ts';
import { sharePostgres, type SharedPostgres } from '../../support/ledger/postgres.ts';
import { formatCallPrice } from '../../support/billing/prices.ts';
import { postToday } from '../../support/revenue/post-today.ts';

let postgres: SharedPostgres;
let sample: AppsSample;
let router: ScriptedRouter;
let ledger: Ledger;
let odd: App;

beforeAll(async () => {
  postgres = await sharePostgres();
  router = await startScriptedRouter({
    '/key': (response) => {
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"data":{}}');
    },
  });
  sample = await sampleAppsServer({
    environment: {
      MOORAGE_ROUTER_URL: router.url,
      MOORAGE_KEY_LIMIT_USD: '0.01',
      DATABASE_URL: await postgres.createDatabase('apps'),
      MOORAGE_FREE_QUOTA_USD: '0.01',
      MOORAGE_PRICES: formatCallPrice('0.0003'),
      MOORAGE_TOOL_CALLS: '800',
      MOORAGE_TOOL_CALLS_PER_CALLER: '300',
    },
  });
  ({ ledger } = sample.models.ledger.get());
  odd = await sample.host(
    'odd',
    (request, response) => {
      response.statusCode = request.url?.includes('fail') === true ? 503 : 200;
      response.end('ok');
    },
    (app) => ({ ...app, spec: { ...app.spec, author: { share: '0.3333' } } }),
  );
  await sample.host(
    'tools',
    (request, response) => {
      response.setHeader('content-type', 'application/json');
      response.end(
        request.url === '/openapi.json'
          ? JSON.stringify({ openapi: '3.1.0', paths: { '/a': { get: { operationId: 'a' } } } })
          : '{}',
      );
    },
    addAgentPaths,
  );
});

afterAll(async () => {
  await sample.stop();
  await router.close();
  await postgres.stop();
});

const balance = async (account: Account): Promise<string> => formatMoney(await ledger.balance(account));
const quotaOf = (network: string): Account => toCallerAccount(computeKeyedHash(`address:${network}`, 'salt'));
const key = 'sk-of-a-reader-12345678';
const call = async (path: string, headers: Record<string, string>): Promise<number> => {
  const answer = await sample.request(`/api/projects/odd/call${path}`, { headers });
  await answer.arrayBuffer();
  return answer.status;
};

/** 200 calls at once, of which 33 are covered. @returns what they cost */
async function flood(headers: Record<string, string>): Promise<bigint> {
  const statuses = await Promise.all(
    Array.from({ length: 200 }, (_none, index) => call(index % 10 === 0 ? '/fail' : '/', headers)),
  );
  const count = (status: number): number => statuses.filter((one) => one === status).length;
  assert.equal(count(200) + count(503) + count(402), 200);
  assert.ok(count(200) <= 33 && count(200) > 0, `${count(200)} answered`);
  return BigInt(count(200)) * parseMoney('0.0003');
}

test('200 parallel calls with a limit for 33: exactly 33 succeed, the rest are rejected, and the shares add up to the digit [spec limits.quota service.share]', async () => {
  const [author, revenue] = [toAuthorAccount('git.test/octo'), toRevenueAccount('odd')];
  const free = await flood({ 'x-forwarded-for': '192.0.2.1' });
  assert.equal(await ledger.balance(quotaOf('192.0.2.0/24')), free);
  assert.deepEqual([await ledger.balance(author), await ledger.balance(revenue)], [0n, -free], 'nobody paid');
  const paid = await flood({ authorization: `Bearer ${key}` });
  assert.equal(await ledger.balance(toKeyAccount(computeKeyedHash(`key:${key}`, 'salt'))), paid);
  const { database } = sample.models.ledger.get();
  assert.equal(await postToday(database, odd, formatCallPrice('0.0003')), 1);
  assert.equal(await postToday(database, odd, formatCallPrice('0.0003')), 0, 'once');
  const share = (paid / parseMoney('0.0003')) * parseMoney('0.00009999');
  assert.equal(await ledger.balance(author), -share);
  assert.equal(await ledger.balance(revenue), share - paid - free);
  assert.equal((await ledger.counts()).open, 0);
  assert.deepEqual(await ledger.audit(), []);
  const [sums] = await database.query(
    {
      name: 'sums',
      text: 'select coalesce(sum(amount), 0)::text as all, (select count(*)::int from (select 1 from ledger.entry group by transaction_id having sum(amount) <> 0) x) as odd from ledger.entry',
      row: z.object({ all: z.string(), odd: z.int() }),
    },
    [],
  );
  assert.deepEqual([Number(sums?.all), sums?.odd], [0, 0]);
});

test('an operation costs what a call costs, and is recorded as a use of the app [spec tools.cost]', async () => {
  const context = {
    id: randomUUID(),
    headers: new Headers(),
    caller: () => ({ kind: 'address' as const, hash: 'of-the-tests', network: 'of-the-tests' }),
    signal: new AbortController().signal,
  };
  const tool = await sample.apps.more.find('tools.a');
  assert.ok(tool);
  const answer = await tool.call({ given: {}, context: context as never, signal: context.signal });
  assert.equal((answer.structuredContent as { cost_usd: number }).cost_usd, 0.0003);
  assert.equal(await balance(toCallerAccount('of-the-tests')), '0.0003');
  assert.equal(await balance(toRevenueAccount('tools')), '-0.0003');
});

test('charges a tool call once that is sent again with its Idempotency-Key, also at the same time', async () => {
  const network = '203.0.113';
  const send = (idempotencyKey: string): Promise<Response> =>
    sample.request('/api/projects/tools/tools/tools__a', {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-forwarded-for': `${network}.1`,
        'idempotency-key': idempotencyKey,
      },
      body: '{"arguments":{}}',
    });
  const before = await ledger.balance(toRevenueAccount('tools'));
  const own = randomUUID();
  const answers = await Promise.all(Array.from({ length: 20 }, () => send(own)));
  const again = await send(own);
  assert.deepEqual([again.status, again.headers.get('idempotent-replayed')], [200, 'true']);
  const fresh = answers.filter(({ status, headers }) => status === 200 && !headers.has('idempotent-replayed'));
  assert.equal(fresh.length, 1, 'one of them called the app');
  assert.ok(answers.every(({ status }) => status === 200 || status === 409));
  assert.equal(await again.text(), await fresh[0]?.text());
  assert.equal(await balance(quotaOf(`${network}.0/24`)), '0.0003');
  assert.equal(before - (await ledger.balance(toRevenueAccount('tools'))), parseMoney('0.0003'));
  await send(randomUUID());
  assert.equal(await balance(quotaOf(`${network}.0/24`)), '0.0006');
  assert.deepEqual(await ledger.audit(), []);
});

test('releases the holds of a dead process, whose callers got no response', async () => {
  const debit = { account: toCallerAccount('gone'), limit: parseMoney('0.01') };
  await ledger.reserve({
    id: randomUUID(),
    amount: parseMoney('0.0003'),
    ttlMs: 1,
    debit,
    credit: { account: toRevenueAccount('odd'), limit: null },
  });
  for (let tries = 0; (await ledger.budget(debit)).held > 0n && tries < 200; tries += 1) {
    await ledger.expire();
    await ledger.releaseToolHolds();
  }
  assert.deepEqual(await ledger.budget(debit), { limit: debit.limit, used: 0n, held: 0n });
  assert.deepEqual(await ledger.claimPending(10, 1_000), []);
});
