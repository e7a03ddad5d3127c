// The comparison by form: what is asked, and how answers, failures and costs that are not known are shown.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { send } from '../../../support/api/send.ts';
import { checkPage } from '../../../support/pages/check.ts';
import { browserHeaders, createForm, samplePages } from '../../../support/pages/sample.ts';

const result = {
  results: [
    {
      model: 'alpha-v4-flash',
      answer: 'Because of\nscattering.',
      cost_usd: 0.0000123,
      charged_usd: 0,
      cost_source: 'billed',
      latency_ms: 840,
      tokens_in: 12,
      tokens_out: 34,
    },
    { model: 'beta-K3', answer: 'Rayleigh.', charged_usd: 0, cost_source: 'pending', latency_ms: 1_300 },
    {
      model: 'gamma5.2',
      answer: '',
      cost_usd: 0,
      charged_usd: 0,
      cost_source: 'none',
      latency_ms: 20,
      error: 'The model did not answer.',
    },
  ],
  summary: {
    cheapest: 'alpha-v4-flash',
    fastest: 'alpha-v4-flash',
    total_cost_usd: 0.0000123,
    total_charged_usd: 0,
    cost_spread: '1x between cheapest and priciest',
  },
};

test('compares by form as POST /api/compare does, and shows cost and latency of each answer', async () => {
  const asked: unknown[] = [];
  const { app } = samplePages({
    compare: (body, headers) => {
      asked.push(body, headers.get('authorization'));
      return Promise.resolve(result);
    },
  });
  const fields = new URLSearchParams({ prompt: 'Why is\r\nthe sky blue?', key: '' });
  for (const { model } of result.results) fields.append('models', model);
  const answer = await send(app, '/compare', createForm(fields));
  const html = await answer.text();
  assert.equal(answer.status, 200);
  assert.deepEqual(asked, [
    { prompt: 'Why is\nthe sky blue?', models: result.results.map(({ model }) => model) },
    null,
  ]);
  assert.deepEqual(checkPage(html).faults, []);
  const { text } = checkPage(html);
  for (const part of [
    '$0.0000123',
    '840 ms',
    '1.3 s',
    'not billed yet',
    'The model did not answer.',
    'cheapest · fastest',
    '12 in, 34 out',
  ])
    assert.ok(text.includes(part), part);
  assert.equal(answer.headers.get('cache-control'), 'no-store');
  assert.equal([...html.matchAll(/checked/g)].length, 3);
});

test('uses a key for one request and does not return it', async () => {
  let authorization: string | null = null;
  const { app } = samplePages({
    compare: (_body, headers) => {
      authorization = headers.get('authorization');
      return Promise.resolve(result);
    },
  });
  const html = await (await send(app, '/compare', createForm({ prompt: 'Hello', key: 'sk-secret-of-mine' }))).text();
  assert.equal(authorization, 'Bearer sk-secret-of-mine');
  assert.doesNotMatch(html, /sk-secret/);
});

test('reports a missing prompt and too many models at the form', async () => {
  const { app } = samplePages();
  const empty = await send(app, '/compare', createForm({ prompt: '' }));
  assert.equal(empty.status, 400);
  const html = await empty.text();
  assert.match(html, /id="prompt-error"/);
  assert.deepEqual(checkPage(html).faults, []);
  const many = new URLSearchParams({ prompt: 'Hello' });
  for (let index = 0; index < 6; index += 1) many.append('models', `m${index}`);
  const refused = await send(app, '/compare', createForm(many));
  assert.equal(refused.status, 400);
  assert.match(await refused.text(), /role="alert"/);
});

test('offers every model with its list prices', async () => {
  const { app } = samplePages();
  const html = await (await send(app, '/compare', { headers: browserHeaders })).text();
  assert.equal([...html.matchAll(/type="checkbox"/g)].length, 10);
  assert.match(html, /needs your own key/);
});
