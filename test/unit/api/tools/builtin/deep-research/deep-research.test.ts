// deep_research over a scripted search engine, scripted pages and a scripted model: what is cited was read, and the
// money holds.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { formatMoney, parseMoney } from '../../../../../../api/billing/ledger/money.ts';
import { keepCitations } from '../../../../../../api/tools/builtin/deep-research/prompts.ts';
import {
  Research,
  type ResearchOptions,
  type ResearchWeb,
} from '../../../../../../api/tools/builtin/deep-research/research.ts';
import { createDeepResearchTool } from '../../../../../../api/tools/builtin/deep-research/deep-research.ts';
import type { Fetcher } from '../../../../../../api/tools/fetch/fetcher.ts';
import { GuardedFetcher } from '../../../../../../api/tools/fetch/fetcher.ts';
import { fetchFailed } from '../../../../../../api/tools/problems.ts';
import type { ToolDependencies } from '../../../../../../api/tools/tool.ts';
import { Problem } from '../../../../../../lib/problem.ts';
import { reports, runTool, toolContext } from '../../../../../support/tools/context.ts';
import { maxTokens, createAnswer, startModelLab, type ModelLab } from '../../../../../support/tools/model-lab.ts';

let lab: ModelLab;
let engine: Server;
/** Answers by the role that the instructions give it. */
const model = (answer: string) =>
  createAnswer((said, system = '') => {
    if (system.startsWith('You plan'))
      return said.includes('Searched so far')
        ? '{"queries": ["third"]}'
        : '```json\n{"queries": ["first", "second"]}\n```';
    if (system.startsWith('You take notes'))
      return said.includes('about cats') ? 'NOTHING.' : `Noted: ${/<page>\n(.*)\n<\/page>/s.exec(said)?.[1] ?? ''}`;
    return answer;
  }, '0.0001');

beforeAll(async () => {
  lab = await startModelLab({
    models: {
      'alpha-v4-flash': model(
        'It is so [2], and so [1; 9]. See [this](https://evil.test/x) or https://evil.test/y.\n\n## Sources\n[1] https://evil.test/',
      ),
      'beta-K3': model('It is so, and I cite nothing.'),
    },
    freeQuota: '10',
  });
  engine = createServer((request, response) => {
    const query = new URL(request.url ?? '', 'http://engine').searchParams.get('q') ?? '';
    const results = ['a', 'b', 'c'].map((page) => ({
      url: `https://pages.test/${query}-${page}`,
      title: `${query} ${page}`,
      content: 'snippet',
    }));
    response.writeHead(200, { 'content-type': 'application/json' }).end(
      JSON.stringify({
        results: [...results, { url: 'file:///etc/passwd', title: 'no', content: '' }],
        unresponsive_engines: [],
      }),
    );
  });
  engine.listen(0, '127.0.0.1');
  await once(engine, 'listening');
});
afterAll(async () => {
  engine.close();
  await lab.stop();
});

const slug =
  (expected: string) =>
  (error: unknown): boolean =>
    error instanceof Problem && error.type.slug === expected;

/** Pages of plain text by their address; one is broken, one has nothing to do with the question. */
const fetcher: Fetcher = {
  fetch: (request) => fetcher.get(request),
  check: () => Promise.resolve(),
  get: ({ url }) => {
    if (url.endsWith('first-b')) return Promise.reject(new Problem(fetchFailed, 'it answered with status 404'));
    const text = url.endsWith('second-a') ? 'all about cats' : `facts of ${url.slice(url.lastIndexOf('/') + 1)}`;
    return Promise.resolve({
      url,
      status: 200,
      headers: new Headers({ 'content-type': 'text/plain' }),
      mediaType: 'text/plain',
      bytes: new TextEncoder().encode(text),
    });
  },
};

function services(urls: ToolDependencies['urls']): ToolDependencies {
  return { catalog: lab.catalog, maxTokens, urls, fetcher } as ToolDependencies;
}

