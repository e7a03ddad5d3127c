// The tool fetch_page: fetches a web page, detects its format, and returns it as Markdown with its title and links.
import { TextDecoder } from 'node:util';
import { z } from 'zod';
import { urlField } from '../../inputs/fields.ts';
import type { ToolDependencies } from '../../tool.ts';
import { defineTool, type Tool } from '../../tool.ts';
import { Problem } from '../../../../lib/problem.ts';
import { readPdf, isPdf } from '../extract-pdf/extract-pdf.ts';
import type { FetchResult } from '../../fetch/fetcher.ts';
import { unprocessable } from '../../problems.ts';
import type { WorkerCall, Workers } from '../../engine/workers/workers.ts';

const input = z.strictObject({
  url: urlField('URL of the page'),
  max_characters: z
    .int()
    .min(100)
    .max(500_000)
    .default(50_000)
    .describe('Maximum characters of text to return, 100 to 500000. Default: 50000.'),
  whole_page: z
    .boolean()
    .default(false)
    .describe('Whether to keep the navigation, footers and similar parts of an HTML page. Default: false.'),
});

export const pageOutput = z.object({
  url: z.string().describe('Final URL, after redirects.'),
  fetched_as: z.enum(['html', 'pdf', 'json', 'text']).describe('Format it was read as.'),
  media_type: z.string().describe('Media type that the server reported.'),
  title: z.string().optional(),
  byline: z.string().optional().describe('Author.'),
  site: z.string().optional().describe('Name of the site.'),
  published: z.string().optional().describe('Publication date, as the page states it.'),
  description: z.string().optional(),
  language: z.string().optional().describe('Language, as the page declares it.'),
  markdown: z
    .string()
    .describe(
      'Text: Markdown from HTML, text with one heading per page from PDF, JSON in a code block, other text as it is.',
    ),
  truncated: z.boolean().describe('Whether the text was cut at max_characters.'),
  links: z.array(z.object({ text: z.string(), url: z.string() })).describe('Distinct links in the text, at most 200.'),
  word_count: z.int().describe('Word count of the text before it was cut.'),
});

export function createFetchPageTool(services: ToolDependencies): Tool {
  return defineTool({
    name: 'fetch_page',
    title: 'Read a web page',
    description:
      'Fetches a public web page and returns its main content as Markdown, with title, author and up to 200 links. Reads HTML, PDF (the first 100 pages), JSON, XML and other text of up to 10 MB. Does not run the scripts of the page; for a page that is empty without them, use screenshot.',
    input,
    aliases: { link: 'url', page: 'url', max_length: 'max_characters' },
    output: pageOutput,
    example: { url: 'https://example.com/' },
    price: '0.0002',
    openWorld: true,
    limitMs: 60_000,
    run: async ({ url, max_characters, whole_page }, context) => {
      const { signal } = context;
      const file = await services.fetcher.get({
        url,
        maxBytes: 10_000_000,
        headers: {
          accept: 'text/html,application/xhtml+xml,application/pdf,application/json,text/plain;q=0.9,*/*;q=0.5',
        },
        signal,
      });
      const page = await readPage(services.workers, file, whole_page, context);
      const markdown = truncate(page.markdown, max_characters);
      return {
        result: {
          url: file.url,
          media_type: file.mediaType,
          ...page,
          markdown,
          truncated: markdown.length < page.markdown.length,
        },
      };
    },
  });
}

/** Cuts text without leaving half of a surrogate pair. */
function truncate(text: string, maximum: number): string {
  return text.slice(0, maximum).replace(/[\uD800-\uDBFF]$/, '');
}

/** The content of an HTML page. */
const htmlContent = z.object({
  title: z.string().optional(),
  byline: z.string().optional(),
  site: z.string().optional(),
  published: z.string().optional(),
  description: z.string().optional(),
  language: z.string().optional(),
  markdown: z.string(),
  links: z.array(z.object({ text: z.string(), url: z.string() })),
  word_count: z.int(),
});

export type HtmlContent = z.output<typeof htmlContent>;

export interface HtmlTask {
  readonly html: string;
  readonly url: string;
  readonly whole: boolean;
}

type PageContent = HtmlContent & { readonly fetched_as: 'html' | 'pdf' | 'json' | 'text' };

/** @throws Problem (unprocessable, tool-limit) */
async function readPage(workers: Workers, file: FetchResult, whole: boolean, call: WorkerCall): Promise<PageContent> {
  const kind = detectFormat(file);
  if (kind === 'pdf') return { fetched_as: 'pdf', ...(await readPdfPage(workers, file, call)) };
  const text = decodeText(file.bytes, file.headers.get('content-type') ?? '', kind === 'html');
  if (kind === 'html') {
    const task: HtmlTask = { html: text, url: file.url, whole };
    return {
      fetched_as: 'html',
      ...htmlContent.parse(
        await workers.run(
          { module: new URL('html-worker.ts', import.meta.url), input: task, timeoutMs: 20_000, memoryMb: 512 },
          call,
        ),
      ),
    };
  }
  return kind === 'json'
    ? { fetched_as: 'json', ...toPlainContent(`\`\`\`json\n${prettifyJson(text)}\n\`\`\``) }
    : { fetched_as: 'text', ...toPlainContent(text) };
}

