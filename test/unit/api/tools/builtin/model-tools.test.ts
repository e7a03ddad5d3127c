// ask_model, compare_models and translate_text over a scripted router: words in, words out, every call booked.
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { afterAll, beforeAll, test } from 'vitest';
import { comparisonAnswer } from '../../../../../api/models/endpoints.ts';
import { createAskModelTool } from '../../../../../api/tools/builtin/ask-model/ask-model.ts';
import { createCompareModelsTool } from '../../../../../api/tools/builtin/compare-models/compare-models.ts';
import { findLanguage } from '../../../../../api/tools/builtin/languages.ts';
import type { ToolDependencies } from '../../../../../api/tools/tool.ts';
import type { Tool } from '../../../../../api/tools/tool.ts';
import {
  createTranslateTextTool,
  splitInHalves,
  splitText,
} from '../../../../../api/tools/builtin/translate-text/translate-text.ts';
import { Problem } from '../../../../../lib/problem.ts';
import { reply } from '../../../../support/models/scripted-router.ts';
import { reports, runTool, toolContext } from '../../../../support/tools/context.ts';
import {
  maxTokens,
  readPrompt,
  createAnswer,
  startModelLab,
  readSystemPrompt,
  type ModelLab,
} from '../../../../support/tools/model-lab.ts';

let lab: ModelLab;
let tools: Record<'ask' | 'compare' | 'translate', Tool>;
beforeAll(async () => {
  lab = await startModelLab({
    models: {
      'alpha-v4-flash': createAnswer((said) => said.toUpperCase(), '0.000001'),
      'beta-K3': createAnswer('Ho', '0.00002'),
      // Cuts whatever is longer than 300 characters.
      'gamma5.2': (response, asked, closed) =>
        createAnswer(
          (said) => said.slice(0, 300).toUpperCase(),
          '0.000001',
          readPrompt(asked).length > 300 ? 'length' : 'stop',
        )(response, asked, closed),
      'delta-5.6-luna': createAnswer('cut', '0.000001', 'length'),
      'epsilon-3.5-flash': reply(400, '{"error":{"message":"no"}}'),
    },
  });
  const services = { catalog: lab.catalog, maxTokens } as ToolDependencies;
  tools = {
    ask: createAskModelTool(services),
    compare: createCompareModelsTool(services),
    translate: createTranslateTextTool(services),
  };
});
afterAll(() => lab.stop());

const slug =
  (expected: string) =>
  (error: unknown): boolean =>
    error instanceof Problem && error.type.slug === expected;

test('ask_model asks the default or the named model with the given options', async () => {
  const models = lab.spender();
  const { result } = await runTool(
    tools.ask,
    { prompt: 'hello', system: 'Be brief.', max_tokens: 5 },
    toolContext({ models }),
  );
  assert.deepEqual(
    { ...result, latency_ms: 0 },
    { model: 'alpha-v4-flash', answer: 'HELLO', latency_ms: 0, tokens_in: 7, tokens_out: 9, finish_reason: 'stop' },
  );
  const asked = lab.router.asked.at(-1);
  assert.ok(asked !== undefined);
  assert.deepEqual(
    [readPrompt(asked), readSystemPrompt(asked), (JSON.parse(asked.body) as { max_tokens: number }).max_tokens],
    ['hello', 'Be brief.', 5],
  );
  assert.equal(
    (await runTool(tools.ask, { prompt: 'hello', model: 'beta-K3' }, toolContext({ models }))).result['answer'],
    'Ho',
  );
  assert.equal(models.spending.cost, 21_000_000n);
  for (const input of [
    {},
    { prompt: ' ' },
    { prompt: 'x', model: 'nobody' },
    { prompt: 'x', max_tokens: 8_001 },
    { prompt: 'x', temperature: 2.1 },
    { prompt: 'x', temprature: 1 },
  ])
    assert.equal(tools.ask.input.safeParse(input).success, false);
});

test('compare_models returns what POST /api/compare does [spec tools.compare-models]', async () => {
  const { result } = await runTool(
    tools.compare,
    { prompt: 'hello', models: ['beta-K3', 'alpha-v4-flash', 'epsilon-3.5-flash'] },
    toolContext({ models: lab.spender() }),
  );
  const { results, summary } = comparisonAnswer.omit({ request_id: true, hint: true }).strict().parse(result);
  assert.deepEqual(
    results.map(({ model, answer, cost_usd }) => [model, answer, cost_usd]),
    [
      ['beta-K3', 'Ho', 0.00002],
      ['alpha-v4-flash', 'HELLO', 0.000001],
      ['epsilon-3.5-flash', '', 0],
    ],
  );
  assert.match(results[2]?.error ?? '', /rejected the request: The request is not one that it takes\./);
  assert.deepEqual(
    [summary?.cheapest, summary?.total_cost_usd, summary?.cost_spread],
    ['alpha-v4-flash', 0.000021, '20x between cheapest and priciest'],
  );
  const spread = comparisonAnswer
    .pick({ results: true })
    .parse((await runTool(tools.compare, { prompt: 'hello' }, toolContext({ models: lab.spender() }))).result).results;
  assert.equal(spread.length, 3);
  assert.equal(
    tools.compare.input.safeParse({ prompt: 'x', models: Array.from({ length: 6 }, () => 'beta-K3') }).success,
    false,
  );
});

