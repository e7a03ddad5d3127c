// Guides as records and pages show them, and claims that the evidence supports, contradicts or does not decide.
import assert from 'node:assert/strict';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { createAnswer, checkClaim, type Verdict } from '../../../../../api/catalog/guides/answer.ts';
import type { Benchmark } from '../../../../../api/catalog/guides/evidence.ts';
import { readGuides } from '../../../../../api/catalog/guides/load.ts';
import type { Claim } from '../../../../../api/catalog/guides/source.ts';
import { sampleBenchmark, sampleModel } from '../../../../support/catalog/benchmark.ts';
import { type GuideSite, startGuideSite } from '../../../../support/catalog/guides.ts';

const says = { says: 'It is so', says_zh: '确实如此' };
const bestValue: Claim = { kind: 'best-value', ...says };
const cheaper: Claim = { kind: 'cheaper-as-good', margin: 0.1, ...says };
const reliable: Claim = { kind: 'reliable', at_least: 0.8, ...says };

const cheap = sampleModel('cheap', { passed: 12, n: 15, usd: 0.002 });
const dear = sampleModel('dear', { passed: 14, n: 15, usd: 0.2 });
type Pair = Benchmark['pairs'][number];
const gap = (low: number, high: number, verdict: Pair['verdict']): Pair => ({
  a: 'cheap',
  b: 'dear',
  verdict,
  interval: [low, high],
});

