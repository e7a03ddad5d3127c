// GET /api/usage: quota, balance and uses of the caller alone; a request by its id; and costs that come later.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { formatMoney, parseMoney, sumMoney } from '../../../../api/billing/ledger/money.ts';
import { json, sampleModels, type Sample } from '../../../support/models/sample.ts';
import {
  completion,
  reply,
  startScriptedRouter,
  type ScriptedRouter,
} from '../../../support/models/scripted-router.ts';

let router: ScriptedRouter;
let sample: Sample;
const billed = '{"prompt_tokens":3,"completion_tokens":1,"cost":0.000014}';
beforeAll(async () => {
  router = await startScriptedRouter({
    'alpha/alpha-v4-flash': reply(200, completion(billed)),
    'gamma/gamma-5.2': reply(200, completion(billed)),
    'beta/beta-k3': reply(200, completion(undefined, 'gen-late')),
    'delta/delta-5.6-luna': reply(400, '{"error":{"message":"no"}}'),
    '/key': (response, { authorization }) => {
      response.writeHead(authorization?.startsWith('Bearer sk-good') === true ? 200 : 401).end('{}');
    },
    '/generation': reply(200, '{"data":{"total_cost":0.000005}}'),
  });
  sample = await sampleModels({
    environment: {
      MOORAGE_ROUTER_URL: router.url,
      MOORAGE_FREE_QUOTA_USD: '0.01',
      MOORAGE_PRICES: JSON.stringify([
        { version: 'v', from: '2020-01-01', announced: '2020-01-01', modelMargin: '0.5' },
      ]),
    },
  });
});
afterAll(async () => {
  await sample.stop();
  await router.close();
});

const use = z.looseObject({
  id: z.uuid(),
  request_id: z.string(),
  kind: z.string(),
  model: z.string(),
  state: z.enum(['settled', 'pending']),
  cost_usd: z.string().nullable(),
  charged_usd: z.string().nullable(),
  cost_source: z.string(),
  settled_at: z.string().nullable(),
});
const usage = z.strictObject({
  caller: z.string(),
  kind: z.enum(['anonymous', 'key']),
  quota: z.strictObject({
    scope: z.string(),
    currency: z.literal('USD'),
    limit: z.string(),
    used: z.string(),
    reserved: z.string(),
    remaining: z.string(),
    resets_at: z.iso.datetime(),
  }),
  balance: z.strictObject({ billed_to_key_usd: z.string(), charged_today_usd: z.string() }).nullable(),
  pending: z.int(),
  uses: z.array(use),
  next: z.string().nullable(),
  hint: z.string().optional(),
});
const request = z.strictObject({
  request_id: z.string(),
  cost_usd: z.string(),
  charged_usd: z.string(),
  pending: z.int(),
  uses: z.array(use),
});

const from = (address: string): Record<string, string> => ({ 'x-forwarded-for': address });
const key = { authorization: 'Bearer sk-good-12345678' };

async function read<Shape>(shape: z.ZodType<Shape>, path: string, headers: Record<string, string>): Promise<Shape> {
  const answer = await sample.request(path, { headers });
  const text = await answer.text();
  assert.equal(answer.status, 200, text);
  return shape.parse(JSON.parse(text));
}

async function ask(body: object, headers: Record<string, string>): Promise<string> {
  const answer = await sample.request('/api/ask', json({ prompt: 'Hello', max_tokens: 100, ...body }, headers));
  await answer.text();
  return answer.headers.get('x-request-id') ?? '';
}

test('a caller without a key sees what is left of the quota, and the uses of a request by its id alone', async () => {
  const me = from('192.0.2.1');
  const before = await read(usage, '/api/usage', me);
  assert.deepEqual([before.quota.used, before.quota.remaining, before.uses, before.balance], ['0', '0.01', [], null]);
  const id = await ask({}, me);
  const after = await read(usage, '/api/usage', me);
  assert.deepEqual(
    [after.kind, after.quota.scope, after.quota.used, after.quota.reserved, after.quota.remaining],
    ['anonymous', 'free', '0.000014', '0', '0.009986'],
  );
  assert.deepEqual([after.uses, after.next, after.pending], [[], null, 0]);
  assert.match(String(after.hint), /others may call from your address/);
  const [one] = (await read(request, `/api/usage/${id}`, me)).uses;
  assert.deepEqual(
    [one?.kind, one?.model, one?.cost_usd, one?.charged_usd, one?.state, one?.cost_source, one?.request_id],
    ['ask', 'alpha-v4-flash', '0.000014', '0', 'settled', 'billed', id],
  );
  assert.ok(Date.parse(one?.settled_at ?? '') > 0);
});

