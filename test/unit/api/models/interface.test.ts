// What the interface says of ask, compare and the list of models, seen from both sides: what a caller gets, and what
// the router is sent.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { readCatalog } from '../../../../api/models/catalog.ts';
import { json, sampleModels, type Sample } from '../../../support/models/sample.ts';
import { completion, startScriptedRouter, type ScriptedRouter } from '../../../support/models/scripted-router.ts';

/** A comparison is answered by the router only when as many as this have been asked. */
let together = 1;
let waiting: (() => void)[] = [];
let router: ScriptedRouter;
let sample: Sample;

async function answerTogether(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  waiting.push(() => {
    resolve(undefined);
  });
  if (waiting.length === together) {
    for (const go of waiting) go();
    waiting = [];
  }
  await promise;
}

beforeAll(async () => {
  const { models } = readCatalog();
  router = await startScriptedRouter(
    Object.fromEntries(
      models.map(({ upstream }, index) => [
        upstream,
        async (response) => {
          await answerTogether();
          response
            .writeHead(200, { 'content-type': 'application/json' })
            .end(completion(`{"prompt_tokens":3,"completion_tokens":1,"cost":0.00000${index + 1}}`));
        },
      ]),
    ),
  );
  sample = await sampleModels({ environment: { MOORAGE_ROUTER_URL: router.url, MOORAGE_FREE_QUOTA_USD: '10' } });
});
afterAll(async () => {
  await sample.stop();
  await router.close();
});

const sent = z.looseObject({
  model: z.string(),
  max_tokens: z.int(),
  messages: z.array(z.object({ role: z.string(), content: z.string() })),
});

/** What the router is asked meanwhile. */
async function asking(path: string, body: object): Promise<{ answer: unknown; sent: z.output<typeof sent>[] }> {
  const earlier = router.asked.length;
  const response = await sample.request(path, json(body));
  const answer: unknown = await response.json();
  assert.equal(response.status, 200, JSON.stringify(answer));
  return {
    answer,
    sent: router.asked
      .slice(earlier)
      .filter(({ body: asked }) => asked !== '')
      .map((one) => sent.parse(JSON.parse(one.body))),
  };
}

test('the list of models is an array of id, label, tier and two prices [spec models.entry models.tier endpoint.models]', async () => {
  const answer = await sample.request('/api/models');
  assert.equal(answer.status, 200);
  const list = z
    .array(
      z.strictObject({
        id: z.string(),
        label: z.string(),
        tier: z.enum(['free', 'premium']),
        in_per_m: z.number(),
        out_per_m: z.number(),
      }),
    )
    .parse(await answer.json());
  assert.deepEqual(
    list.map(({ id }) => id),
    sample.catalog.ids,
  );
  assert.deepEqual([...new Set(list.map(({ tier }) => tier))].sort(), ['free', 'premium']);
});

test('ask sends prompt, system prompt and cap as they were given [spec ask.system ask.max-tokens]', async () => {
  together = 1;
  const {
    sent: [one],
  } = await asking('/api/ask', { prompt: 'Why?', system: 'Be brief.', max_tokens: 17 });
  assert.deepEqual(
    [one?.messages, one?.max_tokens],
    [
      [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'Why?' },
      ],
      17,
    ],
  );
});

test('compare sends one prompt and system prompt to all models at once, and answers an entry for each [spec compare.prompt compare.system compare.results compare.parallel endpoint.compare]', async () => {
  const models = ['gamma5.2', 'beta-K3', 'alpha-v4-flash', 'beta-K3-codex', 'epsilon-3.5-flash'];
  together = models.length;
  const { answer, sent: all } = await asking('/api/compare', { prompt: 'Why?', system: 'Be brief.', models });
  const { results } = z
    .looseObject({
      results: z.array(
        z.looseObject({ model: z.string(), answer: z.string(), cost_usd: z.number(), latency_ms: z.int() }),
      ),
    })
    .parse(answer);
  assert.deepEqual(
    results.map(({ model }) => model),
    models,
  );
  assert.ok(results.every((result) => result.answer === 'Hi' && result.cost_usd > 0 && result['error'] === undefined));
  assert.equal(new Set(all.map(({ model }) => model)).size, models.length);
  for (const { messages } of all)
    assert.deepEqual(messages, [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'Why?' },
    ]);
});

test('compare without models asks three, and sums up [spec compare.spread-of-3 compare.summary]', async () => {
  together = 3;
  const { answer } = await asking('/api/compare', { prompt: 'Why?' });
  const { results, summary } = z
    .looseObject({
      results: z.array(z.looseObject({ model: z.string(), cost_usd: z.number() })),
      summary: z.object({
        cheapest: z.string(),
        fastest: z.string(),
        total_cost_usd: z.number(),
        cost_spread: z.string().regex(/^\d+(\.\d+)?x between cheapest and priciest$/),
      }),
    })
    .parse(answer);
  assert.equal(results.length, 3);
  assert.equal(summary.cheapest, results.toSorted((a, b) => a.cost_usd - b.cost_usd)[0]?.model);
  assert.equal(
    summary.total_cost_usd.toFixed(9),
    results.reduce((sum, { cost_usd: cost }) => sum + cost, 0).toFixed(9),
  );
});

test('no path carries a version, but /v1, which OpenAI clients of hosted apps expect [spec version.paths]', async () => {
  const { paths } = z
    .looseObject({ paths: z.record(z.string(), z.unknown()) })
    .parse(await (await sample.request('/openapi.json')).json());
  assert.deepEqual(
    Object.keys(paths).filter((path) => /\/v\d/.test(path) && !path.startsWith('/v1/')),
    [],
  );
});
