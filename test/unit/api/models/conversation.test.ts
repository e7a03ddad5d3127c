// What ask and compare take beside a prompt: messages, images and options, as routers get them, what is reserved for them, and what is refused by name.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { toDollarNumber, parseMoney, computePrice } from '../../../../api/billing/ledger/money.ts';
import { maxImageTokens } from '../../../../api/billing/prices.ts';
import { readCatalog } from '../../../../api/models/catalog.ts';
import { liteLlm } from '../../../../api/models/router/litellm.ts';
import { json, sampleModels, type Sample } from '../../../support/models/sample.ts';
import {
  completion,
  delta,
  reply,
  startScriptedRouter,
  stream,
  usageEvent,
  type Script,
  type ScriptedRouter,
} from '../../../support/models/scripted-router.ts';

const usage = '{"prompt_tokens":3,"completion_tokens":1,"cost":0.000001}';
const whole = reply(200, completion(usage));
const streamed = stream(delta('Hel'), delta('lo', 'stop'), usageEvent(usage), '[DONE]');
const streamedOrWhole: Script = (response, asked, closed) => {
  const wanted = z.looseObject({ stream: z.boolean().optional() }).parse(JSON.parse(asked.body));
  return (wanted.stream === true ? streamed : whole)(response, asked, closed);
};

let router: ScriptedRouter;
let sample: Sample;
/** With a quota for nearly nothing, so that a refusal says what was to be reserved. */
let poor: Sample;
beforeAll(async () => {
  const { models } = readCatalog();
  router = await startScriptedRouter({
    ...Object.fromEntries(models.map(({ upstream }) => [upstream, streamedOrWhole])),
    'gamma/gamma-5.2': reply(400, '{"error":{"message":"too long"}}'),
  });
  const environment = { MOORAGE_ROUTER_URL: router.url };
  sample = await sampleModels({ environment: { ...environment, MOORAGE_FREE_QUOTA_USD: '1' } });
  poor = await sampleModels({ environment: { ...environment, MOORAGE_FREE_QUOTA_USD: '0.000001' } });
});
afterAll(async () => {
  await sample.stop();
  await poor.stop();
  await router.close();
});

const from = (address: string): Record<string, string> => ({ 'x-forwarded-for': address });
const pixel =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const said = { role: 'user', content: 'Hello' };

/** The last call of a model. The API also asks the router, without a body, how its key is limited. */
async function lastSent(): Promise<Record<string, unknown>> {
  const last = router.asked.findLast(({ body }) => body !== '');
  return Promise.resolve(z.record(z.string(), z.unknown()).parse(JSON.parse(last?.body ?? '')));
}

test('messages, images and options reach the router as they were sent', async () => {
  const messages = [
    { role: 'system', content: 'Be brief.' },
    {
      role: 'user',
      content: [
        { type: 'text', text: 'What is this?' },
        { type: 'image_url', image_url: { url: pixel } },
      ],
    },
    { role: 'assistant', content: 'A dot.' },
    {
      role: 'user',
      content: [{ type: 'image_url', image_url: { url: 'https://example.org/cat.jpg?size=1', detail: 'low' } }],
    },
  ];
  const options = {
    temperature: 0.2,
    top_p: 0.9,
    stop: ['END'],
    response_format: { type: 'json_schema', json_schema: { name: 'dot', schema: { type: 'object' }, strict: true } },
    reasoning: { effort: 'low' },
  };
  const answer = await sample.request('/api/ask', json({ messages, ...options, max_tokens: 9 }));
  assert.equal(answer.status, 200, await answer.clone().text());
  const { model, max_tokens, usage: _usage, ...sent } = await lastSent();
  assert.deepEqual([model, max_tokens], ['alpha/alpha-v4-flash', 9]);
  assert.deepEqual(sent, { messages, ...options });

  await sample.request('/api/compare', json({ messages: [said], system: 'Be kind.', stop: 'x', models: ['beta-K3'] }));
  const { messages: put, stop } = await lastSent();
  assert.deepEqual([put, stop], [[{ role: 'system', content: 'Be kind.' }, said], 'x']);
});

test('LiteLLM gets reasoning under the name that it translates for each provider', () => {
  assert.deepEqual(liteLlm.dialect({ model: 'a', reasoning: { effort: 'high', max_tokens: 5 } }), {
    model: 'a',
    reasoning_effort: 'high',
  });
  assert.deepEqual(liteLlm.dialect({ model: 'a' }), { model: 'a' });
});

