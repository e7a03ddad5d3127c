// /v1 with an Idempotency-Key: what is sent again is answered again and charged once, whole or as a stream.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, test } from 'vitest';
import { z } from 'zod';
import { isUnguessable } from '../../../../../api/billing/idempotency.ts';
import { parseMoney } from '../../../../../api/billing/ledger/money.ts';
import { readCatalog } from '../../../../../api/models/catalog.ts';
import { sampleModels, type Sample } from '../../../../support/models/sample.ts';
import {
  completion,
  delta,
  reply,
  startScriptedRouter,
  stream,
  usageEvent,
  type Script,
  type ScriptedRouter,
} from '../../../../support/models/scripted-router.ts';

const usage = '{"prompt_tokens":3,"completion_tokens":1,"cost":0.0000123}';
const model = 'alpha-v4-flash';
const upstream = readCatalog().byId.get(model)?.upstream ?? '';

const whole = reply(200, completion(usage));
const pieces = stream(delta('H'), delta('i', 'stop'), usageEvent(usage), '[DONE]');
const breaksOff = stream(delta('H'));

const vectors = reply(200, `{"data":[{"embedding":[1]}],"usage":{"prompt_tokens":3,"cost":0.0000001}}`);
const embedding = readCatalog().embeddings[0]?.upstream ?? '';

let script: Script = whole;
let router: ScriptedRouter;
let sample: Sample;
beforeAll(async () => {
  router = await startScriptedRouter({
    [upstream]: (...all) => script(...all),
    [embedding]: (...all) => script(...all),
    '/key': reply(200, '{"data":{}}'),
  });
  sample = await sampleModels({
    environment: { MOORAGE_ROUTER_URL: router.url, MOORAGE_FREE_QUOTA_USD: '0.01' },
  });
});
afterAll(async () => {
  await sample.stop();
  await router.close();
});
beforeEach(() => {
  router.asked.length = 0;
});

interface KeyedRequest {
  readonly key: string;
  readonly address: string;
  readonly more?: object;
}

/** A key that only its sender has, by a name in these tests. */
const secrets = new Map<string, string>();
function secretKey(name: string): string {
  const secret = secrets.get(name) ?? crypto.randomUUID();
  secrets.set(name, secret);
  return secret;
}

async function send({ key, address, more = {} }: KeyedRequest): Promise<{ response: Response; text: string }> {
  const response = await sample.request('/v1/chat/completions', {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-forwarded-for': address, 'idempotency-key': secretKey(key) },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello' }], max_tokens: 50, ...more }),
  });
  return { response, text: await response.text() };
}

/** How often the router was asked for a completion. */
const called = (): number => router.asked.filter(({ path }) => path.endsWith('/completions')).length;
const cost = {
  name: 'test-cost',
  text: 'select count(*)::int as calls from ledger.usage',
  row: z.object({ calls: z.int() }),
};
const uses = async (): Promise<number> => (await sample.database.query(cost, []))[0]?.calls ?? 0;

for (const [name, how, more] of [
  ['a completion', whole, {}],
  ['a stream', pieces, { stream: true, stream_options: { include_usage: true } }],
] as const) {
  test(`${name} that is sent again is the same, and is called and charged once`, async () => {
    script = how;
    const before = await uses();
    const sent = { key: name.replace(' ', '-'), address: '192.0.30.1', more };
    const [first, again] = [await send(sent), await send(sent)];
    assert.deepEqual([first.response.status, again.response.status], [200, 200], first.text);
    assert.equal(again.text, first.text);
    for (const header of ['content-type', 'x-cost-usd', 'x-charged-usd', 'ratelimit'])
      assert.equal(again.response.headers.get(header), first.response.headers.get(header), header);
    assert.equal(first.response.headers.get('x-cost-usd'), '0.0000123');
    assert.match(first.text, /"cost":0\.0000123/);
    assert.deepEqual(
      [first, again].map(({ response }) => response.headers.get('idempotent-replayed')),
      [null, 'true'],
    );
    assert.equal(called(), 1);
    assert.equal(await uses(), before + 1);
  });
}

test('of two requests at once with one key one is called, and the other is asked to come back', async () => {
  script = whole;
  const sent = { key: 'twice', address: '192.0.35.1' };
  const both = await Promise.all([send(sent), send(sent)]);
  const refused = both.filter(({ response }) => response.status !== 200);
  for (const { response, text } of refused) {
    assert.deepEqual([response.status, response.headers.get('retry-after')], [409, '2']);
    assert.match(text, /"code":"idempotency-in-flight"/);
  }
  assert.equal(called(), 1);
  assert.equal((await send(sent)).response.headers.get('idempotent-replayed'), 'true');
});

test('a stream with a key has the events of one without', async () => {
  script = pieces;
  const { response, text } = await send({ key: 'events', address: '192.0.31.1', more: { stream: true } });
  assert.equal(response.headers.get('content-type'), 'text/event-stream');
  const data = text.split('\n\n').map((event) => event.replace('data: ', ''));
  assert.deepEqual(data.slice(-2), ['[DONE]', '']);
  const chunk = z.looseObject({ model: z.string(), choices: z.array(z.looseObject({ delta: z.looseObject({}) })) });
  assert.deepEqual(
    data.slice(0, -2).map((one) => chunk.parse(JSON.parse(one)).choices[0]?.delta['content']),
    ['H', 'i'],
  );
});

