// What a caller and a hosted app get when all goes well: answers, headers, keys, repeats, streams, /v1, metrics.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { toAppAccount } from '../../../../api/billing/ledger/accounts.ts';
import { toDollarNumber } from '../../../../api/billing/ledger/money.ts';
import { readCatalog } from '../../../../api/models/catalog.ts';
import { demoNotice, startDemoRouter, type DemoRouter } from '../../../../api/models/router/demo-router.ts';
import { createAppToken } from '../../../../lib/app-tokens.ts';
import { appTokenSecret, json, sampleModels, type Sample } from '../../../support/models/sample.ts';

const app = { name: 'chat', uid: 'uid-1', enabled: true, dailyBudgetUsd: '0.02' };
const poor = { name: 'poor', uid: 'uid-2', enabled: true, dailyBudgetUsd: '0.0001' };
const off = { name: 'off', uid: 'uid-3', enabled: false, dailyBudgetUsd: '1' };
const bearer = (one: { name: string; uid: string }): Record<string, string> => ({
  authorization: `Bearer ${createAppToken(one, appTokenSecret)}`,
});
const ownKey = { authorization: 'Bearer sk-demo-12345678' };

let router: DemoRouter;
let sample: Sample;
beforeAll(async () => {
  router = await startDemoRouter(readCatalog());
  sample = await sampleModels({
    environment: { MOORAGE_ROUTER_URL: router.url, MOORAGE_FREE_QUOTA_USD: '0.01' },
    apps: [app, poor, off],
  });
});
afterAll(async () => {
  await sample.stop();
  await router.close();
});

const asked = z.strictObject({
  model: z.string(),
  answer: z.string(),
  cost_usd: z.number().positive(),
  charged_usd: z.literal(0),
  cost_source: z.literal('billed'),
  latency_ms: z.int().min(0),
  tokens_in: z.int(),
  tokens_out: z.int(),
  finish_reason: z.string(),
  request_id: z.string(),
  hint: z.string().optional(),
});
const from = (address: string): Record<string, string> => ({ 'x-forwarded-for': address });

test('ask answers with model, cost, source, latency, tokens and request id [spec service.metered ask.prompt ask.default-model ask.answer endpoint.ask]', async () => {
  const answer = await sample.request('/api/ask', json({ prompt: 'Hello', system: 'Be brief.' }, from('192.0.2.1')));
  const body = asked.parse(await answer.json());
  assert.equal(body.model, 'alpha-v4-flash');
  assert.ok(body.answer.startsWith(demoNotice));
  assert.equal(body.request_id, answer.headers.get('x-request-id'));
  assert.equal(body.hint, undefined);
  assert.equal(answer.headers.get('ratelimit-policy'), '"free-day";q=10000;w=86400;qu="micro-usd"');
  assert.match(answer.headers.get('ratelimit') ?? '', /^"free-day";r=99\d\d;t=\d+$/);
});

test('a low quota is stated in the answer and in a header, with how to continue', async () => {
  let hint: string | undefined;
  let header: string | null = null;
  for (let calls = 0; hint === undefined; calls += 1) {
    const answer = await sample.request(
      '/api/ask',
      json({ prompt: 'x'.repeat(1_000), model: 'beta-K3', max_tokens: 100 }, from('192.0.100.1')),
    );
    hint = asked.parse(await answer.json()).hint;
    header = answer.headers.get('x-quota-hint');
  }
  assert.equal(header, hint.replace('…', '...'));
  assert.match(
    hint,
    /^You have \$0\.00\d+ of your \$0\.01 daily quota left; it resets at 00:00 UTC\. .*own API key.*Authorization: Bearer sk-…$/,
  );
});

