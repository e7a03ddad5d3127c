// The tool web_search: searches the live web through this installation's SearXNG. Operators that SearXNG would answer
// with a redirect are rejected, and languages are written as SearXNG writes them.
import { z } from 'zod';
import { Problem } from '../../../../lib/problem.ts';
import { callService } from '../../services/backing-services.ts';
import { toolFailed } from '../../problems.ts';
import type { ToolDependencies } from '../../tool.ts';
import { defineTool, type Tool } from '../../tool.ts';
import { parseSearchResponse, searchResult } from './search-response.ts';
import { findLanguage } from '../languages.ts';

/** `!!g words` redirects to Google and `!!` alone to the first result: neither is a search. */
const redirectOperator = /(?:^|\s)(!!\S*)/;

const queryField = z
  .string()
  .trim()
  .min(1)
  .max(500)
  .superRefine((query, context) => {
    const operator = redirectOperator.exec(query)?.[1];
    if (operator === undefined) return;
    context.addIssue({
      code: 'custom',
      message: `contains ${operator}, which redirects to another site instead of searching`,
      params: {
        fix: `Remove ${operator}, or put it in quotation marks to search for it. Accepted operators: !name for one engine or category (such as !wikipedia), :code for a language (such as :de).`,
      },
    });
  });

const languageFix =
  'Send all, or a language with or without a country, such as en, pt-BR, zh-CN or zh-TW. Scripts are accepted for Chinese alone (zh-Hans, zh-Hant).';

const languageField = z
  .string()
  .trim()
  .min(2)
  .max(40)
  .transform((text, context): string => {
    const code = toSearchLanguage(text);
    if (code !== undefined) return code;
    context.addIssue({
      code: 'custom',
      message: 'is not a language of the search engine',
      params: { fix: languageFix },
    });
    return z.NEVER;
  });

const input = z.strictObject({
  query: queryField.describe('Search query. A query with an operator that redirects to another site (!!) is rejected.'),
  count: z.int().min(1).max(20).default(10).describe('Maximum number of results, 1 to 20. Default: 10.'),
  page: z.int().min(1).max(10).default(1).describe('Page of results, 1 to 10. Default: 1.'),
  language: languageField
    .prefault('all')
    .describe('Language of the results, as a code such as en, pt-BR or zh-Hant, or all (default).'),
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
  results: z.array(searchResult).describe('Answers and infoboxes first, then pages, best first.'),
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

export function createWebSearchTool(services: ToolDependencies): Tool {
  return defineTool({
    name: 'web_search',
    title: 'Search the web',
    description:
      'Searches the live web through a self-hosted SearXNG meta-search engine and returns up to 20 results per call with title, URL and snippet, best first, direct answers and infoboxes before pages. Safe search is set to moderate. Names the search engines that failed. Use fetch_page to read a result, and deep_research for questions that need several sources.',
    input,
    aliases: { q: 'query', limit: 'count', max_results: 'count', lang: 'language' },
    output,
    example: { query: 'history of container shipping', count: 5 },
    price: '0.0002',
    needs: 'searxng',
    openWorld: true,
    run: async ({ query, count, page, language, time_range, category }, { signal }) => {
      const parameters = new URLSearchParams({
        q: query,
        format: 'json',
        pageno: String(page),
        language,
        categories: category,
        safesearch: '1',
        ...(time_range === undefined ? {} : { time_range }),
      });
      const answer = await callService(services.urls, 'searxng', {
        path: `/search?${parameters.toString()}`,
        headers: { accept: 'application/json' },
        maxBytes: 4_194_304,
        timeoutMs: 20_000,
        signal,
      });
      const { results, failed, suggestions, answered } = parseSearchResponse(answer);
      // If every engine failed, return an error: an empty list would mean that the web has nothing.
      if (results.length === 0 && failed.length > 0 && !answered)
        throw new Problem(
          toolFailed,
          `No results, and these search engines failed: ${failed.map(({ engine, reason }) => `${engine} (${reason})`).join(', ')}.`,
          { members: { failed_engines: failed } },
        );
      return {
        result: {
          query,
          results: results.slice(0, count),
          failed_engines: [...failed],
          suggestions: suggestions.slice(0, 10),
        },
      };
    },
  });
}

/** SearXNG writes the script of Chinese as a country that uses it. */
const chineseCodes: Readonly<Record<string, string>> = { Hans: 'zh-CN', Hant: 'zh-TW' };

/** Converts a language to SearXNG's code. Undefined if SearXNG has no equivalent. */
export function toSearchLanguage(text: string): string | undefined {
  if (text.toLowerCase() === 'all') return 'all';
  const found = findLanguage(text);
  return found === undefined ? undefined : toSearxngCode(new Intl.Locale(found.code), found.code);
}

function toSearxngCode(locale: Intl.Locale, written: string): string | undefined {
  const { language, script, region } = locale;
  if (!isPlainLocale(locale, written)) return undefined;
  const code = region === undefined ? language : `${language}-${region}`;
  if (script === undefined) return code;
  const exact = code === 'zh' ? (chineseCodes[script] ?? code) : code;
  return new Intl.Locale(exact).maximize().script === script ? exact : undefined;
}

/** Whether the tag has only a language, a script and a country: a variant, as in ca-valencia, would be lost. */
function isPlainLocale({ language, script, region }: Intl.Locale, code: string): boolean {
  const parts = [language, script, region].filter((part) => part !== undefined);
  return code === parts.join('-') && !/^\d/.test(region ?? '');
}