test('what is reserved covers each image at the most that a model bills for one, and the schema, but not the bytes of an image', async () => {
  const held = async (body: object): Promise<number> => {
    const answer = await poor.request('/api/ask', json({ model: 'beta-K3', max_tokens: 10, ...body }));
    return Number(/up to \$([0-9.]+[0-9])/.exec(await answer.text())?.[1] ?? Number.NaN);
  };
  const image = { type: 'image_url', image_url: { url: 'https://example.org/a.png' } };
  const filled = (content: unknown[]): object => ({
    messages: [{ role: 'user', content: [{ type: 'text', text: 'a' }, ...content] }],
  });
  const bare = await held(filled([]));
  const one = await held(filled([image]));
  assert.equal(Number((one - bare).toFixed(12)), toDollarNumber(computePrice(maxImageTokens, parseMoney('0.60'))));
  // A picture of some hundred bytes costs no more than one by its address.
  assert.equal(await held(filled([{ type: 'image_url', image_url: { url: pixel } }])), one);
  const schema = { type: 'json_schema', json_schema: { name: 'a', schema: { title: 'y'.repeat(10_000) } } };
  assert.ok(
    (await held({ ...filled([]), response_format: schema })) - bare >=
      toDollarNumber(computePrice(10_000, parseMoney('0.60'))),
  );
});

const problem = z.looseObject({
  type: z.string(),
  detail: z.string(),
  errors: z.array(z.looseObject({ field: z.string(), message: z.string() })),
});

for (const [name, body, field, message] of [
  ['both a prompt and messages', { prompt: 'Hello', messages: [said] }, 'messages', /together with prompt/],
  ['neither', { max_tokens: 9 }, 'prompt', /is missing: send prompt, or messages/],
  ['no message', { messages: [] }, 'messages', /at least 1 item/],
  ['only a system message', { messages: [{ role: 'system', content: 'a' }] }, 'messages', /user or assistant/],
  [
    'an unknown role',
    { messages: [{ role: 'tool', content: 'a' }] },
    'messages.0.role',
    /must be one of "system", "user", "assistant"/,
  ],
  ['content of the wrong type', { messages: [{ role: 'user', content: 5 }] }, 'messages.0.content', /accepted forms/],
  [
    'a part of an unknown kind',
    { messages: [{ role: 'user', content: [{ type: 'input_audio' }] }] },
    'messages.0.content.0.type',
    /./,
  ],
  [
    'a part without its text',
    { messages: [{ role: 'user', content: [{ type: 'text' }] }] },
    'messages.0.content.0.text',
    /is missing/,
  ],
  ['an unknown member of a message', { messages: [{ ...said, plugins: [] }] }, 'messages.0.plugins', /is not known/],
  ['an image by http', image('http://example.org/a.png'), 'messages.0.content.0.image_url.url', /https URL/],
  ['a film', image('https://example.org/a.MP4?x=1'), 'messages.0.content.0.image_url.url', /address of an image/],
  ['a document as data', image('data:application/pdf;base64,AAAA'), 'messages.0.content.0.image_url.url', /PNG, JPEG/],
  [
    'an image that claims to be a film',
    { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: pixel, format: 'video/mp4' } }] }] },
    'messages.0.content.0.image_url.format',
    /is not known/,
  ],
  ['data that is not base64', image('data:image/png;base64,????'), 'messages.0.content.0.image_url.url', /base64/],
  [
    'an image that is too large',
    image(`data:image/png;base64,${'A'.repeat(4_300_000)}`),
    'messages.0.content.0.image_url.url',
    /at most 3145728 bytes/,
  ],
  [
    'too many images',
    {
      messages: Array.from({ length: 21 }, () => ({
        role: 'user',
        content: [{ type: 'image_url', image_url: { url: 'https://a.example/' } }],
      })),
    },
    'messages',
    /at most 20 images/,
  ],
  ['a temperature out of range', { prompt: 'a', temperature: 2.1 }, 'temperature', /at most 2/],
  ['a temperature in words', { prompt: 'a', temperature: 'hot' }, 'temperature', /must be a number/],
  ['top_p of 0', { prompt: 'a', top_p: 0 }, 'top_p', /above 0/],
  ['five stops', { prompt: 'a', stop: ['a', 'b', 'c', 'd', 'e'] }, 'stop', /at most 4 items/],
  ['an empty stop', { prompt: 'a', stop: '' }, 'stop', /at least 1 character/],
  ['an unknown format', { prompt: 'a', response_format: { type: 'xml' } }, 'response_format.type', /./],
  [
    'a schema without a name',
    { prompt: 'a', response_format: { type: 'json_schema', json_schema: { schema: {} } } },
    'response_format.json_schema.name',
    /is missing/,
  ],
  ['an unknown effort', { prompt: 'a', reasoning: { effort: 'huge' } }, 'reasoning.effort', /must be one of "none"/],
] as const) {
  for (const path of ['/api/ask', '/api/compare'])
    test(`${path} refuses ${name}, and names ${field}`, async () => {
      const answer = await sample.request(path, json(body));
      const { errors } = problem.parse(await answer.json());
      assert.equal(answer.status, 400);
      assert.equal(errors[0]?.field, field, JSON.stringify(errors).slice(0, 500));
      assert.match(errors[0].message, message);
    });
}

