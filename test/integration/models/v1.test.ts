// /v1 of hosted apps over a real LiteLLM: completions, streams, embeddings and models, booked to the app for what
// LiteLLM's records say. And callers' own keys there.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { toAppAccount } from '../../../api/billing/ledger/accounts.ts';
import { parseMoney, sumMoney } from '../../../api/billing/ledger/money.ts';
import { RouterClient } from '../../../api/models/router/client.ts';
import { findUnknownUpstreams } from '../../../api/models/start.ts';
import { createAppToken } from '../../../lib/app-tokens.ts';
import { appTokenSecret, json, sampleModels, type Sample } from '../../support/models/sample.ts';
import { startLiteLlm, type LiteLlm } from '../../support/models/litellm.ts';
import { createCatalogMocks } from '../../support/models/lab.ts';

const app = { name: 'chat', uid: 'uid-1', enabled: true, dailyBudgetUsd: '1' };
const token = { authorization: `Bearer ${createAppToken(app, appTokenSecret)}` };
const messages = [{ role: 'user', content: 'Hello' }];

let router: LiteLlm;
let sample: Sample;
beforeAll(async () => {
  router = await startLiteLlm(createCatalogMocks());
  sample = await sampleModels({
    environment: { MOORAGE_ROUTER_KIND: 'litellm', MOORAGE_ROUTER_URL: router.url, MOORAGE_ROUTER_KEY: router.key },
    apps: [app],
  });
});
afterAll(async () => {
  await sample.stop();
  await router.stop();
});

const usage = z.looseObject({ prompt_tokens: z.int().positive(), cost: z.number().positive() });
const completion = z.looseObject({
  model: z.string(),
  choices: z.array(z.looseObject({ message: z.looseObject({ content: z.string() }) })).length(1),
  usage,
});
const chunk = z.looseObject({
  model: z.literal('beta-K3'),
  choices: z.array(z.looseObject({ delta: z.looseObject({ content: z.string().nullish() }).nullish() })),
  usage: usage.nullish(),
});

/** The cost in an answer, by its digits. */
function costIn(text: string): ReturnType<typeof parseMoney> {
  return parseMoney(/"cost":([0-9.e-]+)/.exec(text)?.[1] ?? assert.fail(`no cost in ${text}`));
}

function chunksOf(text: string): z.output<typeof chunk>[] {
  assert.ok(text.endsWith('data: [DONE]\n\n'), text);
  return text
    .split('\n\n')
    .filter((frame) => frame.startsWith('data: {'))
    .map((frame) => chunk.parse(JSON.parse(frame.slice('data: '.length))));
}

test('returns completions, streams and embeddings under our names, and charges the app what LiteLLM recorded', async () => {
  const before = (await router.spent(0)).size;
  const ask = async (path: string, body: object): Promise<string> => {
    const answer = await sample.requestOfApps(path, json(body, token));
    const text = await answer.text();
    assert.equal(answer.status, 200, text);
    return text;
  };
  const whole = await ask('/v1/chat/completions', { model: 'beta-K3', messages, temperature: 0.2 });
  assert.equal(completion.parse(JSON.parse(whole)).model, 'beta-K3');

  const streamed = await ask('/v1/chat/completions', {
    model: 'beta-K3',
    messages,
    stream: true,
    stream_options: { include_usage: true },
  });
  const chunks = chunksOf(streamed);
  assert.equal(
    chunks.map(({ choices }) => choices[0]?.delta?.content ?? '').join(''),
    completion.parse(JSON.parse(whole)).choices[0]?.message.content,
  );
  assert.ok(chunks.at(-1)?.usage !== undefined);

  const bare = await ask('/v1/chat/completions', { model: 'beta-K3', messages, stream: true });
  assert.ok(chunksOf(bare).every((one) => one.usage === undefined && one.choices.length > 0));

  const vectors = await ask('/v1/embeddings', { model: 'embed-small', input: 'Hello' });
  z.looseObject({
    model: z.literal('embed-small'),
    data: z.array(z.looseObject({ embedding: z.array(z.number()) })).min(1),
    usage,
  }).parse(JSON.parse(vectors));

  const recorded = [...(await router.spent(before + 4)).values()].slice(before);
  assert.equal(recorded.length, 4);
  assert.equal(await sample.ledger.balance(toAppAccount(app.name)), sumMoney(recorded));
  for (const text of [whole, streamed, vectors])
    assert.ok(recorded.includes(costIn(text)), `${text} is not in the records`);
  assert.deepEqual(
    [await sample.ledger.counts(), await sample.ledger.audit()],
    [{ open: 0, pending: 0, abandoned: 0 }, []],
  );
});

test('lists the models of models.yaml', async () => {
  const { data } = z
    .looseObject({ data: z.array(z.looseObject({ id: z.string() })) })
    .parse(await (await sample.requestOfApps('/v1/models', { headers: token })).json());
  assert.deepEqual(
    data.map(({ id }) => id),
    [...sample.catalog.ids, 'embed-small'],
  );
});

test('ask, and /v1 without a key, answer a conversation with an image, options and a schema', async () => {
  const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=', detail: 'low' } };
  const body = {
    messages: [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: [{ type: 'text', text: 'What is this?' }, image] },
    ],
    temperature: 0.2,
    top_p: 0.9,
    stop: ['END'],
    max_tokens: 50,
    response_format: { type: 'json_schema', json_schema: { name: 'a', schema: { type: 'object' } } },
  };
  for (const [path, more] of [
    ['/api/ask', {}],
    ['/v1/chat/completions', { model: 'alpha-v4-flash' }],
  ] as const) {
    const answer = await sample.request(path, json({ ...body, ...more }));
    assert.equal(answer.status, 200, await answer.clone().text());
    assert.match(answer.headers.get('x-cost-usd') ?? '', /^0\.\d+$/);
  }
});

test('without a database LiteLLM issues no keys: a call with one reports it, and nothing is charged', async () => {
  const answer = await sample.request(
    '/api/ask',
    json({ prompt: 'Hello' }, { authorization: 'Bearer sk-invented-12345678' }),
  );
  const reported = z.looseObject({ type: z.string(), detail: z.string() }).parse(await answer.json());
  assert.deepEqual([answer.status, reported.type.replace(/.*\//, '')], [503, 'router-unavailable']);
  assert.match(
    reported.detail,
    /^Your API key could not be checked: the router responded with status \d+\. Try again in 5 seconds\.$/,
  );
  assert.deepEqual(await sample.ledger.counts(), { open: 0, pending: 0, abandoned: 0 });
});

test('the router offers every model of models.yaml', async () => {
  const client = new RouterClient({ kind: 'litellm', url: router.url, key: router.key }, { callMs: 10_000 });
  assert.deepEqual(await findUnknownUpstreams(sample.catalog, client), []);
  const models = sample.catalog.models.map((model) =>
    model.id === 'gamma5.2' ? { ...model, upstream: 'nobody/nothing' } : model,
  );
  assert.deepEqual(await findUnknownUpstreams({ models }, client), ['gamma5.2 (upstream nobody/nothing)']);
  await client.close();
});