function engineUrl(): string {
  const address = engine.address();
  return typeof address === 'object' && address !== null ? `http://127.0.0.1:${address.port}` : '';
}

const output = z.object({
  answer: z.string(),
  sources: z.array(z.object({ number: z.int(), url: z.string() })),
  also_read: z.array(z.object({ url: z.string() })),
  searches: z.array(z.string()),
  unread: z.array(z.object({ url: z.string(), reason: z.string() })),
  budget_reached: z.boolean(),
  model_calls: z.int(),
});

test('plans, searches, reads, looks for gaps and writes, and cites only what it has read', async () => {
  const { seen, report } = reports();
  const models = lab.spender();
  const { result } = await runTool(
    createDeepResearchTool(services({ searxng: engineUrl() })),
    { question: 'How is it?', max_usd: 0.5 },
    toolContext({ models, report }),
  );
  const { answer, sources, also_read, searches, unread, budget_reached, model_calls } = output.parse(result);
  assert.deepEqual(searches, ['first', 'second', 'third']);
  assert.equal(answer, 'It is so [1], and so [2]. See this or.');
  assert.deepEqual(
    sources.map(({ number }) => number),
    [1, 2],
  );
  const read = [...sources, ...also_read].map(({ url }) => url).sort();
  assert.deepEqual(
    read,
    ['first-a', 'first-c', 'second-b', 'third-a', 'third-b', 'third-c'].map((page) => `https://pages.test/${page}`),
  );
  assert.deepEqual(unread, [{ url: 'https://pages.test/first-b', reason: 'it answered with status 404' }]);
  assert.deepEqual(
    [budget_reached, model_calls, formatMoney(models.spending.cost)],
    [false, models.spending.calls, formatMoney(parseMoney(`0.00${String(models.spending.calls).padStart(2, '0')}`))],
  );
  assert.ok(
    seen.length > 5 && seen.every(({ done }, index) => done >= (seen[index - 1]?.done ?? 0) - 0.3 && done <= 1),
  );
  assert.match(seen.at(-1)?.message ?? '', /^writing from 6 pages$/);
});

test('without a search service, explains how to enable it and spends nothing', async () => {
  const models = lab.spender();
  await assert.rejects(
    runTool(createDeepResearchTool(services({})), { question: 'How is it?' }, toolContext({ models })),
    slug('service-off'),
  );
  assert.equal(models.spending.calls, 0);
});

const web: ResearchWeb = {
  search: (query) =>
    Promise.resolve(['a', 'b', 'c'].map((page) => ({ url: `https://pages.test/${query}-${page}`, title: page }))),
  read: (url) => Promise.resolve({ url, title: '', text: `facts of ${url}` }),
};
const depth = { rounds: 2, queries: 3, pages: 9 };

function research(changes: Partial<ResearchOptions>): Research {
  return new Research({
    question: 'How is it?',
    depth,
    model: 'alpha-v4-flash',
    models: lab.spender(),
    web,
    limit: parseMoney('1'),
    report: () => undefined,
    ...changes,
  });
}

test('never exceeds the budget: reads less, or rejects the call before it spends money', async () => {
  const outcomes = new Set<string>();
  for (const limit of ['0.0001', '0.001', '0.003', '0.0033', '0.0036', '0.004', '0.005', '0.01']) {
    const models = lab.spender();
    const outcome = await research({ models, limit: parseMoney(limit) })
      .run()
      .then(
        ({ budgetReached: cut, sources }) => {
          assert.ok(sources.length > 0);
          return cut ? 'cut' : 'whole';
        },
        (error: unknown) => (error instanceof Problem ? 'refused' : assert.fail(String(error))),
      );
    outcomes.add(outcome);
    assert.ok(models.spending.cost <= parseMoney(limit), `${formatMoney(models.spending.cost)} of ${limit}`);
  }
  assert.deepEqual([...outcomes].sort(), ['cut', 'refused', 'whole']);
});

