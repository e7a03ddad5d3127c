// Parses a SearXNG response into results: answers and infoboxes first, then each page once, all as plain text.
import { z } from 'zod';
import { Parser } from 'htmlparser2';
import { Problem } from '../../../../lib/problem.ts';
import type { ServiceAnswer } from '../../services/backing-services.ts';
import { toolFailed, unprocessable } from '../../problems.ts';

export const searchResult = z.object({
  kind: z
    .enum(['answer', 'infobox', 'page'])
    .describe('page; or infobox (a summary of the subject) or answer (a direct answer), which come first.'),
  title: z.string().describe('Title of the page or infobox; for an answer, the engine that gave it.'),
  url: z.string().optional().describe('URL of the page; absent for an answer or infobox without one.'),
  snippet: z.string().describe('Excerpt from the page, or text of the answer; empty if the engine returned none.'),
  engines: z.array(z.string()).describe('Engines that returned it.'),
  published: z.string().optional().describe('Publication date, if the engine knows it.'),
});
export type SearchResult = z.output<typeof searchResult>;

export interface SearchResponse {
  readonly results: readonly SearchResult[];
  readonly failed: readonly { readonly engine: string; readonly reason: string }[];
  readonly suggestions: readonly string[];
  /** Whether any engine answered, even without results. */
  readonly answered: boolean;
}

const optionalText = z.string().nullish();
const createListSchema = <Item extends z.ZodType>(item: Item): z.ZodPipe<z.ZodTransform, z.ZodArray<Item>> =>
  z.preprocess(
    (given): unknown[] => (Array.isArray(given) ? given.filter((each: unknown) => item.safeParse(each).success) : []),
    z.array(item),
  ) as z.ZodPipe<z.ZodTransform, z.ZodArray<Item>>;
const engineFields = { engine: optionalText, engines: createListSchema(z.string()) };

/** Engines leave out what they do not know. A malformed result of one engine must not cost the results of the others. */
const searxngResponse = z.looseObject({
  results: z.array(
    z
      .looseObject({
        url: optionalText,
        title: optionalText,
        content: optionalText,
        publishedDate: optionalText,
        ...engineFields,
      })
      .catch(() => emptyPage),
  ),
  answers: createListSchema(
    z.looseObject({
      answer: optionalText,
      url: optionalText,
      translations: createListSchema(z.looseObject({ text: z.string() })),
      current: z.looseObject({ summary: optionalText }).nullish(),
      ...engineFields,
    }),
  ),
  infoboxes: createListSchema(
    z.looseObject({
      infobox: z.string(),
      id: optionalText,
      content: optionalText,
      urls: createListSchema(z.looseObject({ url: z.string() })),
      attributes: createListSchema(z.looseObject({ label: z.string(), value: z.union([z.string(), z.number()]) })),
      ...engineFields,
    }),
  ),
  unresponsive_engines: createListSchema(z.tuple([z.string(), z.string()]).rest(z.unknown())),
  suggestions: createListSchema(z.string()),
});
const emptyPage = { engines: [] };
type SearxngResponse = z.output<typeof searxngResponse>;

/** @throws Problem (tool-failed, unprocessable) */
export function parseSearchResponse({ status, bytes, headers }: ServiceAnswer): SearchResponse {
  const body = parseJson(bytes);
  assertSuccess(status, body);
  const read = searxngResponse.safeParse(body);
  if (!read.success)
    throw new Problem(toolFailed, 'SearXNG returned something other than results.', { cause: read.error });
  const { unresponsive_engines, suggestions } = read.data;
  return {
    results: toResults(read.data),
    failed: unresponsive_engines.map(([engine, reason]) => ({
      engine: toPlainText(engine, 100),
      reason: toPlainText(reason, 200),
    })),
    suggestions: suggestions.map((each) => toPlainText(each, 300)).filter((each) => each !== ''),
    // Only engines that answered have a time: total_0_wikipedia;dur=120.
    answered: /\btotal_\d+_[^;]+;dur=/.test(String(headers['server-timing'] ?? '')),
  };
}

function assertSuccess(status: number, body: unknown): void {
  if (status === 200) return;
  if (status === 403)
    throw new Problem(
      toolFailed,
      'SearXNG does not return JSON. The operator of this installation needs to add json to search.formats in its settings.',
    );
  const words = z.object({ error: z.string() }).safeParse(body).data?.error;
  if (status === 400 && words !== undefined)
    throw new Problem(unprocessable, `SearXNG does not accept this search: ${toPlainText(words, 300)}.`);
  throw new Problem(toolFailed, `SearXNG returned status ${status}.`);
}

function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return undefined;
  }
}

function toResults({ results, answers, infoboxes }: SearxngResponse): SearchResult[] {
  const pages = new Map<string, SearchResult>();
  for (const page of results) {
    const url = parseAddress(page.url);
    if (url !== undefined && !pages.has(url)) pages.set(url, toPageResult(url, page));
  }
  return [
    ...answers.map(toAnswerResult).filter(({ snippet }) => snippet !== ''),
    ...infoboxes.map(toInfoboxResult).filter(({ title, snippet }) => title !== '' || snippet !== ''),
    ...pages.values(),
  ];
}

function toPageResult(
  url: string,
  { title, content, publishedDate, ...from }: SearxngResponse['results'][number],
): SearchResult {
  const published = toPlainText(publishedDate ?? '', 100);
  const named = toPlainText(title ?? '', 300);
  return {
    kind: 'page',
    title: named === '' ? url : named,
    url,
    snippet: toPlainText(content ?? '', 1_000),
    engines: listEngines(from),
    ...(published === '' ? {} : { published }),
  };
}