test('with a key of one’s own, premium models answer, without a quota, and the key is nowhere in the ledger [spec auth.key auth.premium auth.optional]', async () => {
  const answer = await sample.request('/api/ask', json({ prompt: 'Hello', model: 'zeta-fable-5' }, ownKey));
  assert.equal(asked.parse(await answer.json()).model, 'zeta-fable-5');
  assert.equal(answer.headers.get('ratelimit'), null);
  const spread = await sample.request('/api/compare', json({ prompt: 'Hello', max_tokens: 40 }, ownKey));
  const { results } = z
    .looseObject({ results: z.array(z.looseObject({ model: z.string() })) })
    .parse(await spread.json());
  assert.deepEqual(
    results.map(({ model }) => model).filter((model) => sample.catalog.byId.get(model)?.tier === 'premium'),
    ['zeta-fable-5'],
  );
  const owners = await sample.database.query(
    { name: 'test-owners', text: 'select owner from ledger.account', row: z.object({ owner: z.string() }) },
    [],
  );
  assert.ok(owners.length > 0);
  for (const { owner } of owners) assert.doesNotMatch(owner, /sk-|192\.0/);
});

test('the same request with the same Idempotency-Key is answered once, paid once, and given again', async () => {
  const headers = { ...from('192.0.3.1'), 'idempotency-key': crypto.randomUUID() };
  const first = await sample.request('/api/ask', json({ prompt: 'Hello' }, headers));
  const again = await sample.request('/api/ask', json({ prompt: 'Hello' }, headers));
  assert.deepEqual(await again.json(), await first.json());
  assert.deepEqual(
    [first.headers.get('idempotent-replayed'), again.headers.get('idempotent-replayed')],
    [null, 'true'],
  );
  const streamed = await sample.request(
    '/api/ask',
    json({ prompt: 'Hello', stream: true }, { ...from('192.0.3.1'), 'idempotency-key': crypto.randomUUID() }),
  );
  assert.match(await streamed.text(), /^event: delta\ndata: .*\n\nevent: done\ndata: .*\n\n$/);
  const other = await sample.request('/api/ask', json({ prompt: 'Bye' }, headers));
  assert.deepEqual(
    [other.status, z.looseObject({ type: z.string() }).parse(await other.json()).type],
    [422, 'https://moorage.test/problems/idempotency-mismatch'],
  );
  // Another caller's key of the same name is another key.
  assert.equal(
    (await sample.request('/api/ask', json({ prompt: 'Bye' }, { ...headers, ...from('192.0.4.1') }))).status,
    200,
  );
});

test('two requests at once with one Idempotency-Key are one call', async () => {
  const count = {
    name: 'test-count',
    text: 'select count(*)::int as count from ledger.hold',
    row: z.object({ count: z.int() }),
  };
  const before = (await sample.database.query(count, []))[0]?.count ?? 0;
  const key = crypto.randomUUID();
  const send = (): Promise<Response> =>
    sample.request(
      '/api/compare',
      json({ prompt: 'Hello', models: ['beta-K3'], max_tokens: 30 }, { ...from('192.0.5.1'), 'idempotency-key': key }),
    );
  const statuses = (await Promise.all([send(), send(), send()])).map(({ status }) => status).sort();
  assert.ok(
    statuses.every((status) => status === 200 || status === 409),
    statuses.join(),
  );
  assert.equal((await sample.database.query(count, []))[0]?.count, before + 1);
  assert.equal((await send()).headers.get('idempotent-replayed'), 'true');
});

test('a stream comes in pieces, with the cost in its last event', async () => {
  const answer = await sample.request('/api/ask', json({ prompt: 'Hello', stream: true }, from('192.0.6.1')));
  const frames = (await answer.text())
    .trimEnd()
    .split('\n\n')
    .map((frame) => ({
      event: /^event: (.*)$/m.exec(frame)?.[1],
      data: JSON.parse(/^data: (.*)$/m.exec(frame)?.[1] ?? '') as unknown,
    }));
  assert.ok(frames.length > 5);
  assert.ok(frames.slice(0, -1).every(({ event }) => event === 'delta'));
  const text = frames
    .slice(0, -1)
    .map(({ data }) => z.object({ text: z.string() }).parse(data).text)
    .join('');
  assert.ok(text.startsWith(demoNotice));
  assert.equal(frames.at(-1)?.event, 'done');
  asked.omit({ answer: true }).parse(frames.at(-1)?.data);
});