test('a caller with a key sees what the router billed to it, and the margin that we charged', async () => {
  const id = await ask({}, key);
  const mine = await read(usage, '/api/usage', key);
  assert.deepEqual(
    [mine.kind, mine.balance, mine.quota.scope, mine.uses.map(({ charged_usd }) => charged_usd)],
    ['key', { billed_to_key_usd: '0.000014', charged_today_usd: '0.000007' }, 'key', ['0.000007']],
  );
  const found = await read(request, `/api/usage/${id}`, key);
  assert.deepEqual([found.cost_usd, found.charged_usd, found.pending], ['0.000014', '0.000007', 0]);
});

test('a comparison is one request with a use for each model, and pages have every use once', async () => {
  const me = { authorization: 'Bearer sk-good-compare-123' };
  const answer = await sample.request(
    '/api/compare',
    json({ prompt: 'Hello', max_tokens: 100, models: ['alpha-v4-flash', 'gamma5.2', 'delta-5.6-luna'] }, me),
  );
  await answer.text();
  const id = answer.headers.get('x-request-id') ?? '';
  const { uses, cost_usd } = await read(request, `/api/usage/${id}`, me);
  // The one that was refused cost nothing.
  assert.deepEqual(uses.map(({ model }) => model).sort(), ['alpha-v4-flash', 'gamma5.2']);
  assert.equal(cost_usd, formatMoney(sumMoney(uses.map((one) => parseMoney(one.cost_usd ?? '')))));
  for (const _ of [1, 2, 3]) await ask({}, me);
  const seen: string[] = [];
  let path: string | null = '/api/usage?limit=2';
  while (path !== null) {
    const page: z.output<typeof usage> = await read(usage, path, me);
    seen.push(...page.uses.map((one) => one.id));
    path = page.next?.replace('https://moorage.test', '') ?? null;
  }
  assert.equal(seen.length, 5);
  assert.equal(new Set(seen).size, 5);
});

test('a cost that is pending is said to be, and is there once it is settled', async () => {
  const me = from('192.0.4.1');
  const id = await ask({ model: 'beta-K3' }, me);
  const early = await read(request, `/api/usage/${id}`, me);
  assert.deepEqual(
    [early.pending, early.cost_usd, early.uses[0]?.state, early.uses[0]?.cost_usd, early.uses[0]?.settled_at],
    [1, '0', 'pending', null, null],
  );
  assert.notEqual((await read(usage, '/api/usage', me)).quota.reserved, '0');
  // As the reconciler does, with what the router's records have.
  await sample.ledger.settle({ hold: early.uses[0]?.id ?? '', cost: parseMoney('0.000005'), source: 'router_record' });
  const late = await read(request, `/api/usage/${id}`, me);
  assert.deepEqual([late.pending, late.cost_usd, late.uses[0]?.cost_source], [0, '0.000005', 'router_record']);
});

test('nobody sees the uses of another, by their ids neither', async () => {
  const mine = from('192.0.5.1');
  const id = await ask({}, mine);
  const [one] = (await read(request, `/api/usage/${id}`, mine)).uses;
  const weak = { ...mine, 'x-request-id': 'request-1' };
  assert.equal(await ask({}, weak), 'request-1');
  const neighbour = from('192.0.5.77');
  for (const [headers, others] of [
    [from('192.0.6.1'), [id, one?.id]],
    [{ ...mine, ...key }, [id, one?.id]],
    // The id of a call is in the public record of the ledger; an id of the caller's own may be guessed.
    [neighbour, [one?.id, 'request-1', 'x'.repeat(40)]],
  ] as const)
    for (const other of others) {
      const answer = await sample.request(`/api/usage/${String(other)}`, { headers });
      const { type } = z.looseObject({ type: z.string() }).parse(await answer.json());
      assert.deepEqual([answer.status, type], [404, 'https://moorage.test/problems/request-unknown']);
    }
  const invented = { authorization: 'Bearer sk-invented-12345678' };
  assert.equal((await sample.request('/api/usage', { headers: invented })).status, 401);
});

test('what is not a page of this list is refused by name', async () => {
  for (const [path, field] of [
    ['/api/usage?cursor=abc', 'cursor'],
    ['/api/usage?limit=0', 'limit'],
    ['/api/usage?state=open', 'state'],
  ] as const) {
    const answer = await sample.request(path);
    const { errors } = z
      .looseObject({ errors: z.array(z.looseObject({ field: z.string() })) })
      .parse(await answer.json());
    assert.deepEqual([answer.status, errors.map((error) => error.field)], [400, [field]]);
  }
});
