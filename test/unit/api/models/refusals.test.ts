// Bad requests for models, field by field: status, problem, and nothing booked.
import assert from 'node:assert/strict';
import { Registry } from 'prom-client';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { createRequestListener } from '../../../../api/http/application.ts';
import { createBlockList } from '../../../../lib/subnets.ts';
import { readModelSettings } from '../../../../api/models/config.ts';
import { startModels } from '../../../../api/models/start.ts';
import { startDemoRouter, type DemoRouter } from '../../../../api/models/router/demo-router.ts';
import { readCatalog } from '../../../../api/models/catalog.ts';
import { createHttpMetrics } from '../../../../lib/telemetry.ts';
import { problemMediaType } from '../../../../lib/problem.ts';
import { baseUrl, silent } from '../../../support/api/sample.ts';
import { json, sampleModels, type Sample } from '../../../support/models/sample.ts';
import { send } from '../../../support/api/send.ts';

let router: DemoRouter;
let sample: Sample;
beforeAll(async () => {
  router = await startDemoRouter(readCatalog());
  sample = await sampleModels({
    environment: {
      MOORAGE_ROUTER_URL: router.url,
      MOORAGE_FREE_QUOTA_USD: '0.001',
      MOORAGE_MAX_TOKENS: '4096',
      MOORAGE_USUAL_TOKENS: '100',
    },
  });
});
afterAll(async () => {
  await sample.stop();
  await router.close();
});

const problem = z.looseObject({
  type: z.string(),
  title: z.string(),
  status: z.int(),
  detail: z.string(),
  request_id: z.string(),
  errors: z.array(z.looseObject({ field: z.string(), message: z.string().min(1), fix: z.string().min(1) })).optional(),
});
const holds = {
  name: 'test-holds',
  text: 'select count(*)::int as count from ledger.hold',
  row: z.object({ count: z.int() }),
};

interface Case {
  readonly name: string;
  readonly path?: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly status: number;
  readonly type: string;
  readonly fields?: readonly string[];
  readonly says?: RegExp;
}

const prompt = 'Hello';
const bad = (name: string, body: unknown, fields: readonly string[], says?: RegExp): Case => ({
  name,
  body,
  status: 400,
  type: 'invalid-request',
  fields,
  ...(says === undefined ? {} : { says }),
});
const bearer = (token: string): Record<string, string> => ({ authorization: token });