const formatsByMediaType: readonly [pattern: RegExp, kind: PageContent['fetched_as']][] = [
  [/^application\/(?:x-)?pdf$/, 'pdf'],
  [/^(?:text\/html|application\/xhtml\+xml)$/, 'html'],
  [/^(?:application|text)\/json$|\+json$/, 'json'],
  [/^text\/|^application\/(?:xml|yaml|x-yaml|toml|javascript|x-ndjson)$|\+xml$/, 'text'],
];

function detectFormat({ mediaType, bytes }: FetchResult): PageContent['fetched_as'] {
  const named =
    formatsByMediaType.find(([pattern]) => pattern.test(mediaType))?.[1] ??
    (mediaType === 'application/octet-stream' ? guessFormat(bytes) : undefined);
  if (named !== undefined) return named;
  throw new Problem(
    unprocessable,
    `The URL leads to ${mediaType}, which is not a page. Use convert_image or ocr_image for images, transcribe_audio for audio, and convert_to_pdf for office files.`,
    { members: { media_type: mediaType } },
  );
}

/** For servers that do not report a media type. */
function guessFormat(bytes: Uint8Array): PageContent['fetched_as'] | undefined {
  if (isPdf(bytes)) return 'pdf';
  const start = bytes.subarray(0, 4_096);
  if (start.includes(0)) return undefined;
  return /^\s*<(?:!doctype html|html)/i.test(new TextDecoder().decode(start)) ? 'html' : 'text';
}

async function readPdfPage(workers: Workers, file: FetchResult, call: WorkerCall): Promise<HtmlContent> {
  const {
    metadata: { title, author, created },
    pages,
  } = await readPdf(workers, { bytes: file.bytes, from: 1, to: undefined }, call);
  const read = toPlainContent(pages.map(({ page, text }) => `## Page ${page}\n\n${text}`).join('\n\n'));
  return {
    ...read,
    ...(title === undefined ? {} : { title }),
    ...(author === undefined ? {} : { byline: author }),
    ...(created === undefined ? {} : { published: created }),
  };
}

function toPlainContent(text: string): HtmlContent {
  const urls = new Set(text.match(/https?:\/\/[^\s<>"'`)\]}]+/g)?.map((url) => url.replace(/[.,;:!?]+$/, '')));
  return {
    markdown: text,
    links: [...urls]
      .filter((url) => URL.canParse(url))
      .slice(0, 200)
      .map((url) => ({ text: url, url })),
    word_count: countWords(text),
  };
}

/** Counts words as people do, also in languages without spaces. */
export function countWords(text: string): number {
  // Segmenting a very long text takes seconds, and an approximate count is enough for it.
  if (text.length > 200_000) return text.split(/\s+/).length;
  let count = 0;
  for (const { isWordLike } of new Intl.Segmenter(undefined, { granularity: 'word' }).segment(text))
    if (isWordLike === true) count += 1;
  return count;
}

function prettifyJson(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

/**
 * Decodes the bytes of a page by its byte order mark, its Content-Type or its own declaration, in the order of the HTML
 * standard. Invalid bytes become replacement characters.
 */
export function decodeText(bytes: Uint8Array, contentType: string, isHtml: boolean): string {
  const label = detectBom(bytes) ?? findCharset(contentType) ?? (isHtml ? findDeclaredCharset(bytes) : undefined);
  const decoder = label === undefined ? undefined : createDecoder(label);
  return (decoder ?? guessDecoder(bytes)).decode(bytes);
}

function detectBom(bytes: Uint8Array): string | undefined {
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) return 'utf-8';
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return 'utf-16be';
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return 'utf-16le';
  return undefined;
}

function findCharset(text: string): string | undefined {
  return /charset\s*=\s*["']?\s*([\w.:-]+)/i.exec(text)?.[1];
}

/** Reads the charset of a meta element within the first 1024 bytes, which are readable as ASCII. */
function findDeclaredCharset(bytes: Uint8Array): string | undefined {
  const start = new TextDecoder('latin1').decode(bytes.subarray(0, 1_024));
  const label = findCharset(/<meta[^>]*charset[^>]*>/i.exec(start)?.[0] ?? '');
  // A declaration that is readable as ASCII is not UTF-16, whatever it says.
  return label !== undefined && /^utf-16/i.test(label) ? 'utf-8' : label;
}

function createDecoder(label: string): TextDecoder | undefined {
  try {
    return new TextDecoder(label);
  } catch {
    return undefined;
  }
}

function guessDecoder(bytes: Uint8Array): TextDecoder {
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    return new TextDecoder('utf-8');
  } catch {
    return new TextDecoder('windows-1252');
  }
}
