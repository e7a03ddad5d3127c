// The response of SearXNG as results: its answers and infoboxes first, then each page once, all as plain text.
import { z } from 'zod';
import { Problem } from '../../../../lib/problem.ts';
import type { ServiceAnswer } from '../../services/service-client.ts';
import { toolFailed, unprocessable } from '../../problems.ts';
import { plainText } from './plain-text.ts';

export const result = z.object({
  kind: z
    .enum(['answer', 'infobox', 'page'])
    .describe('page; or infobox (a summary of the subject) or answer (a direct answer), which come first.'),
  title: z.string().describe('Title of the page or infobox; for an answer, the engine that gave it.'),
  url: z.string().optional().describe('URL of the page; absent for an answer or infobox without one.'),
  snippet: z.string().describe('Excerpt from the page, or text of the answer; empty if the engine returned none.'),
  engines: z.array(z.string()).describe('Engines that returned it.'),
  published: z.string().optional().describe('Publication date, if the engine knows it.'),
});
export type SearchResult = z.output<typeof result>;

export interface SearchResponse {
  readonly results: readonly SearchResult[];
  readonly failed: readonly { readonly engine: string; readonly reason: string }[];
  readonly suggestions: readonly string[];
  /** Whether any engine answered, be it with nothing. */
  readonly answered: boolean;
}

const text = z.string().nullish();
const listOf = <Item extends z.ZodType>(item: Item): z.ZodPipe<z.ZodTransform, z.ZodArray<Item>> =>
  z.preprocess(
    (given): unknown[] => (Array.isArray(given) ? given.filter((each: unknown) => item.safeParse(each).success) : []),
    z.array(item),
  ) as z.ZodPipe<z.ZodTransform, z.ZodArray<Item>>;
const origin = { engine: text, engines: listOf(z.string()) };

/** Engines leave out what they do not know; what one of them got wrong must not cost the results of the others. */
const searched = z.looseObject({
  results: z.array(
    z.looseObject({ url: text, title: text, content: text, publishedDate: text, ...origin }).catch(() => nothing),
  ),
  answers: listOf(
    z.looseObject({
      answer: text,
      url: text,
      translations: listOf(z.looseObject({ text: z.string() })),
      current: z.looseObject({ summary: text }).nullish(),
      ...origin,
    }),
  ),
  infoboxes: listOf(
    z.looseObject({
      infobox: z.string(),
      id: text,
      content: text,
      urls: listOf(z.looseObject({ url: z.string() })),
      attributes: listOf(z.looseObject({ label: z.string(), value: z.union([z.string(), z.number()]) })),
      ...origin,
    }),
  ),
  unresponsive_engines: listOf(z.tuple([z.string(), z.string()]).rest(z.unknown())),
  suggestions: listOf(z.string()),
});
const nothing = { engines: [] };
type Searched = z.output<typeof searched>;

/** @throws Problem (tool-failed, unprocessable) */
export function readResponse({ status, bytes, headers }: ServiceAnswer): SearchResponse {
  const said = jsonOf(bytes);
  refuseStatus(status, said);
  const read = searched.safeParse(said);
  if (!read.success)
    throw new Problem(toolFailed, 'SearXNG returned something other than results.', { cause: read.error });
  const { unresponsive_engines, suggestions } = read.data;
  return {
    results: resultsOf(read.data),
    failed: unresponsive_engines.map(([engine, reason]) => ({
      engine: plainText(engine, 100),
      reason: plainText(reason, 200),
    })),
    suggestions: suggestions.map((each) => plainText(each, 300)).filter((each) => each !== ''),
    // Only engines that answered have a time: total_0_wikipedia;dur=120.
    answered: /\btotal_\d+_[^;]+;dur=/.test(String(headers['server-timing'] ?? '')),
  };
}

function refuseStatus(status: number, said: unknown): void {
  if (status === 200) return;
  if (status === 403)
    throw new Problem(
      toolFailed,
      'SearXNG does not return JSON. The operator of this installation needs to add json to search.formats in its settings.',
    );
  const words = z.object({ error: z.string() }).safeParse(said).data?.error;
  if (status === 400 && words !== undefined)
    throw new Problem(unprocessable, `SearXNG does not accept this search: ${plainText(words, 300)}.`);
  throw new Problem(toolFailed, `SearXNG returned status ${status}.`);
}

function jsonOf(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return undefined;
  }
}

function resultsOf({ results, answers, infoboxes }: Searched): SearchResult[] {
  const pages = new Map<string, SearchResult>();
  for (const page of results) {
    const url = addressOf(page.url);
    if (url !== undefined && !pages.has(url)) pages.set(url, pageOf(url, page));
  }
  return [
    ...answers.map(answerOf).filter(({ snippet }) => snippet !== ''),
    ...infoboxes.map(infoboxOf).filter(({ title, snippet }) => title !== '' || snippet !== ''),
    ...pages.values(),
  ];
}

function pageOf(url: string, { title, content, publishedDate, ...from }: Searched['results'][number]): SearchResult {
  const published = plainText(publishedDate ?? '', 100);
  const named = plainText(title ?? '', 300);
  return {
    kind: 'page',
    title: named === '' ? url : named,
    url,
    snippet: plainText(content ?? '', 1_000),
    engines: enginesOf(from),
    ...(published === '' ? {} : { published }),
  };
}

function answerOf({ answer, translations, current, url, ...from }: Searched['answers'][number]): SearchResult {
  const words = answer ?? current?.summary ?? translations.map((each) => each.text).join('; ');
  const engines = enginesOf(from);
  return { kind: 'answer', title: engines[0] ?? 'answer', ...located(url), snippet: plainText(words, 1_000), engines };
}

function infoboxOf({ infobox, id, urls, content, attributes, ...from }: Searched['infoboxes'][number]): SearchResult {
  const facts = attributes.map(({ label, value }) => `${label.replace(/:\s*$/, '')}: ${String(value)}`);
  return {
    kind: 'infobox',
    title: plainText(infobox, 300),
    ...located([id, ...urls.map(({ url }) => url)].find((each) => addressOf(each) !== undefined)),
    snippet: plainText([content ?? '', facts.join('; ')].filter((part) => part !== '').join(' '), 1_000),
    engines: enginesOf(from),
  };
}

function located(url: string | null | undefined): { url?: string } {
  const address = addressOf(url);
  return address === undefined ? {} : { url: address };
}

/** An address that can be fetched, in characters that a URL has. */
function addressOf(url: string | null | undefined): string | undefined {
  if (typeof url !== 'string' || !/^https?:\/\//i.test(url) || !URL.canParse(url)) return undefined;
  return url.isWellFormed() && !/[\s\p{Cc}<>"]/u.test(url) ? url : new URL(url).href;
}

function enginesOf({ engine, engines }: { engine?: string | null | undefined; engines: readonly string[] }): string[] {
  const named = engines.length > 0 ? engines : [engine ?? ''];
  return named.map((name) => plainText(name, 100)).filter((name) => name !== '');
}
