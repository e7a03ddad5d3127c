// The margin on model calls: reserved against the daily limit of a key before a call, so that calls at once cannot pass it.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { computeKeyedHash } from '../../../../api/http/request.ts';
import { toKeyAccount } from '../../../../api/billing/ledger/accounts.ts';
import type { Budget } from '../../../../api/billing/ledger/statements.ts';
import { parseMoney } from '../../../../api/billing/ledger/money.ts';
import { readCatalog } from '../../../../api/models/catalog.ts';
import {
  completion,
  reply,
  startScriptedRouter,
  type ScriptedRouter,
} from '../../../support/models/scripted-router.ts';
import { json, sampleModels, type Sample } from '../../../support/models/sample.ts';

/** Of each call half the cost on top; a call of 400 tokens costs 0.001 at most at 2.50 a million, and a little for the prompt. */
const prices = [
  { version: 'margin', from: '2026-01-01', announced: '2026-01-01', modelMargin: '0.5', free: ['compare_models'] },
];
const limit = parseMoney('0.002');
const billed = '{"prompt_tokens":20,"completion_tokens":400,"cost":0.001}';
const broken = 'Break.';
const unbilled = 'Without a bill.';
let router: ScriptedRouter;
let sample: Sample;

beforeAll(async () => {
  router = await startScriptedRouter({
    '/key': reply(200, '{"data":{}}'),
    ...Object.fromEntries(
      readCatalog().models.map(({ upstream }) => [
        upstream,
        async (response, asked, closed) => {
          await sleep(50);
          const answer = asked.body.includes(broken)
            ? reply(400, '{"error":{"message":"no"}}')
            : reply(200, completion(asked.body.includes(unbilled) ? undefined : billed));
          await answer(response, asked, closed);
        },
      ]),
    ),
  });
  sample = await sampleModels({
    environment: {
      MOORAGE_ROUTER_URL: router.url,
      MOORAGE_PRICES: JSON.stringify(prices),
      MOORAGE_KEY_LIMIT_USD: '0.002',
    },
  });
});
afterAll(async () => {
  await sample.stop();
  await router.close();
});

const ask = (key: string, prompt = 'Hello', path = '/api/ask'): Promise<Response> =>
  sample.request(
    path,
    json(
      path === '/api/ask'
        ? { prompt, model: 'beta-K3', max_tokens: 400 }
        : { prompt, models: ['beta-K3'], max_tokens: 400 },
      { authorization: `Bearer ${key}` },
    ),
  );
const budgetOf = (key: string): Promise<Budget> =>
  sample.ledger.budget({ account: toKeyAccount(computeKeyedHash(`key:${key}`, 'salt')), limit });

test('attack: calls at once do not pass the daily limit of a key by their margins', async () => {
  const key = 'sk-of-many-at-once-12345678';
  const answers = await Promise.all(Array.from({ length: 12 }, () => ask(key)));
  const served = answers.filter(({ status }) => status === 200);
  assert.equal(served.length, 3, 'as many as three maximum margins fit');
  const { used, held } = await budgetOf(key);
  assert.deepEqual([used, held], [parseMoney('0.0015'), 0n]);
  const refused = answers.find(({ status }) => status === 402) ?? assert.fail('none was refused');
  const { detail } = z.looseObject({ detail: z.string() }).parse(await refused.json());
  assert.match(detail, /of your \$0\.002 daily limit for tools, apps and margins with a key left; it resets/);
  assert.deepEqual(await sample.ledger.audit(), []);
});

test('what is reserved is given back by a call that fails, and charged by one that does not', async () => {
  const key = 'sk-of-one-who-fails-12345678';
  assert.equal((await ask(key, broken)).status >= 400, true);
  assert.deepEqual(await budgetOf(key), { limit, used: 0n, held: 0n });
  const { charged_usd: charged } = z.looseObject({ charged_usd: z.number() }).parse(await (await ask(key)).json());
  assert.equal(charged, 0.0005);
  assert.deepEqual(await budgetOf(key), { limit, used: parseMoney('0.0005'), held: 0n });
});

test('while the cost of a call is looked up, its margin stays reserved', async () => {
  const key = 'sk-of-a-pending-call-12345678';
  assert.equal((await ask(key, unbilled)).status, 200);
  const { used, held } = await budgetOf(key);
  assert.equal(used, 0n);
  assert.ok(held >= parseMoney('0.0005'), String(held));
});

test('what is free has no margin, and reserves none', async () => {
  const key = 'sk-of-a-comparison-12345678';
  assert.equal((await ask(key, 'Hello', '/api/compare')).status, 200);
  assert.deepEqual(await budgetOf(key), { limit, used: 0n, held: 0n });
});

test('the margin of a call whose process ended is given back, and not looked up', async () => {
  const key = 'sk-of-a-dead-process-12345678';
  await ask(key, unbilled);
  const { pending } = await sample.ledger.counts();
  await sample.database.query(
    {
      name: 'margin-later',
      text: "update ledger.hold set expires_at = clock_timestamp() - interval '1 second' where state = 'open'",
      row: z.unknown(),
    },
    [],
  );
  await sample.ledger.expire();
  await sample.ledger.releaseToolHolds();
  assert.deepEqual(await budgetOf(key), { limit, used: 0n, held: 0n });
  assert.equal((await sample.ledger.counts()).pending, pending);
});

test('margins of a comparison are reserved together with it: the daily limit of a key covers all of them or none', async () => {
  const key = 'sk-of-a-whole-comparison-12345678';
  const costly = await sampleModels({
    environment: {
      MOORAGE_ROUTER_URL: router.url,
      MOORAGE_PRICES: JSON.stringify(prices.map((version) => ({ ...version, free: [] }))),
      MOORAGE_KEY_LIMIT_USD: '0.002',
    },
  });
  const compare = (maxTokens: number): Promise<Response> =>
    costly.request(
      '/api/compare',
      json(
        { prompt: 'Hello', models: ['beta-K3', 'beta-K3-codex', 'epsilon-3.5-flash'], max_tokens: maxTokens },
        { authorization: `Bearer ${key}` },
      ),
    );
  const spent = (): Promise<Budget> =>
    costly.ledger.budget({ account: toKeyAccount(computeKeyedHash(`key:${key}`, 'salt')), limit });
  // Half of up to $0.005 a model.
  const refused = await compare(2_000);
  const { detail } = z.looseObject({ detail: z.string() }).parse(await refused.json());
  assert.equal(refused.status, 402);
  assert.match(detail, /^This call costs \$0\.0075\d*\. You have \$0\.002 of your \$0\.002 daily limit/);
  assert.deepEqual(await spent(), { limit, used: 0n, held: 0n });
  assert.deepEqual(await costly.ledger.counts(), { open: 0, pending: 0, abandoned: 0 });
  const answered = await compare(400);
  assert.equal(answered.status, 200);
  assert.equal((await answered.text()).match(/"charged_usd":0\.0005/g)?.length, 3);
  await costly.stop();
});