test('a stream that broke off is a problem, and may be sent again with its key', async () => {
  const sent = { key: 'broken', address: '192.0.32.1', more: { stream: true } };
  script = breaksOff;
  const broken = await send(sent);
  assert.equal(broken.response.status, 502, broken.text);
  assert.match(broken.text, /"code":"model-failed"/);
  script = pieces;
  const again = await send(sent);
  assert.deepEqual([again.response.status, again.response.headers.get('idempotent-replayed')], [200, null]);
});

test('without an API key, a key that a neighbour could guess is refused; with one, any is taken', async () => {
  script = whole;
  for (const key of ['1', 'order-5', 'order-0000000000000000000000001', 'a'.repeat(64)]) {
    const response = await sample.request('/v1/chat/completions', {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-forwarded-for': '192.0.36.1', 'idempotency-key': key },
      body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello' }], max_tokens: 50 }),
    });
    assert.equal(response.status, 400, key);
    assert.match(await response.text(), /Idempotency-Key.* is too easy to guess/);
  }
  assert.equal(called(), 0);
  for (const key of [crypto.randomUUID(), randomBytes(16).toString('hex'), randomBytes(17).toString('base64url')])
    assert.equal(isUnguessable(key), true, key);
});

test('a key belongs to its caller and to one request', async () => {
  script = whole;
  const sent = { key: 'mine', address: '192.0.33.1' };
  await send(sent);
  const other = await send({ ...sent, more: { max_tokens: 51 } });
  assert.equal(other.response.status, 422);
  assert.match(other.text, /"code":"idempotency-mismatch"/);
  const stranger = await send({ ...sent, address: '192.0.34.1' });
  assert.equal(stranger.response.headers.get('idempotent-replayed'), null);
  assert.equal(called(), 2);
});

async function embed(key: string): Promise<{ response: Response; text: string }> {
  const response = await sample.request('/v1/embeddings', {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-forwarded-for': '192.0.40.1', 'idempotency-key': secretKey(key) },
    body: JSON.stringify({ model: 'embed-small', input: 'Hello' }),
  });
  return { response, text: await response.text() };
}

test('embeddings that are sent again are the same, and are called and charged once', async () => {
  script = vectors;
  const before = await uses();
  const [first, again] = [await embed('vectors'), await embed('vectors')];
  assert.deepEqual([first.response.status, again.response.status], [200, 200], first.text);
  assert.equal(again.text, first.text);
  assert.equal(again.response.headers.get('idempotent-replayed'), 'true');
  assert.equal(again.response.headers.get('x-cost-usd'), '0.0000001');
  assert.equal(router.asked.filter(({ path }) => path.endsWith('/embeddings')).length, 1);
  assert.equal(await uses(), before + 1);
});

const holds = {
  name: 'test-holds',
  text: 'select id::text, state from ledger.hold order by created_at desc limit 2',
  row: z.object({ id: z.string(), state: z.string() }),
};
const use = z.looseObject({
  id: z.string(),
  cost_usd: z.string().nullable(),
  retry_of: z.string().nullable(),
  billed_both: z.boolean().nullable(),
});

test('a request that is sent again after its process died finds the call that it made, and the record says once the router billed both', async () => {
  const headers = { 'content-type': 'application/json', authorization: 'Bearer sk-mine', 'idempotency-key': 'died' };
  const body = JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello' }], max_tokens: 50 });
  const ask = (): Promise<Response> => sample.request('/v1/chat/completions', { method: 'POST', headers, body });
  const leaving = Promise.withResolvers<undefined>();
  script = async (response) => {
    await leaving.promise;
    response.destroy();
  };
  const lost = ask();
  while (called() === 0) await sleep(20);
  // As it is once the process is gone for longer than any call lasts.
  await sample.database.transaction((transaction) =>
    transaction.script("update ledger.idempotency set lease_until = now() - interval '1 second' where key = 'died'"),
  );
  script = whole;
  const again = await ask();
  assert.equal(again.status, 200, await again.text());
  const [second, first] = await sample.database.query(holds, []);
  assert.deepEqual([first?.state, second?.state], ['pending', 'settled']);
  const read = async (): Promise<z.output<typeof use> | undefined> => {
    const answer = await sample.request(`/api/usage/${second?.id ?? ''}`, { headers });
    return z.looseObject({ uses: z.array(use) }).parse(await answer.json()).uses[0];
  };
  assert.deepEqual([(await read())?.retry_of, (await read())?.billed_both], [first?.id, null]);
  await sample.ledger.settle({ hold: first?.id ?? '', cost: parseMoney('0.00001'), source: 'router_record' });
  assert.equal((await read())?.billed_both, true);
  leaving.resolve(undefined);
  await lost;
});

test('a request that failed at no cost leaves nothing that a retry would repeat', async () => {
  script = reply(503, '{"error":{"message":"overloaded"}}');
  const sent = { key: 'free-failure', address: '192.0.41.1' };
  assert.equal((await send(sent)).response.status, 503);
  script = whole;
  assert.equal((await send(sent)).response.status, 200);
  const noted = {
    name: 'test-noted',
    text: `select retry_of::text from ledger.keyed_call where key = '${secretKey('free-failure')}' order by at`,
    row: z.object({ retry_of: z.string().nullable() }),
  };
  assert.deepEqual(await sample.database.query(noted, []), [{ retry_of: null }, { retry_of: null }]);
});
