// The tool web_search: searches the live web through this installation's SearXNG.
import { z } from 'zod';
import { Problem } from '../../../../lib/problem.ts';
import { askService } from '../../services/service-client.ts';
import { toolFailed } from '../../problems.ts';
import type { ToolDependencies } from '../../engine/tool-dependencies.ts';
import { defineTool, type Tool } from '../../tool.ts';

const input = z.strictObject({
  query: z.string().trim().min(1).max(500).describe('Search query.'),
  count: z.int().min(1).max(20).default(10).describe('Maximum number of results, 1 to 20. Default: 10.'),
  page: z.int().min(1).max(10).default(1).describe('Page of results, 1 to 10. Default: 1.'),
  language: z
    .string()
    .regex(/^(?:all|[a-z]{2,3}(?:-[A-Za-z]{2,4})?)$/, 'must be a language code such as en or pt-BR, or all')
    .default('all')
    .describe('Language of the results, as a code such as en or pt-BR, or all (default).'),
  time_range: z
    .enum(['day', 'week', 'month', 'year'])
    .optional()
    .describe('Return only results from the last day, week, month or year.'),
  category: z
    .enum(['general', 'news', 'science', 'it'])
    .default('general')
    .describe('Category of search engines to ask: general (default), news, science or it.'),
});

const output = z.object({
  query: z.string().describe('Query that was searched.'),
  results: z
    .array(
      z.object({
        title: z.string().describe('Title of the page.'),
        url: z.string().describe('URL of the page.'),
        snippet: z.string().describe('Excerpt from the page; empty if the engine returned none.'),
        engines: z.array(z.string()).describe('Engines that returned it.'),
        published: z.string().optional().describe('Publication date, if the engine knows it.'),
      }),
    )
    .describe('Results, best first.'),
  failed_engines: z
    .array(
      z.object({
        engine: z.string().describe('Name of the engine.'),
        reason: z.string().describe('Reason that SearXNG reports.'),
      }),
    )
    .describe('Engines that did not answer; their results are missing.'),
  suggestions: z.array(z.string()).describe('Suggested queries, at most 10.'),
});

/** The response of SearXNG. Its engines leave out what they do not know. */
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

type SearchResults = z.output<typeof output>['results'];
type RawResult = z.output<typeof searched>['results'][number];

export function webSearchTool(services: ToolDependencies): Tool {
  return defineTool({
    name: 'web_search',
    title: 'Search the web',
    description:
      'Searches the live web through a self-hosted SearXNG meta-search engine and returns up to 20 results per call with title, URL and snippet, best first. Safe search is set to moderate. Names the search engines that failed. Use fetch_page to read a result, and deep_research for questions that need several sources.',
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
          `No results, and these search engines failed: ${failed.map(({ engine, reason }) => `${engine} (${reason})`).join(', ')}.`,
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
      'SearXNG does not return JSON. The operator of this installation needs to add json to search.formats in its settings.',
    );
  if (status !== 200) throw new Problem(toolFailed, `SearXNG returned status ${status}.`);
  try {
    return searched.parse(JSON.parse(new TextDecoder().decode(bytes)));
  } catch (error) {
    throw new Problem(toolFailed, 'SearXNG returned something other than results.', { cause: error });
  }
}

/** Each page once, with an address that can be fetched. */
function resultsOf(results: readonly RawResult[]): SearchResults {
  const found = new Map<string, SearchResults[number]>();
  for (const result of results) {
    const url = result.url ?? '';
    if (/^https?:\/\//i.test(url) && !found.has(url)) found.set(url, resultOf(url, result));
  }
  return [...found.values()];
}

function resultOf(url: string, { title, content, engine, engines, publishedDate }: RawResult): SearchResults[number] {
  return {
    title: tidy(title ?? url, 300),
    url,
    snippet: tidy(content ?? '', 1_000),
    engines: engines ?? [engine ?? ''].filter((name) => name !== ''),
    ...(typeof publishedDate === 'string' ? { published: publishedDate } : {}),
  };
}

function tidy(text: string, maximum: number): string {
  return text.replace(/\s+/g, ' ').trim().slice(0, maximum);
}