const completion = z.looseObject({
  model: z.string(),
  choices: z.array(z.looseObject({ message: z.looseObject({ content: z.string() }) })),
  usage: z.looseObject({ prompt_tokens: z.int(), cost: z.number() }),
});
const messages = [{ role: 'user', content: 'Hello' }];

test('/v1: chat completions, streams and embeddings are booked to the app, to the digit', async () => {
  const before = await sample.ledger.balance(toAppAccount('chat'));
  const whole = completion.parse(
    await (
      await sample.requestOfApps('/v1/chat/completions', json({ model: 'beta-K3', messages }, bearer(app)))
    ).json(),
  );
  assert.equal(whole.model, 'beta-K3');
  const streamed = await (
    await sample.requestOfApps(
      '/v1/chat/completions',
      json({ model: 'beta-K3', messages, stream: true, stream_options: { include_usage: true } }, bearer(app)),
    )
  ).text();
  assert.ok(streamed.endsWith('data: [DONE]\n\n'));
  const chunks = streamed
    .split('\n\n')
    .filter((frame) => frame.startsWith('data: {'))
    .map((frame) =>
      z
        .looseObject({ model: z.literal('beta-K3'), usage: z.looseObject({ cost: z.number() }).optional() })
        .parse(JSON.parse(frame.slice(6))),
    );
  const bare = await (
    await sample.requestOfApps(
      '/v1/chat/completions',
      json({ model: 'beta-K3', messages, stream: true, max_tokens: 30 }, bearer(app)),
    )
  ).text();
  assert.doesNotMatch(bare, /"usage"|"choices":\[\]/);
  const vectors = z
    .looseObject({ data: z.array(z.unknown()).length(2), usage: z.looseObject({ cost: z.number() }) })
    .parse(
      await (
        await sample.requestOfApps('/v1/embeddings', json({ model: 'embed-small', input: ['a', 'b'] }, bearer(app)))
      ).json(),
    );
  const reported = whole.usage.cost + (chunks.at(-1)?.usage?.cost ?? Number.NaN) * 2 + vectors.usage.cost;
  assert.equal(
    toDollarNumber(await sample.ledger.balance(toAppAccount('chat'))) - toDollarNumber(before),
    Number(reported.toFixed(12)),
  );
  const models = z
    .looseObject({ data: z.array(z.looseObject({ id: z.string() })) })
    .parse(await (await sample.requestOfApps('/v1/models', { headers: bearer(app) })).json());
  assert.deepEqual(
    models.data.map(({ id }) => id),
    [...sample.catalog.ids, 'embed-small'],
  );
});