/** Each field wrong in each way. */
const common: readonly Case[] = [
  bad('body not JSON', 'prompt=Hello', [''], /not valid JSON/),
  bad('body cut off', '{"prompt": "He', [''], /not valid JSON/),
  bad('body empty', '', [''], /empty/),
  bad('body an array', [], ['']),
  bad('body null', 'null', ['']),
  bad('body text', '"Hello"', ['']),
  {
    name: 'body of another type',
    body: { prompt },
    headers: { 'content-type': 'text/plain' },
    status: 415,
    type: 'unsupported-media-type',
  },
  bad('prompt missing', {}, ['prompt'], /is missing/),
  bad('prompt null', { prompt: null }, ['prompt'], /must be a string/),
  bad('prompt a number', { prompt: 7 }, ['prompt'], /must be a string/),
  bad('prompt an array', { prompt: ['Hello'] }, ['prompt']),
  bad('prompt an object', { prompt: {} }, ['prompt']),
  bad('prompt empty', { prompt: '' }, ['prompt', 'prompt'], /at least 1 character long/),
  bad('prompt blank', { prompt: ' \n' }, ['prompt'], /blank/),
  bad('prompt oversized', { prompt: 'x'.repeat(200_001) }, ['prompt'], /at most 200000 characters/),
  { name: 'body oversized', body: { prompt: 'x'.repeat(4_600_000) }, status: 413, type: 'body-too-large' },
  bad('system a number', { prompt, system: 7 }, ['system']),
  bad('system null', { prompt, system: null }, ['system']),
  bad('system oversized', { prompt, system: 'x'.repeat(200_001) }, ['system']),
  bad('max_tokens 0', { prompt, max_tokens: 0 }, ['max_tokens']),
  bad('max_tokens negative', { prompt, max_tokens: -1 }, ['max_tokens']),
  bad('max_tokens a fraction', { prompt, max_tokens: 1.5 }, ['max_tokens'], /whole number/),
  bad('max_tokens text', { prompt, max_tokens: '10' }, ['max_tokens']),
  bad('max_tokens too many', { prompt, max_tokens: 4097 }, ['max_tokens']),
  bad('max_tokens null', { prompt, max_tokens: null }, ['max_tokens']),
  bad('unknown field', { prompt, temprature: 1 }, ['temprature'], /is not known/),
  bad('prototype field', '{"prompt": "Hello", "__proto__": {"model": "x"}}', ['__proto__'], /is not known/),
  {
    name: 'key malformed',
    body: { prompt },
    headers: bearer('Bearer nonsense'),
    status: 401,
    type: 'key-refused',
    says: /begin with sk-/,
  },
  {
    name: 'key with a blank',
    body: { prompt },
    headers: bearer('Bearer sk-demo 123456789'),
    status: 401,
    type: 'key-refused',
  },
  { name: 'key too short', body: { prompt }, headers: bearer('Bearer sk-'), status: 401, type: 'key-refused' },
  { name: 'key empty', body: { prompt }, headers: bearer('Bearer '), status: 401, type: 'key-refused' },
  { name: 'other scheme', body: { prompt }, headers: bearer('Basic c2stZGVtbw=='), status: 401, type: 'key-refused' },
  {
    name: 'key that the router does not know',
    body: { prompt },
    headers: bearer('Bearer sk-revoked-12345678'),
    status: 401,
    type: 'key-refused',
    says: /does not know this API key, or has revoked it/,
  },
  {
    name: 'idempotency key oversized',
    body: { prompt },
    headers: { 'idempotency-key': 'x'.repeat(256) },
    status: 400,
    type: 'invalid-request',
    fields: ['Idempotency-Key'],
  },
  {
    name: 'idempotency key with blanks',
    body: { prompt },
    headers: { 'idempotency-key': 'a b' },
    status: 400,
    type: 'invalid-request',
    fields: ['Idempotency-Key'],
  },
];

const ofAsk: readonly Case[] = [
  bad('model unknown [spec ask.model]', { prompt, model: 'gpt' }, ['model'], /alpha-v4-flash/),
  bad('model an array', { prompt, model: ['beta-K3'] }, ['model']),
  bad('model null', { prompt, model: null }, ['model']),
  bad('model empty', { prompt, model: '' }, ['model']),
  bad('stream text', { prompt, stream: 'yes' }, ['stream']),
  {
    name: 'premium without key [spec auth.premium]',
    body: { prompt, model: 'zeta-opus-4-8' },
    status: 401,
    type: 'key-required',
    says: /zeta-opus-4-8 requires your own API key/,
  },
  {
    name: 'more than the quota',
    body: { prompt, max_tokens: 4096 },
    status: 402,
    type: 'quota-exhausted',
    says: /can cost up to \$0\.00115395\. You have \$0\.001 of your \$0\.001 daily quota left; it resets at 00:00 UTC\. .*own API key.*Authorization: Bearer/,
  },
  {
    name: 'more than the quota, streamed',
    body: { prompt, max_tokens: 4096, stream: true },
    status: 402,
    type: 'quota-exhausted',
  },
  {
    name: 'key in the query',
    path: '/api/ask?api_key=abc',
    body: { prompt },
    status: 400,
    type: 'key-in-query',
    says: /api_key.*Authorization: Bearer/,
  },
  {
    name: 'key in any field of the query',
    path: '/api/ask?s=sk-demo-9f8e1d2c3b4a59687786',
    body: { prompt },
    status: 400,
    type: 'key-in-query',
  },
  { name: 'image wanted', body: { prompt }, headers: { accept: 'image/png' }, status: 406, type: 'not-acceptable' },
];