function image(url: string): object {
  return { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }] };
}

function framesOf(text: string): { event: string; data: Record<string, unknown> }[] {
  return text
    .trimEnd()
    .split('\n\n')
    .map((frame) => ({
      event: /^event: (.*)$/m.exec(frame)?.[1] ?? '',
      data: z.record(z.string(), z.unknown()).parse(JSON.parse(/^data: (.*)$/m.exec(frame)?.[1] ?? '')),
    }));
}

test('a comparison streams the pieces and the entry of each model as they come, then the summary', async () => {
  const answer = await sample.request(
    '/api/compare',
    json({ prompt: 'Hello', models: ['alpha-v4-flash', 'gamma5.2', 'beta-K3'], stream: true }, from('192.0.201.1')),
  );
  assert.equal(answer.headers.get('content-type'), 'text/event-stream');
  const frames = framesOf(await answer.text());
  assert.deepEqual(frames[0], { event: 'models', data: { models: ['alpha-v4-flash', 'gamma5.2', 'beta-K3'] } });
  const of = (event: string): Record<string, unknown>[] =>
    frames.filter((frame) => frame.event === event).map(({ data }) => data);
  for (const model of ['alpha-v4-flash', 'beta-K3'])
    assert.equal(
      of('delta')
        .filter((data) => data['model'] === model)
        .map(({ text }) => String(text))
        .join(''),
      'Hello',
    );
  const results = z
    .array(z.looseObject({ model: z.string(), answer: z.string(), cost_usd: z.number(), error: z.string().optional() }))
    .parse(of('result'));
  assert.deepEqual(results.map(({ model }) => model).sort(), ['alpha-v4-flash', 'beta-K3', 'gamma5.2']);
  assert.match(
    results.find(({ model }) => model === 'gamma5.2')?.error ?? '',
    /^gamma5\.2 rejected the request: The request is not one that it takes\.$/,
  );
  const last = frames.at(-1);
  assert.equal(last?.event, 'done');
  z.strictObject({ summary: z.looseObject({ total_cost_usd: z.literal(0.000002) }), request_id: z.string() }).parse(
    last.data,
  );
});

test('a streamed comparison that nobody may make is a problem, not a stream', async () => {
  const answer = await poor.request(
    '/api/compare',
    json({ prompt: 'Hello', models: ['beta-K3', 'gamma5.2'], stream: true }),
  );
  assert.deepEqual(
    [answer.status, problem.partial().parse(await answer.json()).type],
    [402, 'https://moorage.test/problems/quota-exhausted'],
  );
});

test('with an Idempotency-Key the events of a comparison are given again', async () => {
  const key = crypto.randomUUID();
  const send = async (): Promise<string> =>
    (
      await sample.request(
        '/api/compare',
        json(
          { prompt: 'Hello', models: ['beta-K3'], stream: true },
          { ...from('192.0.203.1'), 'idempotency-key': key },
        ),
      )
    ).text();
  const first = framesOf(await send());
  assert.deepEqual(
    first.map(({ event }) => event),
    ['models', 'result', 'done'],
  );
  assert.deepEqual(framesOf(await send()), first);
});