for (const { name, headers, body, status, type } of [
  {
    name: 'something that is neither a key nor a token',
    headers: { authorization: 'Bearer moorage' },
    body: { model: 'beta-K3', messages },
    status: 401,
    type: 'key-refused',
  },
  {
    name: 'a premium model without a key',
    headers: {},
    body: { model: 'zeta-fable-5', messages },
    status: 401,
    type: 'key-required',
  },
  {
    name: 'a film in place of an image',
    headers: {},
    body: {
      model: 'beta-K3',
      messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://a.example/a.mp4' } }] }],
    },
    status: 400,
    type: 'invalid-request',
  },
  {
    name: 'the token of an earlier app of that name',
    headers: bearer({ name: 'chat', uid: 'uid-0' }),
    body: { model: 'beta-K3', messages },
    status: 401,
    type: 'app-token-refused',
  },
  {
    name: 'models not enabled',
    headers: bearer(off),
    body: { model: 'beta-K3', messages },
    status: 401,
    type: 'app-token-refused',
  },
  {
    name: 'the budget of the app used up',
    headers: bearer(poor),
    body: { model: 'beta-K3', messages },
    status: 402,
    type: 'quota-exhausted',
  },
  {
    name: 'an unknown model',
    headers: bearer(app),
    body: { model: 'gpt', messages },
    status: 404,
    type: 'model-unknown',
  },
  {
    name: 'sound, whose cost has no bound',
    headers: bearer(app),
    body: { model: 'beta-K3', messages: [{ role: 'user', content: [{ type: 'input_audio', input_audio: {} }] }] },
    status: 400,
    type: 'invalid-request',
  },
]) {
  test(`/v1 refuses ${name}, in the form that OpenAI clients read too`, async () => {
    const isApp = /^Bearer moorage-/.test(new Headers(headers).get('authorization') ?? '');
    const send = isApp ? sample.requestOfApps : sample.request;
    const answer = await send('/v1/chat/completions', json(body, headers));
    const reported = z
      .looseObject({
        type: z.string(),
        error: z.object({
          message: z.string(),
          type: z.literal(
            {
              400: 'invalid_request_error',
              401: 'authentication_error',
              402: 'insufficient_quota',
              404: 'not_found_error',
            }[status] ?? '',
          ),
          code: z.literal(type),
          param: z.string().nullable(),
        }),
      })
      .parse(await answer.json());
    assert.deepEqual([answer.status, reported.type], [status, `https://moorage.test/problems/${type}`]);
  });
}

test('the token of a hosted app opens nothing at the public address', async () => {
  const before = await sample.ledger.balance(toAppAccount('chat'));
  for (const [path, init] of [
    ['/v1/chat/completions', json({ model: 'beta-K3', messages }, bearer(app))],
    ['/v1/embeddings', json({ model: 'embed-small', input: 'a' }, bearer(app))],
    ['/v1/models', { headers: bearer(app) }],
  ] as const) {
    const answer = await sample.request(path, init);
    assert.equal(answer.status, 401, path);
    assert.match(await answer.text(), /app-token-refused.*works only inside the cluster/);
  }
  assert.equal(await sample.ledger.balance(toAppAccount('chat')), before);
});

test('the port of hosted apps takes their tokens and nothing else: an address there may be anybody’s word', async () => {
  for (const headers of [{}, ownKey, { authorization: 'Bearer anonymous' }]) {
    const answer = await sample.requestOfApps('/v1/chat/completions', json({ model: 'beta-K3', messages }, headers));
    const { type, error } = z
      .looseObject({ type: z.string(), error: z.looseObject({ code: z.string() }) })
      .parse(await answer.json());
    assert.deepEqual(
      [answer.status, type, error.code],
      [401, 'https://moorage.test/problems/app-token-refused', 'app-token-refused'],
    );
  }
  const answer = await sample.requestOfApps('/v1/models', { headers: bearer(app) });
  assert.equal(answer.status, 200);
  assert.equal((await sample.requestOfApps('/api/models')).status, 404);
});

test('metrics count by model, kind of caller and outcome, and by nothing that a caller can make up', async () => {
  const text = await sample.registry.metrics();
  const labels = (name: string): string[] =>
    text
      .split('\n')
      .filter((line) => line.startsWith(`${name}{`))
      .map((line) => /\{(.*)\}/.exec(line)?.[1] ?? '');
  assert.ok(labels('moorage_model_calls_total').includes('model="zeta-fable-5",caller="key",outcome="answered"'));
  assert.ok(labels('moorage_model_cost_usd_total').includes('model="beta-K3",caller="app"'));
  assert.ok(labels('moorage_quota_refusals_total').includes('caller="app",quota="caller"'));
  assert.match(text, /^moorage_ledger_holds\{state="open"\} 0$/m);
  const known = new Set([...sample.catalog.ids, 'embed-small']);
  for (const label of labels('moorage_model_calls_total'))
    assert.ok(known.has(/model="([^"]*)"/.exec(label)?.[1] ?? ''), label);
  assert.deepEqual(await sample.ledger.audit(), []);
});