const ofCompare: readonly Case[] = [
  bad(
    '6 models [spec compare.at-most-5]',
    {
      prompt,
      models: ['alpha-v4-flash', 'beta-K3', 'beta-K3-codex', 'gamma5.2', 'delta-5.6-luna', 'epsilon-3.5-flash'],
    },
    ['models'],
    /at most 5 models/,
  ),
  bad('models text', { prompt, models: 'beta-K3' }, ['models', 'models'], /must be a list/),
  bad('models null', { prompt, models: null }, ['models']),
  bad('a model unknown', { prompt, models: ['beta-K3', 'gpt'] }, ['models.1']),
  bad('a model a number', { prompt, models: [7] }, ['models.0']),
  bad('stream text', { prompt, stream: 'yes' }, ['stream'], /must be true or false/),
  {
    name: 'premium without key',
    body: { prompt, models: ['beta-K3', 'zeta-fable-5', 'delta-5.5'] },
    status: 401,
    type: 'key-required',
    says: /zeta-fable-5, delta-5\.5 require your own API key/,
  },
  {
    name: 'more than the quota [spec endpoint.compare]',
    body: { prompt, models: ['beta-K3', 'gamma5.2'], max_tokens: 4096 },
    status: 402,
    type: 'quota-exhausted',
  },
];

for (const [path, cases] of [
  ['/api/ask', [...common, ...ofAsk]],
  ['/api/compare', [...common, ...ofCompare]],
] as const) {
  for (const { name, path: other = path, body, headers, status, type, fields, says } of cases) {
    test(`${path}: ${name}`, async () => {
      const answer = await sample.request(other, json(body, headers));
      const text = await answer.text();
      assert.equal(answer.status, status, text);
      assert.equal(answer.headers.get('content-type'), problemMediaType);
      const reported = problem.parse(JSON.parse(text));
      assert.equal(reported.type, `https://moorage.test/problems/${type}`);
      if (fields !== undefined)
        assert.deepEqual(
          reported.errors?.map(({ field }) => field),
          fields,
        );
      if (says !== undefined)
        assert.match(
          [reported.detail, ...(reported.errors ?? []).map(({ message, fix }) => `${message} ${fix}`)].join('\n'),
          says,
        );
      assert.doesNotMatch(text, /sk-(demo|revoked)-12345678/);
      assert.deepEqual(await sample.database.query(holds, []), [{ count: 0 }]);
    });
  }
}

test('402 reports the limit, what is used, when it resets, and how to continue [spec errors.402 service.free-quota auth.anonymous]', async () => {
  const answer = await sample.request('/api/ask', json({ prompt, max_tokens: 4096 }));
  const shape = z.looseObject({
    quota: z.strictObject({
      scope: z.literal('caller'),
      currency: z.literal('USD'),
      limit: z.literal('0.001'),
      used: z.literal('0'),
      reserved: z.literal('0'),
      remaining: z.literal('0.001'),
      resets_at: z.iso.datetime(),
    }),
    actions: z.array(z.looseObject({ action: z.string(), description: z.string() })),
  });
  const { quota, actions } = shape.parse(await answer.json());
  assert.deepEqual(
    actions.map(({ action }) => action),
    ['use-own-key', 'shorten', 'wait'],
  );
  assert.equal(new Date(quota.resets_at).toISOString().slice(11), '00:00:00.000Z');
  assert.equal(answer.headers.get('ratelimit-policy'), '"free-day";q=1000;w=86400;qu="micro-usd"');
  assert.match(answer.headers.get('ratelimit') ?? '', /^"free-day";r=1000;t=\d+$/);
  assert.match(answer.headers.get('retry-after') ?? '', /^\d+$/);
});

test('without a router or a database, a 503 names which setting is missing', async () => {
  for (const [environment, says] of [
    [{}, /MOORAGE_ROUTER_URL.*--demo-router/],
    [{ MOORAGE_ROUTER_URL: router.url }, /DATABASE_URL/],
  ] as const) {
    const models = startModels({
      settings: readModelSettings(environment),
      callerSalt: 'salt',
      baseUrl,
      registry: new Registry(),
      log: silent,
      findApp: () => undefined,
    });
    await models.ready;
    const app = createRequestListener({
      endpoints: models.endpoints,
      baseUrl,
      callers: { salt: 'salt', trustedProxies: createBlockList([]) },
      log: silent,
      metrics: createHttpMetrics(new Registry()),
      ending: new AbortController().signal,
    });
    const answer = await send(app, '/api/ask', json({ prompt }));
    assert.equal(answer.status, 503);
    assert.match(problem.parse(await answer.json()).detail, says);
    assert.equal((await send(app, '/api/models')).status, 200);
    await models.stop();
  }
});