function toAnswerResult({
  answer,
  translations,
  current,
  url,
  ...from
}: SearxngResponse['answers'][number]): SearchResult {
  const words = answer ?? current?.summary ?? translations.map((each) => each.text).join('; ');
  const engines = listEngines(from);
  return {
    kind: 'answer',
    title: engines[0] ?? 'answer',
    ...toUrlField(url),
    snippet: toPlainText(words, 1_000),
    engines,
  };
}

function toInfoboxResult({
  infobox,
  id,
  urls,
  content,
  attributes,
  ...from
}: SearxngResponse['infoboxes'][number]): SearchResult {
  const facts = attributes.map(({ label, value }) => `${label.replace(/:\s*$/, '')}: ${String(value)}`);
  return {
    kind: 'infobox',
    title: toPlainText(infobox, 300),
    ...toUrlField([id, ...urls.map(({ url }) => url)].find((each) => parseAddress(each) !== undefined)),
    snippet: toPlainText([content ?? '', facts.join('; ')].filter((part) => part !== '').join(' '), 1_000),
    engines: listEngines(from),
  };
}

function toUrlField(url: string | null | undefined): { url?: string } {
  const address = parseAddress(url);
  return address === undefined ? {} : { url: address };
}

/** Returns an address that can be fetched, percent-encoded where a URL needs it. */
function parseAddress(url: string | null | undefined): string | undefined {
  if (typeof url !== 'string' || !/^https?:\/\//i.test(url) || !URL.canParse(url)) return undefined;
  return url.isWellFormed() && !/[\s\p{Cc}<>"]/u.test(url) ? url : new URL(url).href;
}

function listEngines({
  engine,
  engines,
}: {
  engine?: string | null | undefined;
  engines: readonly string[];
}): string[] {
  const named = engines.length > 0 ? engines : [engine ?? ''];
  return named.map((name) => toPlainText(name, 100)).filter((name) => name !== '');
}

// Plain text: no markup, entities, control characters or lone surrogates. Some engines of SearXNG pass on what a page
// or an API returned.

/** Elements that engines use to mark words, or that come with an excerpt of a page. */
const markupElements: ReadonlySet<string> = new Set(
  (
    'a abbr address article aside b bdi bdo big blockquote body br button center cite code dd del details dfn div dl dt em figcaption figure font footer form ' +
    'h1 h2 h3 h4 h5 h6 head header hr html i iframe img input ins kbd label li link main mark meta nav noscript ol p picture pre q s samp script section small source span strike ' +
    'strong style sub summary sup svg table tbody td template textarea tfoot th thead time title tr tt u ul var video wbr'
  ).split(' '),
);
const voidElements: ReadonlySet<string> = new Set(['br', 'hr', 'img', 'input', 'link', 'meta', 'source', 'wbr']);
/** These can stand within a word; all others separate words. */
const inlineElements: ReadonlySet<string> = new Set(
  'a abbr b bdi bdo big cite code del dfn em font i ins kbd mark q s samp small span strike strong sub sup tt u var wbr'.split(
    ' ',
  ),
);

/** Engines escape text twice at most. */
const maxPasses = 3;

/** Returns the text on one line, cut to a maximum length between characters. */
export function toPlainText(text: string, maximum: number): string {
  let plain = text.slice(0, maximum * 8);
  for (let pass = 0; pass < maxPasses; pass++) {
    const next = stripMarkup(plain);
    if (next === plain) break;
    plain = next;
  }
  const line = plain
    .replaceAll(/\p{Cs}/gu, '')
    .replaceAll(/[\s\p{Cc}\u2028\u2029]+/gu, ' ')
    // Bidirectional controls would change the direction of the text after them.
    .replaceAll(/[\u202a-\u202e\u2066-\u2069\ufeff\ufffe\uffff]/g, '')
    .trim();
  return line.length <= maximum
    ? line
    : line
        .slice(0, maximum)
        .replace(/[\ud800-\udbff]$/, '')
        .trimEnd();
}

interface TextPiece {
  text: string;
}

function stripMarkup(text: string): string {
  if (!/[<&]/.test(text)) return text;
  const pieces: TextPiece[] = [];
  /** Open tags. They are words of the text unless their closing tag is found. */
  const open: { readonly name: string; readonly piece: TextPiece }[] = [];
  const parser = new Parser(
    {
      ontext: (part) => {
        pieces.push({ text: part });
      },
      onopentag: (name, attributes) => {
        const tag = text.slice(parser.startIndex, parser.endIndex + 1);
        const piece = { text: tag };
        pieces.push(piece);
        if (isMarkup(name, attributes, text.charAt(parser.endIndex + 1))) piece.text = toSpacing(name);
        else open.push({ name, piece });
      },
      onclosetag: (name, isImplied) => {
        const last = open.findLastIndex((each) => each.name === name);
        if (isImplied) return;
        pieces.push({
          text: markupElements.has(name) ? toSpacing(name) : text.slice(parser.startIndex, parser.endIndex + 1),
        });
        const [opened] = last < 0 ? [] : open.splice(last, 1);
        if (opened !== undefined && markupElements.has(name)) opened.piece.text = toSpacing(name);
      },
    },
    { decodeEntities: true, lowerCaseTags: true },
  );
  parser.end(text);
  return pieces.map((piece) => piece.text).join('');
}

/**
 * A lone `<a>` is a word of the text, as in the title of a page about that element. Directly before a word, it is
 * markup.
 */
function isMarkup(name: string, attributes: Readonly<Record<string, string>>, next: string): boolean {
  if (!markupElements.has(name)) return false;
  return voidElements.has(name) || Object.keys(attributes).length > 0 || /[\p{L}\p{N}]/u.test(next);
}

function toSpacing(name: string): string {
  return inlineElements.has(name) ? '' : ' ';
}
