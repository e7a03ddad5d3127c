// web_search: asks the live web through a meta-search engine of our own.
import { z } from 'zod';
import { Problem } from '../../../../lib/problem.ts';
import { askService } from '../../services/service-client.ts';
import { toolFailed } from '../../problems.ts';
import type { ToolServices } from '../../engine/tool-dependencies.ts';
import { defineTool, type Tool } from '../../tool.ts';

const input = z.strictObject({
  query: z.string().trim().min(1).max(500).describe('what to search for'),
  count: z.int().min(1).max(20).default(10).describe('most results, 1 to 20'),
  page: z.int().min(1).max(10).default(1).describe('page of results, 1 to 10'),
  language: z
    .string()
    .regex(/^(?:all|[a-z]{2,3}(?:-[A-Za-z]{2,4})?)$/, 'must be a language code like en or pt-BR')
    .default('all')
    .describe('language of the results as a code like en or pt-BR, or all'),
  time_range: z
    .enum(['day', 'week', 'month', 'year'])
    .optional()
    .describe('only what was published within the last day, week, month or year'),
  category: z
    .enum(['general', 'news', 'science', 'it'])
    .default('general')
    .describe('which engines are asked: general, news, science or it'),
});

const output = z.object({
  query: z.string().describe('what was searched for'),
  results: z
    .array(
      z.object({
        title: z.string().describe('title of the page'),
        url: z.string().describe('its address'),
        snippet: z.string().describe('text from the page; empty where the engine gave none'),
        engines: z.array(z.string()).describe('engines that found it'),
        published: z.string().optional().describe('when it was published, where the engine knows'),
      }),
    )
    .describe('best first'),
  failed_engines: z
    .array(
      z.object({ engine: z.string().describe('name of the engine'), reason: z.string().describe('why, in its words') }),
    )
    .describe('engines that did not answer; what they know is missing above'),
  suggestions: z.array(z.string()).describe('other things to search for'),
});

/** What SearXNG answers. Its engines leave out what they do not know. */
const searched = z.looseObject({
  results: z.array(
    z.looseObject({
      url: z.string().nullish(),
      title: z.string().nullish(),
      content: z.string().nullish(),
      engine: z.string().nullish(),
      engines: z.array(z.string()).nullish(),
      publishedDate: z.string().nullish(),
    }),
  ),
  unresponsive_engines: z.array(z.tuple([z.string(), z.string()]).rest(z.unknown())).nullish(),
  suggestions: z.array(z.string()).nullish(),
});

type Found = z.output<typeof output>['results'];
type RawResult = z.output<typeof searched>['results'][number];

export function webSearchTool(services: ToolServices): Tool {
  return defineTool({
    name: 'web_search',
    title: 'Search the web',
    description:
      'Searches the live web through a self-hosted meta-search engine and answers with titles, addresses and snippets, best first. Read a result with fetch_page. Engines that failed are named.',
    input,
    aliases: { q: 'query', limit: 'count', max_results: 'count', lang: 'language' },
    output,
    example: { query: 'history of container shipping', count: 5 },
    price: '0.0002',
    needs: 'searxng',
    openWorld: true,
    run: async ({ query, count, page, language, time_range, category }, { signal }) => {
      const asked = new URLSearchParams({
        q: query,
        format: 'json',
        pageno: String(page),
        language,
        categories: category,
        safesearch: '1',
        ...(time_range === undefined ? {} : { time_range }),
      });
      const answer = await askService(services.urls, 'searxng', {
        path: `/search?${asked.toString()}`,
        headers: { accept: 'application/json' },
        maxBytes: 4_194_304,
        timeoutMs: 20_000,
        signal,
      });
      const { results, unresponsive_engines, suggestions } = read(answer);
      const failed = (unresponsive_engines ?? []).map(([engine, reason]) => ({ engine, reason }));
      const found = resultsOf(results);
      // An empty list would say that the web has nothing, which nobody knows.
      if (found.length === 0 && failed.length > 0)
        throw new Problem(
          toolFailed,
          `nothing was found, but these engines failed: ${failed.map(({ engine, reason }) => `${engine} (${reason})`).join(', ')}`,
          { members: { failed_engines: failed } },
        );
      return {
        result: {
          query,
          results: found.slice(0, count),
          failed_engines: failed,
          suggestions: (suggestions ?? []).slice(0, 10),
        },
      };
    },
  });
}

function read({ status, bytes }: { status: number; bytes: Uint8Array }): z.output<typeof searched> {
  if (status === 403)
    throw new Problem(
      toolFailed,
      'SearXNG does not answer in JSON; whoever runs it adds json to search.formats of its settings',
    );
  if (status !== 200) throw new Problem(toolFailed, `SearXNG answered with status ${status}`);
  try {
    return searched.parse(JSON.parse(new TextDecoder().decode(bytes)));
  } catch (error) {
    throw new Problem(toolFailed, 'SearXNG answered with something else than results', { cause: error });
  }
}

/** Each page once, with an address that can be fetched. */
function resultsOf(results: readonly RawResult[]): Found {
  const found = new Map<string, Found[number]>();
  for (const result of results) {
    const url = result.url ?? '';
    if (/^https?:\/\//i.test(url) && !found.has(url)) found.set(url, resultOf(url, result));
  }
  return [...found.values()];
}

function resultOf(url: string, { title, content, engine, engines, publishedDate }: RawResult): Found[number] {
  return {
    title: tidy(title ?? url, 300),
    url,
    snippet: tidy(content ?? '', 1_000),
    engines: engines ?? [engine ?? ''].filter((name) => name !== ''),
    ...(typeof publishedDate === 'string' ? { published: publishedDate } : {}),
  };
}

function tidy(text: string, most: number): string {
  return text.replace(/\s+/g, ' ').trim().slice(0, most);
}
