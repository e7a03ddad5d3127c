// Guides with their evidence: nothing measured, measured, contradicted, and not to be read.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import type { BenchmarkReader } from '../../../../../api/catalog/guides/evidence.ts';
import { type Guides, startGuides } from '../../../../../api/catalog/guides/guides.ts';
import { readGuides } from '../../../../../api/catalog/guides/load.ts';
import { guideRecord } from '../../../../../api/catalog/guides/endpoints.ts';
import type { SourceGuide } from '../../../../../api/catalog/guides/source.ts';
import { parseMoney } from '../../../../../api/billing/ledger/money.ts';
import { ledgerUnavailable } from '../../../../../api/billing/problems.ts';
import { readCatalog } from '../../../../../api/models/catalog.ts';
import { createBuiltinTools } from '../../../../../api/tools/builtin/all.ts';
import { Problem } from '../../../../../lib/problem.ts';
import { sampleBenchmark, sampleModel } from '../../../../support/catalog/benchmark.ts';
import { sampleToolApp, type ToolSample } from '../../../../support/tools/sample.ts';

const baseUrl = 'https://moorage.test';
const catalog = readCatalog();
let sample: ToolSample;

beforeAll(async () => {
  sample = await sampleToolApp({ make: createBuiltinTools });
});
afterAll(() => sample.stop());

function started(readBenchmark: BenchmarkReader, guides?: readonly SourceGuide[]): Guides {
  const { toolRegistry } = sample.tools;
  return startGuides({ baseUrl, freeQuota: parseMoney('0.05'), catalog, toolRegistry, readBenchmark, guides });
}

const none = (): Promise<undefined> => Promise.resolve(undefined);
const slug = 'best-model-for-research-agent';
const cheap = sampleModel('alpha-v4-flash', { passed: 12, n: 15, usd: 0.002 });
const dear = sampleModel('gamma5.2', { passed: 14, n: 15, usd: 0.2 });
const failed = sampleModel('beta-K3', { passed: 0, n: 15, usd: 0.01 });
const away = sampleModel('delta-5.6-luna', { passed: 0, n: 0, outages: 9, usd: 0 });
const measured = sampleBenchmark(
  [dear, cheap, failed, away],
  [
    { a: 'alpha-v4-flash', b: 'gamma5.2', verdict: 'b', interval: [-0.5, -0.2] },
    { a: 'beta-K3', b: 'gamma5.2', verdict: 'b', interval: [-1, -0.7] },
  ],
);

test('where nothing has been measured, every answer with evidence says so and names no model', async () => {
  const guides = started(none);
  for (const source of readGuides()) {
    const record = guideRecord.parse(await guides.getRecord(source.slug));
    const says = /Nothing has been measured here yet for .*, so this answer names no winner\.$/.test(record.answer);
    assert.equal(says, source.evidence.length > 0, source.slug);
    assert.equal(/因此这里不评出优胜者。$/.test(record.answer_zh), says);
    assert.deepEqual(
      catalog.ids.filter((id) => `${record.answer}${record.answer_zh}`.includes(id)),
      [],
    );
    for (const { claims } of [await guides.getDetail(source.slug)].flatMap((detail) => detail ?? []))
      assert.deepEqual(
        claims.flatMap(({ checks }) => checks),
        [],
      );
    assert.deepEqual(
      record.evidence.map(({ available, updated, not_measured }) => [available, updated, not_measured]),
      source.evidence.map(() => [false, null, catalog.ids]),
    );
    assert.equal(record.updated, new Date(source.updated).toISOString());
  }
});

test('evidence is that of the benchmark, and the later time counts', async () => {
  const guides = started((app) => Promise.resolve(app === measured.slug ? measured : undefined));
  const record = guideRecord.parse(await guides.getRecord(slug));
  assert.deepEqual(record.evidence, [
    {
      slug: 'research-agent',
      available: true,
      url: 'https://moorage.test/bench/research-agent',
      data_url: 'https://moorage.test/api/bench/research-agent/runs.jsonl',
      updated: '2026-12-01T10:00:00.000Z',
      runs_per_task: 9,
      models_tested: 4,
      models_with_complete_pass_rate: 3,
      best_measured_value: { model: 'alpha-v4-flash', usd_per_run: 0.002 },
      failed_all_tasks: ['beta-K3'],
      not_measured: catalog.ids.filter((id) => !['alpha-v4-flash', 'gamma5.2', 'beta-K3'].includes(id)),
    },
  ]);
  assert.equal(record.updated, '2026-12-01T10:00:00.000Z');
  assert.equal((await guides.listEntries()).find((entry) => entry.slug === slug)?.updated, '2026-12-01T10:00:00.000Z');
});