test('translates a long text part by part, in order, and keeps the space between them', async () => {
  const text = Array.from(
    { length: 40 },
    (_, index) => `## Part ${index}\n\n${`sentence ${index} goes here. `.repeat(12)}`,
  ).join('\n\n\n');
  const { seen, report } = reports();
  const models = lab.spender();
  const { result } = await runTool(
    tools.translate,
    { text: `\n  ${text}\n`, to: 'Deutsch', from: 'en' },
    toolContext({ models, report }),
  );
  assert.equal(result['translation'], `\n  ${text}\n`.toUpperCase());
  assert.deepEqual(
    [result['to'], result['to_language'], result['from'], result['model']],
    ['de', 'German', 'en', 'alpha-v4-flash'],
  );
  assert.equal(result['parts'], models.spending.calls);
  assert.ok(models.spending.calls >= 4);
  assert.deepEqual(seen.at(-1), {
    done: 1,
    message: `${models.spending.calls} of ${models.spending.calls} parts translated`,
  });
  assert.match(
    readSystemPrompt(lab.router.asked.at(-1) ?? assert.fail()) ?? '',
    /from English \(en\) into German \(de\)/,
  );
});

test('retries a part with a truncated translation in halves, then rejects it', async () => {
  const text = 'A sentence of some words. '.repeat(40).trim();
  const { result } = await runTool(
    tools.translate,
    { text, to: 'fr', model: 'gamma5.2' },
    toolContext({ models: lab.spender() }),
  );
  assert.equal(result['translation'], text.toUpperCase());
  await assert.rejects(
    runTool(tools.translate, { text, to: 'fr', model: 'delta-5.6-luna' }, toolContext({ models: lab.spender() })),
    slug('tool-failed'),
  );
  await assert.rejects(
    runTool(tools.translate, { text, to: 'nonsense' }, toolContext({ models: lab.spender() })),
    slug('invalid-request'),
  );
});

test('parses languages by code and by name, in English and in the language itself', () => {
  const codes = Object.fromEntries(
    [
      'de',
      'DE',
      'German',
      'deutsch',
      'pt_br',
      'Brazilian Portuguese',
      'zh-Hant',
      'Traditional Chinese',
      '日本語',
      'Klingon',
      'tlh',
      'Français',
      'und',
      'xx',
      'english please',
      '../..',
    ].map((text) => [text, findLanguage(text)?.code]),
  );
  assert.deepEqual(codes, {
    de: 'de',
    DE: 'de',
    German: 'de',
    deutsch: 'de',
    pt_br: 'pt-BR',
    'Brazilian Portuguese': 'pt-BR',
    'zh-Hant': 'zh-Hant',
    'Traditional Chinese': 'zh-Hant',
    日本語: 'ja',
    Klingon: undefined,
    tlh: 'tlh',
    Français: 'fr',
    und: undefined,
    xx: undefined,
    'english please': undefined,
    '../..': undefined,
  });
});

test('splits a text without loss into parts within the limit, and does not split a code fence that fits', () => {
  const piece = fc.constantFrom(
    'word ',
    'A sentence. ',
    '\n',
    '\n\n',
    '\n\n\n',
    '```\n',
    '~~~~\n',
    '😀',
    '  ',
    'x'.repeat(50),
    '中文。',
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 80 }), fc.integer({ min: 5, max: 200 }), (pieces, maximum) => {
      const text = pieces.join('');
      const parts = splitText(text, maximum);
      assert.equal(parts.join(''), text);
      for (const part of parts) {
        assert.ok(part.length <= maximum && part !== '');
        assert.ok(part.isWellFormed());
      }
      const cut = splitInHalves(text);
      assert.ok(cut === undefined || (cut.join('') === text && cut[0] !== '' && cut[1] !== ''));
    }),
  );
  const code = '```js\nlet a = 1;\n\nlet b = 2;\n```\n';
  assert.deepEqual(splitText(`Before.\n\n${code}\nAfter.`, 39), ['Before.\n\n', `${code}\n`, 'After.']);
});
