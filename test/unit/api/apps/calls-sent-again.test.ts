// Calls of hosted apps with an Idempotency-Key: what is sent again does not reach the app again.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { text as bodyOf } from 'node:stream/consumers';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { toCallerAccount } from '../../../../api/billing/ledger/accounts.ts';
import { formatMoney } from '../../../../api/billing/ledger/money.ts';
import { computeKeyedHash } from '../../../../api/http/request.ts';
import type { App } from '../../../../api/apps/hosted-apps.ts';
import { addAgentPaths, sampleAppsServer, type AppsSample } from '../../../support/apps/sample.ts';
import { oldMcpApp } from './operations.cases.ts';

let sample: AppsSample;
let counter: App;
/** Requests that reached the app `counter`, apart from those of the platform. */
let count = 0;
/** Holds up the operation `slow` until it is called. */
let answerSlow: (() => void) | undefined;

beforeAll(async () => {
  sample = await sampleAppsServer({ environment: { MOORAGE_FREE_QUOTA_USD: '0.0009' } });
  const paths = ['count', 'slow', 'fails'].map((id) => [`/${id}`, { post: { operationId: id } }] as const);
  counter = await sample.host(
    'counter',
    (request, response) => {
      if (request.url === '/openapi.json') {
        response.end(JSON.stringify({ openapi: '3.1.0', paths: Object.fromEntries(paths) }));
        return;
      }
      if (request.url === '/mcp') {
        response.writeHead(404).end();
        return;
      }
      count += 1;
      response.statusCode = request.url === '/fails' ? 503 : 201;
      response.setHeader('content-type', 'application/json');
      void bodyOf(request).then((body) => {
        const answer = (): unknown => response.end(JSON.stringify({ count, body }));
        if (request.url === '/slow') answerSlow = answer;
        else answer();
      });
    },
    (app) => addAgentPaths(app),
  );
  await until(() => sample.apps.findOperations('counter') !== undefined);
});
afterAll(() => sample.stop());

async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await sleep(5);
}

interface Reply {
  readonly status: number;
  readonly text: string;
  readonly headers: Record<string, string | null>;
  readonly replayed: string | null;
}

async function post(
  path: string,
  body: unknown,
  key: string | undefined,
  { network = '198.51.77', ...more }: Readonly<Record<string, string>> = {},
): Promise<Reply> {
  const answer = await sample.request(path, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-forwarded-for': `${network}.1`,
      ...(key === undefined ? {} : { 'idempotency-key': key }),
      ...more,
    },
    body: JSON.stringify(body),
  });
  const names = ['x-cost-usd', 'ratelimit', 'ratelimit-policy', 'x-quota-hint', 'cache-control', 'retry-after'];
  return {
    status: answer.status,
    text: await answer.text(),
    headers: Object.fromEntries(names.map((name) => [name, answer.headers.get(name)])),
    replayed: answer.headers.get('idempotent-replayed'),
  };
}

async function readSpent(network = '198.51.77'): Promise<string> {
  const account = toCallerAccount(computeKeyedHash(`address:${network}.0/24`, 'salt'));
  return formatMoney(await sample.models.ledger.get().ledger.balance(account));
}

const json = '/api/projects/counter/call';
const tools = '/api/projects/counter/tools';

test('sends a call with an Idempotency-Key to the app once, charges it once and repeats the response', async () => {
  for (const [path, body, refusal] of [
    [json, { method: 'POST', path: '/a', body: { n: 1 } }, 400],
    [`${json}/a?b=1`, { n: 1 }, 422],
    [`${tools}/counter__count`, { arguments: {} }, 400],
  ] as const) {
    const [before, key] = [count, crypto.randomUUID()];
    const first = await post(path, body, key);
    assert.match(first.headers['ratelimit'] ?? '', /^"free-day";r=\d+;t=\d+$/, path);
    assert.equal(first.headers['cache-control'], 'no-store');
    const cost = await readSpent();
    const again = await post(path, body, key);
    assert.deepEqual({ ...again, replayed: null }, first, path);
    assert.deepEqual([again.replayed, count, await readSpent()], ['true', before + 1, cost]);
    const other = await post(path, { ...body, more: 1 }, key);
    assert.equal(other.status, refusal, other.text);
    assert.equal((await post(path, body, 'order-5')).status, 400, 'a key that a neighbour could guess');
  }
  // A server error was free, and another try may succeed.
  for (const [path, body, status] of [
    [`${json}/fails`, {}, 503],
    [`${tools}/counter__fails`, { arguments: {} }, 200],
  ] as const) {
    const [before, key, cost] = [count, crypto.randomUUID(), await readSpent()];
    for (let nth = 0; nth < 2; nth += 1) {
      const failed = await post(path, body, key);
      assert.deepEqual([failed.status, failed.replayed], [status, null], failed.text);
    }
    assert.deepEqual([count, await readSpent()], [before + 2, cost]);
  }
});

