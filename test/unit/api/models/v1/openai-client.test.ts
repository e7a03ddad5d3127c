// /v1 as the official OpenAI client uses it, with nothing changed but its base URL and its key: chat, streams, tools, embeddings, models and errors,
// paid by a key or by the free quota.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import OpenAI from 'openai';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { formatMoney, parseMoney, sumMoney } from '../../../../../api/billing/ledger/money.ts';
import { readCatalog } from '../../../../../api/models/catalog.ts';
import { demoNotice, startDemoRouter, type DemoRouter } from '../../../../../api/models/router/demo-router.ts';
import { sampleModels, type Sample } from '../../../../support/models/sample.ts';

let router: DemoRouter;
let sample: Sample;
let server: Server;
let baseURL: string;
beforeAll(async () => {
  router = await startDemoRouter(readCatalog());
  sample = await sampleModels({
    environment: { MOORAGE_ROUTER_URL: router.url, MOORAGE_FREE_QUOTA_USD: '0.01' },
  });
  server = createServer(sample.listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  baseURL = `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}/v1`;
});
afterAll(async () => {
  server.closeAllConnections();
  server.close();
  await sample.stop();
  await router.close();
});

const messages = [{ role: 'user' as const, content: 'Hello' }];

function client(apiKey: string, address = '192.0.2.1'): OpenAI {
  return new OpenAI({ baseURL, apiKey, maxRetries: 0, defaultHeaders: { 'x-forwarded-for': address } });
}

const used = {
  name: 'test-used',
  text: 'select kind, model, cost::text as cost, cost_source as source, request from ledger.usage order by at',
  row: z.object({
    kind: z.string(),
    model: z.string(),
    cost: z.string(),
    source: z.string(),
    request: z.string().nullable(),
  }),
};

test('a chat completion on the free quota says in its headers what it cost, which is what the ledger has', async () => {
  const { data, response } = await client('anonymous', '192.0.10.1')
    .chat.completions.create({ model: 'beta-K3', messages, temperature: 0.5, max_completion_tokens: 60 })
    .withResponse();
  assert.ok(data.choices[0]?.message.content?.startsWith(demoNotice));
  assert.equal(data.model, 'beta-K3');
  const [last] = (await sample.database.query(used, [])).slice(-1);
  assert.deepEqual([last?.kind, last?.model, last?.source], ['v1', 'beta-K3', 'billed']);
  assert.equal(response.headers.get('x-cost-usd'), formatMoney(parseMoney(last?.cost ?? '')));
  assert.equal(response.headers.get('x-charged-usd'), '0');
  assert.equal(response.headers.get('x-cost-source'), 'billed');
  assert.match(response.headers.get('ratelimit') ?? '', /^"free-day";r=9\d\d\d;/);
});

test('a client that sends no key, or an empty one, is on the free quota too', async () => {
  for (const headers of [{}, { authorization: 'Bearer ' }, { authorization: 'Bearer' }]) {
    const answer = await fetch(`${baseURL}/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ model: 'alpha-v4-flash', messages }),
    });
    assert.equal(answer.status, 200, await answer.text());
  }
});

test('with a key, a premium model answers, and the key pays', async () => {
  const { data, response } = await client('sk-demo-12345678')
    .chat.completions.create({ model: 'zeta-fable-5', messages })
    .withResponse();
  assert.equal(data.model, 'zeta-fable-5');
  assert.equal(response.headers.get('ratelimit'), null);
  const owned = {
    name: 'test-own-key',
    text: "select sum(amount)::text as sum from ledger.entry e join ledger.account a on a.id = e.account_id where a.kind = 'own-key'",
    row: z.object({ sum: z.string() }),
  };
  const [own] = await sample.database.query(owned, []);
  assert.equal(formatMoney(parseMoney(own?.sum ?? '')), response.headers.get('x-cost-usd'));
});

test('a stream comes in pieces, with usage and cost in its last one', async () => {
  const stream = await client('anonymous', '192.0.20.1').chat.completions.create({
    model: 'alpha-v4-flash',
    messages,
    stream: true,
    stream_options: { include_usage: true },
  });
  const texts: string[] = [];
  let usage: OpenAI.CompletionUsage | null | undefined;
  for await (const chunk of stream) {
    assert.equal(chunk.model, 'alpha-v4-flash');
    texts.push(chunk.choices[0]?.delta.content ?? '');
    ({ usage } = chunk);
  }
  assert.ok(texts.length > 5);
  assert.ok(texts.join('').startsWith(demoNotice));
  assert.ok(z.looseObject({ prompt_tokens: z.int(), cost: z.number().positive() }).safeParse(usage).success);
});

test('the stream helper of the client gathers the whole answer', async () => {
  const runner = client('anonymous', '192.0.21.1').chat.completions.stream({ model: 'alpha-v4-flash', messages });
  assert.ok((await runner.finalContent())?.startsWith(demoNotice));
});

test('images, tools and a schema for the answer are taken', async () => {
  const answer = await client('anonymous', '192.0.22.1').chat.completions.create({
    model: 'alpha-v4-flash',
    max_completion_tokens: 20,
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'What is this?' },
          { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } },
        ],
      },
    ],
    tools: [{ type: 'function', function: { name: 'look', parameters: { type: 'object', properties: {} } } }],
    response_format: { type: 'json_schema', json_schema: { name: 'answer', schema: { type: 'object' } } },
  });
  assert.equal(answer.object, 'chat.completion');
});

test('embeddings come as numbers, for texts and for tokens, although the client asks for base64', async () => {
  const openai = client('anonymous', '192.0.23.1');
  for (const [input, count] of [
    ['Hello', 1],
    [['a', 'b'], 2],
    [[1, 2, 3], 1],
    [[[1, 2], [3]], 2],
  ] as const) {
    const { data, response } = await openai.embeddings
      .create({ model: 'embed-small', input: input as string })
      .withResponse();
    assert.equal(data.data.length, count);
    for (const { embedding } of data.data) assert.deepEqual([...embedding], [1, 0, 0]);
    assert.match(response.headers.get('x-cost-usd') ?? '', /^0\.0+\d+$/);
  }
});

test('the models are listed, and one is found by its name', async () => {
  const openai = client('anonymous');
  const ids: string[] = [];
  for await (const { id } of openai.models.list()) ids.push(id);
  assert.deepEqual(ids, [...sample.catalog.ids, 'embed-small']);
  assert.equal((await openai.models.retrieve('gamma5.2')).id, 'gamma5.2');
  await assert.rejects(openai.models.retrieve('gpt'), (error: unknown) => {
    assert.ok(error instanceof OpenAI.NotFoundError);
    assert.equal(error.code, 'model-unknown');
    return true;
  });
});

interface Refusal {
  readonly name: string;
  readonly call: () => Promise<unknown>;
  readonly status: number;
  readonly code: string;
  readonly type: string;
  readonly param?: string;
  readonly says: RegExp;
}

const chat = (apiKey: string, body: object, address?: string): Promise<unknown> =>
  Promise.resolve(
    client(apiKey, address).chat.completions.create({ model: 'beta-K3', messages, stream: false, ...body }),
  );

const refusals: readonly Refusal[] = [
  {
    name: 'a key that the router does not know',
    call: () => chat('sk-unknown-12345678', {}),
    status: 401,
    code: 'key-refused',
    type: 'authentication_error',
    says: /does not know this API key/,
  },
  {
    name: 'a premium model without a key',
    call: () => chat('anonymous', { model: 'zeta-fable-5' }),
    status: 401,
    code: 'key-required',
    type: 'authentication_error',
    says: /requires your own API key/,
  },
  {
    name: 'a model that is not there',
    call: () => chat('anonymous', { model: 'gpt-4o' }),
    status: 404,
    code: 'model-unknown',
    type: 'not_found_error',
    says: /There is no model "gpt-4o"\. GET \/v1\/models lists all models\./,
  },
  {
    name: 'a body without messages',
    call: () => chat('anonymous', { messages: undefined }),
    status: 400,
    code: 'invalid-request',
    type: 'invalid_request_error',
    param: 'messages',
    says: /is missing/,
  },
  {
    name: 'sound, which has no upper limit',
    call: () =>
      chat('anonymous', {
        messages: [{ role: 'user', content: [{ type: 'input_audio', input_audio: { data: '' } }] }],
      }),
    status: 400,
    code: 'invalid-request',
    type: 'invalid_request_error',
    param: 'messages.0.content.0.type',
    says: /no upper limit/,
  },
  {
    name: 'more than the free quota covers',
    call: () => chat('anonymous', { max_tokens: 16_384 }, '192.0.30.1'),
    status: 402,
    code: 'quota-exhausted',
    type: 'insufficient_quota',
    says: /your own API key for the model router: Authorization: Bearer sk-…$/,
  },
  {
    name: 'a path that is not there',
    call: () => Promise.resolve(client('anonymous').responses.create({ model: 'beta-K3', input: 'Hello' })),
    status: 404,
    code: 'not-found',
    type: 'not_found_error',
    says: /There is nothing at \/v1\/responses/,
  },
];

for (const { name, call, status, code, type, param = null, says } of refusals)
  test(`the client understands the refusal of ${name}`, async () => {
    await assert.rejects(call(), (error: unknown) => {
      assert.ok(error instanceof OpenAI.APIError);
      assert.deepEqual([error.status, error.code, error.type, error.param], [status, code, type, param]);
      assert.match(error.message, says);
      assert.match(error.requestID ?? '', /^[0-9a-f-]{36}$/);
      return true;
    });
  });

test('a refusal has the members of our problems beside the error', async () => {
  const answer = await fetch(`${baseURL}/chat/completions`, {
    method: 'POST',
    body: '{',
    headers: { 'content-type': 'application/json' },
  });
  const body = z
    .strictObject({
      type: z.literal('https://moorage.test/problems/invalid-request'),
      title: z.string(),
      status: z.literal(400),
      detail: z.string(),
      instance: z.literal('/v1/chat/completions'),
      request_id: z.string(),
      errors: z.array(z.unknown()),
      error: z.strictObject({ message: z.string(), type: z.string(), code: z.string(), param: z.string() }),
    })
    .parse(await answer.json());
  assert.equal(body.error.message, body.detail);
});

test('what the free quota paid is in the ledger to the digit', async () => {
  const sums = {
    name: 'test-sums',
    text: 'select u.cost::text as used, e.amount::text as booked from ledger.usage u join ledger.hold h on h.id::text = u.id join ledger.entry e on e.transaction_id = h.transaction_id and e.line = 1',
    row: z.object({ used: z.string(), booked: z.string() }),
  };
  const rows = await sample.database.query(sums, []);
  assert.ok(rows.length >= 10);
  assert.equal(
    sumMoney(rows.map(({ used: one }) => parseMoney(one))),
    sumMoney(rows.map(({ booked }) => parseMoney(booked))),
  );
  assert.deepEqual(await sample.ledger.audit(), []);
});
