// Detects the format of a fetched file, and reads it.
import { z } from 'zod';
import { Problem } from '../../../../lib/problem.ts';
import { readPdf, startsAsPdf } from '../extract-pdf/read.ts';
import type { FetchResult } from '../../fetch/fetcher.ts';
import { unprocessable } from '../../problems.ts';
import type { WorkerCall, Workers } from '../../engine/workers/workers.ts';
import { decode } from './charset.ts';

/** The content of an HTML page. */
export const htmlContent = z.object({
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

export type PageContent = HtmlContent & { readonly fetched_as: 'html' | 'pdf' | 'json' | 'text' };

/** @throws Problem (unprocessable, tool-limit) */
export async function readPage(
  workers: Workers,
  file: FetchResult,
  whole: boolean,
  call: WorkerCall,
): Promise<PageContent> {
  const kind = kindOf(file);
  if (kind === 'pdf') return { fetched_as: 'pdf', ...(await pdf(workers, file, call)) };
  const text = decode(file.bytes, file.headers.get('content-type') ?? '', kind === 'html');
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
    ? { fetched_as: 'json', ...plain(`\`\`\`json\n${pretty(text)}\n\`\`\``) }
    : { fetched_as: 'text', ...plain(text) };
}

const kinds: readonly [pattern: RegExp, kind: PageContent['fetched_as']][] = [
  [/^application\/(?:x-)?pdf$/, 'pdf'],
  [/^(?:text\/html|application\/xhtml\+xml)$/, 'html'],
  [/^(?:application|text)\/json$|\+json$/, 'json'],
  [/^text\/|^application\/(?:xml|yaml|x-yaml|toml|javascript|x-ndjson)$|\+xml$/, 'text'],
];

function kindOf({ mediaType, bytes }: FetchResult): PageContent['fetched_as'] {
  const named =
    kinds.find(([pattern]) => pattern.test(mediaType))?.[1] ??
    (mediaType === 'application/octet-stream' ? looksLike(bytes) : undefined);
  if (named !== undefined) return named;
  throw new Problem(
    unprocessable,
    `The URL leads to ${mediaType}, which is not a page. Use convert_image or ocr_image for images, transcribe_audio for audio, and convert_to_pdf for office files.`,
    { members: { media_type: mediaType } },
  );
}

/** For servers that do not say what it is. */
function looksLike(bytes: Uint8Array): PageContent['fetched_as'] | undefined {
  if (startsAsPdf(bytes)) return 'pdf';
  const start = bytes.subarray(0, 4_096);
  if (start.includes(0)) return undefined;
  return /^\s*<(?:!doctype html|html)/i.test(new TextDecoder().decode(start)) ? 'html' : 'text';
}

async function pdf(workers: Workers, file: FetchResult, call: WorkerCall): Promise<HtmlContent> {
  const {
    metadata: { title, author, created },
    pages,
  } = await readPdf(workers, { bytes: file.bytes, from: 1, to: undefined }, call);
  const read = plain(pages.map(({ page, text }) => `## Page ${page}\n\n${text}`).join('\n\n'));
  return {
    ...read,
    ...(title === undefined ? {} : { title }),
    ...(author === undefined ? {} : { byline: author }),
    ...(created === undefined ? {} : { published: created }),
  };
}

function plain(text: string): HtmlContent {
  const urls = new Set(text.match(/https?:\/\/[^\s<>"'`)\]}]+/g)?.map((url) => url.replace(/[.,;:!?]+$/, '')));
  return {
    markdown: text,
    links: [...urls]
      .filter((url) => URL.canParse(url))
      .slice(0, 200)
      .map((url) => ({ text: url, url })),
    word_count: wordCount(text),
  };
}

/** Words as people count them, in languages without spaces as well. */
export function wordCount(text: string): number {
  // Cutting a very long text into words takes seconds, and whoever has one does not need the exact number.
  if (text.length > 200_000) return text.split(/\s+/).length;
  let count = 0;
  for (const { isWordLike } of new Intl.Segmenter(undefined, { granularity: 'word' }).segment(text))
    if (isWordLike === true) count += 1;
  return count;
}

function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