const cases: readonly (readonly [name: string, claim: Claim, benchmark: Benchmark, verdict: Verdict, says: RegExp])[] =
  [
    [
      'the lowest cost per success',
      bestValue,
      sampleBenchmark([dear, cheap]),
      'supported',
      /^cheap \(12 of 15 runs passed, \$0\.002 per run\)$/,
    ],
    [
      'a model that is cheap a run and dear a success is not the best',
      bestValue,
      sampleBenchmark([sampleModel('lucky', { passed: 1, n: 200, usd: 0.002 }), dear]),
      'supported',
      /^dear/,
    ],
    [
      'no run passed',
      bestValue,
      sampleBenchmark([sampleModel('cheap', { passed: 0, n: 5, usd: 0.1 })]),
      'undecided',
      /no model/,
    ],
    [
      'a model without a result for every task is no winner',
      bestValue,
      { ...sampleBenchmark([cheap]), tasks: [{}, {}] },
      'undecided',
      /no model/,
    ],
    [
      'the named model is the best',
      { ...bestValue, model: 'cheap' },
      sampleBenchmark([dear, cheap]),
      'supported',
      /^cheap/,
    ],
    [
      'another one is the best',
      { ...bestValue, model: 'dear' },
      sampleBenchmark([dear, cheap]),
      'contradicted',
      /^cheap/,
    ],
    [
      'the named model was not measured',
      { ...bestValue, model: 'new' },
      sampleBenchmark([dear, cheap]),
      'undecided',
      /^cheap/,
    ],
    [
      'as good within the margin',
      cheaper,
      sampleBenchmark([dear, cheap], [gap(-0.09, 0.2, 'tie')]),
      'supported',
      /^cheap .* against dear /,
    ],
    [
      'as good, with the pair the other way round',
      cheaper,
      sampleBenchmark([dear, cheap], [{ a: 'dear', b: 'cheap', verdict: 'tie', interval: [-0.2, 0.09] }]),
      'supported',
      /^cheap/,
    ],
    [
      'worse',
      cheaper,
      sampleBenchmark([dear, cheap], [gap(-0.4, -0.1, 'b')]),
      'contradicted',
      /^cheap .* against dear /,
    ],
    [
      'a tie of few runs is not as good',
      cheaper,
      sampleBenchmark([dear, cheap], [gap(-0.5, 0.3, 'tie')]),
      'undecided',
      /^cheap/,
    ],
    [
      'an interval that nobody could compute',
      cheaper,
      sampleBenchmark([dear, cheap], [{ ...gap(0, 0, 'tie'), interval: null }]),
      'undecided',
      /^cheap/,
    ],
    ['one model alone', cheaper, sampleBenchmark([dear]), 'undecided', /too few/],
    [
      'a model whose upstream was away is not compared',
      cheaper,
      sampleBenchmark([dear, sampleModel('away', { passed: 0, n: 0, outages: 15, usd: 0 })]),
      'undecided',
      /too few/,
    ],
    [
      'reliable',
      reliable,
      sampleBenchmark([cheap, sampleModel('sure', { passed: 60, n: 60, usd: 1, interval: [0.94, 1] })]),
      'supported',
      /^sure \(60 of 60/,
    ],
    [
      'not reliable',
      reliable,
      sampleBenchmark([sampleModel('weak', { passed: 5, n: 60, usd: 1, interval: [0.04, 0.18] })]),
      'contradicted',
      /^weak/,
    ],
    [
      'perhaps reliable',
      reliable,
      sampleBenchmark([sampleModel('few', { passed: 3, n: 3, usd: 1, interval: [0.44, 1] })]),
      'undecided',
      /^few/,
    ],
  ];

test.each(cases)('%s', (_name, claim, benchmark, verdict, figures) => {
  const check = checkClaim(claim, benchmark);
  assert.equal(check.verdict, verdict);
  assert.match(check.en, figures);
  assert.match(check.zh, /\p{Script=Han}/u);
});

/** As the interface writes them, not as the code does. */
const slugs = [
  'compare-llm-cost-for-a-prompt',
  'reliable-json-models-for-agents',
  'translate-paper-pdf-without-breaking-equations',
  'best-model-for-research-agent',
  'generate-downloadable-pptx-with-mcp',
  'free-llm-api-for-agents-no-signup',
  'do-expensive-llms-perform-better',
  'run-open-source-ai-apps-without-install',
  'best-llm-for-academic-polishing',
  'toolbox-for-your-agent-zero-install',
  'transcribe-audio-url-via-mcp',
];
const appSlugs =
  'chat-ui-1 chat-ui-2 academic-assistant research-agent chat-ui-3 chat-ui-4 pdf-translate slide-generator'.split(' ');

const text = z.string().min(1);
const time = z.iso.datetime();
const evidence = z.strictObject({
  slug: z.enum(appSlugs),
  available: z.boolean(),
  url: z.url().nullable(),
  data_url: z.url().nullable(),
  updated: time.nullable(),
  runs_per_task: z.int(),
  models_tested: z.int(),
  models_with_complete_pass_rate: z.int(),
  best_measured_value: z.strictObject({ model: text, usd_per_run: z.number() }).nullable(),
  failed_all_tasks: z.array(z.string()),
  not_measured: z.array(z.string()),
});
const record = z.strictObject({
  slug: text,
  question: text,
  title_zh: text,
  answer: text,
  answer_zh: text,
  updated: time,
  method: z
    .string()
    .regex(
      /^live app tasks run repeatedly; pass\/fail, billed USD cost and latency recorded; models whose upstream was unavailable are excluded from quality conclusions\.$/i,
    ),
  tool: z.strictObject({
    name: text,
    description: text,
    arguments_example: z.record(z.string(), z.unknown()),
    mcp_endpoint: z.url(),
    openapi: z.url(),
  }),
  steps: z.array(text).min(1),
  evidence: z.array(evidence),
  page: z.url(),
  machine_readable: z.url(),
  license: z.literal('CC BY 4.0'),
});

let site: GuideSite;
beforeAll(async () => {
  site = await startGuideSite();
});
afterAll(() => site.stop());

const get = async (path: string): Promise<Response> => fetch(`${site.baseUrl}${path}`);

test('the index names the guides of the interface, each with its addresses [spec guides.slugs endpoint.agent-guides]', async () => {
  const answer = await get('/api/agent-guides');
  assert.equal(answer.status, 200);
  const entry = z.strictObject({
    slug: text,
    question: text,
    title_zh: text,
    updated: time,
    page: z.url(),
    machine_readable: z.url(),
    license: z.literal('CC BY 4.0'),
  });
  const entries = z.array(entry).parse(await answer.json());
  assert.deepEqual(
    entries.map(({ slug }) => slug),
    slugs,
  );
  for (const { slug, page, machine_readable: at } of entries) {
    assert.equal(page, `${site.baseUrl}/guides/${slug}`);
    const again = record.parse(await (await fetch(at)).json());
    assert.equal(again.machine_readable, at);
    assert.equal(again.slug, slug);
  }
});

test.each(slugs)('%s has the fields of the interface and no other [spec guides.record]', async (slug) => {
  const answer = await get(`/api/agent-guides/${slug}`);
  assert.equal(answer.status, 200);
  const { tool, question } = record.parse(await answer.json());
  assert.match(question, /\?$/);
  assert.equal(tool.mcp_endpoint, `${site.baseUrl}/mcp`);
  assert.equal((await fetch(tool.openapi)).status, 200);
  assert.ok(site.api.tools.toolRegistry.get(tool.name).description.length > 0);
});

test('a guide that is not there is answered with 404 and the nearest [spec endpoint.agent-guides]', async () => {
  const problem = z.looseObject({ type: z.string(), detail: z.string(), nearest: z.array(z.string()) });
  const near = await get('/api/agent-guides/best-model-for-research-agents');
  assert.equal(near.status, 404);
  const { type, detail, nearest } = problem.parse(await near.json());
  assert.equal(type, `${site.baseUrl}/problems/unknown-guide`);
  assert.equal(nearest[0], 'best-model-for-research-agent');
  assert.match(detail, /Did you mean best-model-for-research-agent.*GET \/api\/agent-guides lists all guides\.$/);
  const far = await get('/api/agent-guides/zzzz');
  assert.deepEqual([far.status, problem.parse(await far.json()).nearest], [404, []]);
  assert.equal((await get('/api/agent-guides?page=2')).status, 400);
  assert.equal((await get(`/api/agent-guides/${'a'.repeat(101)}`)).status, 400);
});

test('OpenAPI lists the slugs', async () => {
  const document = z
    .looseObject({ paths: z.record(z.string(), z.unknown()) })
    .parse(await (await get('/openapi.json')).json());
  assert.ok(JSON.stringify(document.paths['/api/agent-guides/{slug}']).includes(JSON.stringify(slugs)));
});

test('guides are in llms.txt, in agent-capabilities.json, and resources on MCP', async () => {
  const llms = await (await get('/llms.txt')).text();
  const capabilities = JSON.stringify(await (await get('/agent-capabilities.json')).json());
  const client = new Client({ name: 'test', version: '1' });
  await client.connect(new StreamableHTTPClientTransport(new URL(`${site.baseUrl}/mcp`)));
  const { resources } = await client.listResources();
  assert.deepEqual(
    resources.map(({ name }) => name),
    slugs,
  );
  for (const { uri, name } of resources) {
    assert.ok(llms.includes(`](${uri})`), uri);
    assert.ok(capabilities.includes(`"${uri}"`), uri);
    const { contents } = await client.readResource({ uri });
    const [content] = z.array(z.looseObject({ text: z.string(), mimeType: z.string() })).parse(contents);
    assert.equal(content?.mimeType, 'application/json');
    assert.deepEqual(JSON.parse(content.text), await (await get(`/api/agent-guides/${name}`)).json());
  }
  await client.close();
});

/** Names that a Chinese text writes in Latin letters. */
const names = new Set(
  (
    'JSON PDF URL HTTP HTTPS API MCP Schema Markdown PowerPoint Keynote LibreOffice BabelDOC Harper Whisper JavaScript ' +
    'AI UTC GET POST PPTX USD MB Bearer Authorization models summary model topic outline language job JOB text wav ogg'
  ).split(' '),
);

/** Words of a Chinese text that are neither names nor code. */
function foreign(chinese: string): string[] {
  const words = chinese
    .replaceAll(/(?:\{base_url\}|https?:\/\/)[!-~]+|\{[a-z_]+\}/g, '')
    .match(/[A-Za-z][A-Za-z0-9_./=-]*/g);
  return (words ?? []).filter(
    (word) =>
      !names.has(word) &&
      !/[_./=\d-]/.test(word) &&
      !site.api.tools.toolRegistry.tools.some(({ name }) => name === word),
  );
}

test('every Chinese text is Chinese, but for names and code', async () => {
  const measured = new Map([
    [
      'research-agent',
      sampleBenchmark([
        sampleModel('alpha-v4-flash', { passed: 12, n: 15, usd: 0.002 }),
        sampleModel('gamma5.2', { passed: 14, n: 15, usd: 0.2 }),
      ]),
    ],
  ]);
  const words: string[] = [];
  for (const source of readGuides()) {
    const detail = await site.api.catalog.guides.getDetail(source.slug);
    assert.ok(detail !== undefined);
    const texts = [
      detail.record.title_zh,
      detail.record.answer_zh,
      detail.method_zh,
      createAnswer(source, measured).answer_zh,
      ...detail.steps.map(({ say_zh }) => say_zh),
      ...source.claims.map(({ says_zh }) => says_zh),
    ];
    for (const chinese of texts) {
      assert.match(chinese, /\p{Script=Han}{2}/u, chinese);
      assert.doesNotMatch(chinese, /[\p{Script=Han}，。；：、）“”] +[\p{Script=Han}，。；：、（“”]/u, chinese);
      assert.doesNotMatch(chinese, /\p{Script=Han}[,;:?]/u, chinese);
      words.push(...foreign(chinese));
    }
    for (const english of [detail.record.question, detail.record.answer, ...detail.steps.map(({ say }) => say)])
      assert.doesNotMatch(english, /\p{Script=Han}/u);
  }
  assert.deepEqual([...new Set(words)], []);
});

test('a word that is no name is found in a Chinese text', () => {
  assert.deepEqual(foreign('调用 make_slides 并 download 文件 PDF'), ['download']);
});
