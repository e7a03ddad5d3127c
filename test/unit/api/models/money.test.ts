// Money on its way through: digits kept, costs reported, the maximum that a call can cost, and how a comparison is summed up.
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { test } from 'vitest';
import { formatMoney, toDollarNumber, parseMoney, fromPicoDollars } from '../../../../api/billing/ledger/money.ts';
import { computeMaxCost, countMaxTokens } from '../../../../api/billing/prices.ts';
import { liteLlm } from '../../../../api/models/router/litellm.ts';
import { openRouter, parseExact, type RouterHeaders, usage } from '../../../../api/models/router/openrouter.ts';
import { computeSpreadRatio, summarizeComparison } from '../../../../api/models/comparison.ts';

test('money keeps its digits where a float would not', () => {
  assert.deepEqual(parseExact('{"usage":{"cost":0.1234567890123456789,"prompt_tokens":3},"price":0.10}'), {
    usage: { cost: '0.1234567890123456789', prompt_tokens: 3 },
    price: 0.1,
  });
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 10n ** 15n - 1n }), (count) => {
      const digits = formatMoney(fromPicoDollars(count));
      assert.deepEqual(parseExact(`[{"total_cost": ${digits}}]`), [{ total_cost: digits }]);
      // What is shown as a JSON number is read back as the same amount.
      assert.equal(parseMoney(JSON.stringify(toDollarNumber(fromPicoDollars(count)))), count);
    }),
  );
});

interface CostCase {
  readonly name: string;
  readonly shape: typeof openRouter;
  readonly headers?: RouterHeaders;
  readonly usage?: string;
  readonly streamed?: boolean;
  readonly priced?: boolean;
  readonly cost: string | undefined;
}

const header = (cost: string): RouterHeaders => ({ 'x-litellm-response-cost': cost });
const costs: readonly CostCase[] = [
  { name: 'usage.cost', shape: openRouter, usage: '{"cost":0.00014}', cost: '0.00014' },
  { name: 'usage.cost in exponent form', shape: openRouter, usage: '{"cost":1.4e-7}', cost: '0.00000014' },
  { name: 'usage.cost of 0', shape: openRouter, usage: '{"cost":0}', cost: '0' },
  {
    name: 'usage.cost of 0 for tokens that have a price',
    shape: openRouter,
    usage: '{"prompt_tokens":3,"completion_tokens":1,"cost":0}',
    cost: undefined,
  },
  { name: 'no cost', shape: openRouter, usage: '{"prompt_tokens":3}', cost: undefined },
  { name: 'no usage', shape: openRouter, cost: undefined },
  { name: 'cost null', shape: openRouter, usage: '{"cost":null}', cost: undefined },
  { name: 'a negative cost', shape: openRouter, usage: '{"cost":-0.01}', cost: undefined },
  { name: 'a cost in words', shape: openRouter, usage: '{"cost":"free"}', cost: undefined },
  {
    name: 'a provider key of the payer',
    shape: openRouter,
    usage: '{"cost":0.00001,"is_byok":true,"cost_details":{"upstream_inference_cost":0.0002}}',
    cost: '0.00021',
  },
  {
    name: 'upstream cost without such a key',
    shape: openRouter,
    usage: '{"cost":0.00001,"is_byok":false,"cost_details":{"upstream_inference_cost":0.0002}}',
    cost: '0.00001',
  },
  { name: 'the header', shape: liteLlm, headers: header('1.35e-05'), usage: '{}', cost: '0.0000135' },
  {
    name: 'the header with noise of floats',
    shape: liteLlm,
    headers: header('1.9999999999999998e-05'),
    cost: '0.00002',
  },
  {
    name: 'the header twice',
    shape: liteLlm,
    headers: { 'x-litellm-response-cost': ['2e-05', '3e-05'] },
    cost: '0.00002',
  },
  { name: '0 in the header of a model with a price', shape: liteLlm, headers: header('0.0'), cost: undefined },
  {
    name: '0 in the header of a model without a price',
    shape: liteLlm,
    headers: header('0'),
    priced: false,
    cost: '0',
  },
  { name: 'a header on a stream', shape: liteLlm, headers: header('0.5'), streamed: true, cost: undefined },
  {
    name: 'usage.cost on a stream',
    shape: liteLlm,
    headers: header('0.0'),
    usage: '{"cost":9.999999999999999e-6}',
    streamed: true,
    cost: '0.00001',
  },
  { name: 'None in the header', shape: liteLlm, headers: header('None'), cost: undefined },
  { name: 'a negative header', shape: liteLlm, headers: header('-1e-05'), cost: undefined },
  { name: 'no header', shape: liteLlm, cost: undefined },
];
for (const { name, shape, headers = {}, usage: reported, streamed = false, priced = true, cost } of costs) {
  test(`cost from ${name}: ${cost ?? 'not known'}`, () => {
    const read = reported === undefined ? undefined : usage.parse(parseExact(reported));
    const found = shape.cost({ headers, usage: read, streamed, priced });
    assert.equal(found === undefined ? undefined : formatMoney(found.amount), cost);
  });
}

test('the maximum that a call can cost covers every tokenizer: a token a byte, and what stands around', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: 'grapheme' })), (texts) => {
      assert.ok(countMaxTokens({ texts }) >= texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0));
    }),
  );
  assert.equal(countMaxTokens({ texts: ['héllo 🦀'] }), 11 + 32 + 64);
  assert.equal(
    computeMaxCost({ in_per_m: parseMoney('1'), out_per_m: parseMoney('10') }, { texts: [''] }, 100),
    parseMoney('0.001096'),
  );
});

test('the spread of costs, to one decimal [spec compare.cost-spread]', () => {
  const ratio = (...texts: string[]): string => computeSpreadRatio(texts.map(parseMoney));
  assert.equal(ratio('0.1', '0.3'), '3');
  assert.equal(ratio('0.3', '0.1', '1'), '10');
  assert.equal(ratio('0.00000819', '0.0000729'), '8.9');
  assert.equal(ratio('0.2', '0.25'), '1.3');
  assert.equal(ratio('0.1', '0.1'), '1');
  assert.equal(ratio('0.1'), '1');
  assert.equal(ratio(), '1');
  assert.equal(ratio('0', '0'), '1');
  assert.equal(ratio('0', '0.1'), '∞');
});

test('a summary names who answered, adds up what is known, and says what is not [spec compare.summary]', () => {
  const entry = (
    model: string,
    ok: boolean,
    cost: string | undefined,
    latencyMs: number,
  ): Parameters<typeof summarizeComparison>[0][number] => ({
    model,
    ok,
    cost: cost === undefined ? undefined : parseMoney(cost),
    latencyMs,
  });
  assert.deepEqual(
    summarizeComparison(
      [
        entry('a', true, '0.2', 30),
        entry('b', true, '0.1', 40),
        entry('c', true, undefined, 10),
        entry('d', false, undefined, 1),
      ],
      ['c'],
    ),
    {
      cheapest: 'b',
      fastest: 'c',
      total_cost_usd: 0.3,
      cost_spread: '2x between cheapest and priciest',
      pending: ['c'],
    },
  );
  // Complete or nothing: no model is the cheapest where none has answered at a known cost.
  assert.equal(summarizeComparison([entry('a', false, undefined, 3)], []), null);
  assert.equal(summarizeComparison([entry('a', true, undefined, 3), entry('b', false, '0.1', 4)], ['a']), null);
});