test('refuses a key that is in use or was used for another call, and answers again when the tool is gone', async () => {
  const network = { network: '198.51.78' };
  const [before, key] = [count, crypto.randomUUID()];
  const first = post(`${tools}/counter__slow`, { arguments: {} }, key, network);
  await until(() => answerSlow !== undefined);
  const busy = await post(`${tools}/counter__slow`, { arguments: {} }, key, network);
  assert.deepEqual([busy.status, busy.headers['retry-after']], [409, '2'], busy.text);
  assert.match(busy.text, /idempotency-in-flight/);
  answerSlow?.();
  assert.equal((await first).status, 200);
  for (const [path, body] of [
    [`${tools}/counter__slow`, { arguments: { a: 1 } }],
    [`${tools}/counter__count`, { arguments: {} }],
    [json, { method: 'POST', path: '/slow' }],
  ] as const) {
    const other = await post(path, body, key, network);
    assert.equal(other.status, 422, other.text);
    assert.match(other.text, /idempotency-mismatch/);
  }
  const offer = (enabled: boolean, resourceVersion: string): void => {
    const { metadata, spec } = counter;
    sample.store.set({
      ...counter,
      metadata: { ...metadata, resourceVersion },
      spec: { ...spec, agents: { ...spec.agents, enabled } },
    });
  };
  offer(false, '2');
  const gone = await post(`${tools}/counter__slow`, { arguments: {} }, crypto.randomUUID(), network);
  assert.equal(gone.status, 404, gone.text);
  const again = await post(`${tools}/counter__slow`, { arguments: {} }, key, network);
  assert.deepEqual([again.status, again.text, again.replayed], [200, (await first).text, 'true']);
  assert.deepEqual([count, await readSpent(network.network)], [before + 1, '0.0001']);
  offer(true, '3');
  await until(() => sample.apps.findOperations('counter') !== undefined);
});

test('distinguishes calls by session and variables, and stores no value of a variable', async () => {
  const network = { network: '198.51.79' };
  const sessions = new Set<string>();
  await sample.host('elder', oldMcpApp(sessions), (app) => addVariables(addAgentPaths(app)));
  await until(() => sample.apps.findOperations('elder') !== undefined);
  const key = crypto.randomUUID();
  const call = (headers: Readonly<Record<string, string>>): Promise<Reply> =>
    post('/api/projects/elder/tools/elder__greet', { arguments: { who: 'you' } }, key, { ...network, ...headers });
  const own = { 'mcp-session-id': 'a', 'moorage-mcp-environment': '{"API_KEY":"hidden"}' };
  const first = await call(own);
  assert.equal(first.status, 200, first.text);
  assert.equal((await call(own)).replayed, 'true');
  for (const changed of [
    { ...own, 'mcp-session-id': 'b' },
    { ...own, 'moorage-mcp-environment': '{"API_KEY":"other"}' },
    { 'mcp-session-id': 'a' },
    {},
  ]) {
    const other = await call(changed);
    assert.equal(other.status, 422, JSON.stringify(changed));
    assert.doesNotMatch(other.text, /hidden|other"/);
  }
  assert.deepEqual([sessions.size, await readSpent(network.network)], [1, '0.0001']);
  const rows = await sample.models.ledger
    .get()
    .database.query({ name: 'keys', text: 'select i::text as row from ledger.idempotency i where key = $1', row }, [
      key,
    ]);
  assert.equal(rows.length, 1);
  assert.doesNotMatch(rows[0]?.row ?? '', /hidden/);
});

const row = z.object({ row: z.string() });

/** A server over stdio that asks for a variable. */
function addVariables(app: App): App {
  const environment = [{ name: 'API_KEY', secret: true, required: false }];
  const command = { file: 'server.py', transport: 'stdio', command: 'python server.py', path: '/mcp' } as const;
  const plan = { strategy: 'python', reason: '', mcp: { ...command, bridged: true, environment } } as const;
  return { ...app, status: { ...app.status, plan } };
}

test('says in headers how much of the quota is left, and how to continue when it runs low', async () => {
  const network = { network: '198.51.80' };
  const call = (nth: number): Promise<Reply> =>
    nth % 2 === 0
      ? post(`${tools}/counter__count`, { arguments: {} }, undefined, network)
      : post(json, { method: 'POST', path: '/count' }, undefined, network);
  const sent: Reply[] = [];
  for (let nth = 0; nth < 9; nth += 1) sent.push(await call(nth));
  assert.deepEqual(
    sent.map(({ headers }) => /r=(\d+);/.exec(headers['ratelimit'] ?? '')?.[1]),
    ['800', '700', '600', '500', '400', '300', '200', '100', '0'],
  );
  assert.deepEqual(
    sent.map(({ headers }) => headers['x-quota-hint'] !== null),
    [false, false, false, false, false, false, false, true, true],
  );
  assert.equal(sent[0]?.headers['ratelimit-policy'], '"free-day";q=900;w=86400;qu="micro-usd"');
});