test('an answer says itself what its evidence supports, and what it does not support any more', async () => {
  const guides = started((app) => Promise.resolve(app === measured.slug ? measured : undefined));
  const { answer, answer_zh } = guideRecord.parse(await guides.getRecord(slug));
  assert.match(
    answer,
    /The lowest cost per success measured here: research-agent, alpha-v4-flash \(12 of 15 runs passed, \$0\.002 per run\)\. The measurements do not support "A cheaper model passes as often as the dearest one, within 10 percentage points": research-agent, alpha-v4-flash \(.*\) against gamma5\.2 \(14 of 15 runs passed, \$0\.2 per run\)\.$/,
  );
  assert.match(
    answer_zh,
    /现有测量不支持“较便宜的模型与最贵的模型通过率相当，相差不超过 10 个百分点”：research-agent，/,
  );
  const many = guideRecord.parse(await guides.getRecord('do-expensive-llms-perform-better'));
  assert.match(many.answer, /do not support .* Not measured here yet: chat-ui-1, .*slide-generator\.$/);
  assert.match(many.answer_zh, /本站尚未测量：chat-ui-1、.*slide-generator。$/);
});

test('evidence that cannot be read is not called missing; a fault is a fault', async () => {
  const guides = started(() => Promise.reject(new Problem(ledgerUnavailable, 'Away.')));
  const { answer, evidence } = guideRecord.parse(await guides.getRecord(slug));
  assert.match(answer, /The measurements of research-agent cannot be read right now\.$/);
  assert.doesNotMatch(answer, /Nothing has been measured/);
  assert.equal(evidence[0]?.available, false);
  await assert.rejects(started(() => Promise.reject(new TypeError('broken'))).getRecord(slug), /broken/);
});

test('a benchmark that is registered and has no run is not there yet', async () => {
  const guides = started(() => Promise.resolve(sampleBenchmark([])));
  assert.match((await guides.getRecord(slug))?.answer ?? '', /Nothing has been measured/);
});

test('a benchmark is read once for guides that are read in a row', async () => {
  const asked: string[] = [];
  const guides = started((app) => {
    asked.push(app);
    return none();
  });
  await guides.listEntries();
  await guides.getRecord('do-expensive-llms-perform-better');
  assert.equal(asked.length, 8);
  assert.equal(new Set(asked).size, 8);
});

const [first] = readGuides();
const changed = (change: Partial<SourceGuide>): (() => unknown) => {
  if (first === undefined) throw new Error('there is no guide');
  return () => started(none, [{ ...first, ...change }]);
};

test('a guide whose tool is not there, or refuses its arguments, stops the start by name', () => {
  const tool = (name: string, fields: Record<string, unknown>): (() => unknown) =>
    changed({ tool: { name, arguments_example: fields } });
  assert.throws(tool('compare_model', {}), /compare-llm-cost.*tool: compare_model: Unknown tool.*compare_models/);
  assert.throws(
    tool('compare_models', { promt: 'x' }),
    /compare-llm-cost.*tool: compare_models: .*"prompt" is missing/,
  );
  assert.throws(tool('compare_models', { prompt: '{nobody}' }), /\{nobody\} is not a known fact/);
  const step = (call: SourceGuide['steps'][number]['call']): (() => unknown) =>
    changed({ steps: [{ say: 'Do it', say_zh: '做', call }] });
  assert.throws(step({ get: '/t/run_code', query: { cod: '1' } }), /steps\.0: run_code: .*"code" is missing/);
  assert.throws(step({ post: '/t/validate_json', json: {} }), /steps\.0: validate_json/);
  assert.throws(changed({ answer: 'It costs {price_nothing}.' }), /\{price_nothing\} is not a known fact/);
  assert.doesNotThrow(changed({}));
});

test('the tool of a guide is described as the registry does, with what is off', async () => {
  const record = guideRecord.parse(await started(none).getRecord('transcribe-audio-url-via-mcp'));
  const tool = sample.tools.toolRegistry.get('transcribe_audio');
  assert.ok(record.tool.description.startsWith(tool.description));
  assert.match(record.tool.description, /Not available here\. .*tools\.speech\.enabled/);
  assert.match(record.answer, /A call costs \$0\.002\./);
});

test('facts come from the configuration', async () => {
  const guides = startGuides({
    baseUrl,
    freeQuota: parseMoney('0.125'),
    catalog,
    toolRegistry: sample.tools.toolRegistry,
    readBenchmark: none,
  });
  assert.match((await guides.getRecord('free-llm-api-for-agents-no-signup'))?.answer ?? '', /may spend \$0\.125 a day/);
});