test('asks again for an answer that cites nothing, then rejects it', async () => {
  const models = lab.spender();
  await assert.rejects(research({ models, model: 'beta-K3' }).run(), /without citing what it read/);
});

test('rejects an answer without relevant pages', async () => {
  await assert.rejects(
    research({ web: { ...web, read: () => Promise.reject(new Error('secret')) } }).run(),
    (error: unknown) => slug('tool-failed')(error) && !JSON.stringify((error as Problem).members).includes('secret'),
  );
  await assert.rejects(research({ web: { ...web, search: () => Promise.resolve([]) } }).run(), slug('tool-failed'));
});

/** The problem in which a research that finds nothing ends. */
async function nothing(changes: Partial<ResearchWeb>): Promise<Problem> {
  const ended: unknown = await research({ web: { ...web, ...changes }, depth: { ...depth, rounds: 1 } })
    .run()
    .catch((error: unknown) => error);
  assert.ok(ended instanceof Problem, String(ended));
  return ended;
}
const failing = (words: string) => (): Promise<never> => Promise.reject(new Problem(fetchFailed, words));

test('reports the outcome of each search and page if it finds nothing', async () => {
  const empty = await nothing({ search: () => Promise.resolve([]) });
  assert.equal(
    empty.message,
    'No relevant page was found. Searches: "first" (0 results), "second" (0 results). Rephrase the question.',
  );
  const down = await nothing({ search: failing('SearXNG did not answer.') });
  assert.match(down.message, /"first" \(failed: SearXNG did not answer\), "second" \(failed: .*try again later/);
  assert.deepEqual(down.members['search_outcomes'], [
    { query: 'first', outcome: 'failed: SearXNG did not answer' },
    { query: 'second', outcome: 'failed: SearXNG did not answer' },
  ]);
  const unread = await nothing({ read: failing('https://pages.test returned status 403.') });
  assert.match(unread.message, /"first" \(3 results\)/);
  assert.match(
    unread.message,
    /Pages that failed: https:\/\/pages\.test\/first-a \(https:\/\/pages\.test returned status 403\), .*\. Try again/,
  );
  assert.equal((unread.members['unread'] as unknown[]).length, 6);
  const beside = await nothing({ read: (url) => Promise.resolve({ url, title: '', text: 'all about cats' }) });
  assert.match(beside.message, /Pages that say nothing about the question: https:\/\/pages\.test\/.*Rephrase/);
  assert.equal((beside.members['irrelevant'] as unknown[]).length, 6);
});

test('reports the same for the search engine and for fetched pages', async () => {
  const run = async (urls: ToolDependencies['urls'], all: Partial<ToolDependencies> = {}): Promise<unknown> =>
    runTool(
      createDeepResearchTool({ ...services(urls), ...all }),
      { question: 'How is it?', depth: 'quick' },
      toolContext({ models: lab.spender() }),
    ).catch((error: unknown) => error);
  const away = await run({ searxng: 'http://127.0.0.1:1' });
  assert.match(String(away), /"first" \(failed: The backing service cannot be reached: SearXNG/);
  const refused = await run({ searxng: engineUrl() }, { fetcher: new GuardedFetcher() });
  assert.match(
    String(refused),
    /https:\/\/pages\.test\/first-a \(The address in url has a host that is not a public name\)/,
  );
});

test('renumbers citations of existing sources, and keeps the URL of a link only if the page was read', () => {
  const read = ['a', 'b', 'c'].map((name) => ({ title: name, url: `https://pages.test/${name}` }));
  const cited = keepCitations(
    'One [3]. Two [1, 3][7]. [b](https://pages.test/b) ![x](https://evil.test/x.png) [y](javascript:alert(1)) <https://evil.test/> https://pages.test/c.',
    read,
  );
  assert.equal(cited.answer, 'One [1]. Two [2][1]. [b](https://pages.test/b) x y https://pages.test/c.');
  assert.deepEqual(
    cited.sources.map(({ number, title }) => `${number} ${title}`),
    ['1 c', '2 a'],
  );
});
