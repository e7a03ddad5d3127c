// translate_pdf: a PDF in another language, with its layout kept; BabelDOC lays it out, a model of the caller's
// translates.
import { z } from 'zod';
import { Problem } from '../../../../lib/problem.ts';
import { modelField } from '../../../models/request.ts';
import { invalid } from '../../../http/index.ts';
import { readPdf, type PdfRead } from '../extract-pdf/read.ts';
import { urlField } from '../../fetch/url-field.ts';
import { findLanguage, type Language } from '../languages.ts';
import { unprocessable } from '../../problems.ts';
import type { ToolServices } from '../../engine/tool-dependencies.ts';
import { defineTool, type Tool } from '../../tool.ts';
import { Passages } from './passages.ts';
import { translateWith } from './translator.ts';

const mostBytes = 25_000_000;
const mostPages = 30;
const mediaType = 'application/pdf';

export function translatePdfTool({ catalog, fetcher, workers, urls }: ToolServices): Tool {
  return defineTool({
    name: 'translate_pdf',
    title: 'Translate a PDF',
    description:
      `Fetches a PDF of at most 25 MB, such as a paper, and makes one in another language with its layout kept: columns, pictures, tables and formulas stay where they are. At most ${mostPages} pages in a call; ask for the next ones with from_page. ` +
      'Scans hold no text and are refused, and languages that are written from right to left cannot be laid out. A language model translates; what its calls cost is added to the price. It takes minutes: the answer is a job to poll, unless you wait.',
    input: z.strictObject({
      url: urlField('where the PDF is'),
      to: z
        .string()
        .min(2)
        .max(60)
        .describe('language to translate into: a code like de, pt-BR or zh-Hans, or a name like German'),
      from: z
        .string()
        .min(2)
        .max(60)
        .optional()
        .describe('language of the PDF, by code or name; English when left out'),
      from_page: z.int().min(1).max(100_000).default(1).describe('first page to translate, counted from 1'),
      to_page: z
        .int()
        .min(1)
        .max(100_000)
        .optional()
        .describe(`last page to translate; when left out the last of the file, but at most ${mostPages} pages in all`),
      model: modelField(catalog)
        .optional()
        .describe(`id of the model that translates, of GET /api/models; default ${catalog.preferred.id}`),
    }),
    aliases: {
      target: 'to',
      target_language: 'to',
      target_lang: 'to',
      lang: 'to',
      language: 'to',
      lang_out: 'to',
      source: 'from',
      source_language: 'from',
      source_lang: 'from',
      lang_in: 'from',
      pdf: 'url',
      pdf_url: 'url',
    },
    output: z.object({
      url: z.string().describe('where the PDF was in the end, after redirects'),
      to: z.string().describe('code of the language translated into'),
      to_language: z.string().describe('its name in English'),
      from: z.string().describe('code of the language translated from'),
      total_pages: z.int().describe('pages of the file'),
      from_page: z.int().describe('first page that was translated'),
      to_page: z
        .int()
        .describe('last page that was translated; the new PDF holds the pages from the first to this one'),
      truncated: z.boolean().describe('whether pages after to_page were left out, since it is too many for one call'),
      model: z.string().describe('the model that translated'),
      passages: z.int().describe('calls of the model that it took'),
    }),
    example: { url: 'https://arxiv.org/pdf/1706.03762', to: 'de', to_page: 2 },
    price: '0.002',
    artifacts: [mediaType],
    needs: 'pdftranslator',
    asksModels: true,
    openWorld: true,
    long: true,
    limitMs: 1_200_000,
    async run({ url, to, from, from_page, to_page, model }, { signal, models, report }) {
      const [target, source] = [languageOf('to', to), languageOf('from', from ?? 'en')];
      refuseRightToLeft(target);
      if (to_page !== undefined && to_page < from_page)
        throw invalid([
          { in: 'query', field: 'to_page', message: 'is before from_page', fix: 'send a page at or after from_page' },
        ]);
      report({ done: 0, message: 'reading the PDF' });
      const file = await fetcher.get({
        url,
        maxBytes: mostBytes,
        headers: { accept: 'application/pdf,*/*;q=0.5' },
        timeoutMs: 60_000,
        signal,
      });
      const read = await readPdf(
        workers,
        { bytes: file.bytes, from: from_page, to: Math.min(to_page ?? Infinity, from_page + mostPages - 1) },
        signal,
      );
      refuseScan(read);
      const chosen = model ?? catalog.preferred.id;
      const passages = new Passages({ models, model: chosen, source, target, pages: read.pages.length, report });
      const bytes = await translateWith(urls, {
        pdf: file.bytes,
        from: source,
        to: target,
        pages: pagesOf(read),
        passages,
        signal,
      });
      const { total_pages, to_page: last } = read;
      return {
        result: {
          url: file.url,
          to: target.code,
          to_language: target.name,
          from: source.code,
          total_pages,
          from_page,
          to_page: last,
          truncated: last < Math.min(to_page ?? total_pages, total_pages),
          model: chosen,
          passages: passages.count,
        },
        artifact: { bytes, mediaType, fileName: fileNameOf(file.url, target) },
      };
    },
  });
}

function languageOf(field: 'to' | 'from', text: string): Language {
  const language = findLanguage(text);
  if (language !== undefined) return language;
  throw invalid([
    {
      in: 'query',
      field,
      message: 'is not a language',
      fix: 'send a code such as de, pt-BR or zh-Hans, or a name such as German',
    },
  ]);
}

/** BabelDOC sets every line from left to right. */
const rightToLeft: ReadonlySet<string> = new Set([
  'Adlm',
  'Arab',
  'Hebr',
  'Mand',
  'Nkoo',
  'Rohg',
  'Samr',
  'Syrc',
  'Thaa',
]);

function refuseRightToLeft({ code, name }: Language): void {
  if (!rightToLeft.has(new Intl.Locale(code).maximize().script ?? '')) return;
  throw invalid([
    {
      in: 'query',
      field: 'to',
      message: `${name} is written from right to left, which cannot be laid out`,
      fix: 'take extract_pdf and translate_text for its text alone',
    },
  ]);
}

function refuseScan({ pages, total_pages, from_page }: PdfRead): void {
  if (pages.length === 0)
    throw new Problem(unprocessable, `from_page (${from_page}) is after the last page: the PDF has ${total_pages}`);
  if (pages.every(({ text }) => text.trim() === ''))
    throw new Problem(
      unprocessable,
      'these pages hold no text, as scans do, so there is nothing to translate; ocr_image reads text from images',
    );
}

/** Undefined for the whole file, which then stays one. */
function pagesOf({ from_page, to_page, total_pages }: PdfRead): string | undefined {
  return from_page === 1 && to_page === total_pages ? undefined : `${from_page}-${to_page}`;
}

function fileNameOf(url: string, { code }: Language): string {
  const last = decodeURI(new URL(url).pathname).split('/').at(-1) ?? '';
  const name = last
    .replace(/\.pdf$/i, '')
    .normalize('NFKD')
    .replaceAll(/[^A-Za-z0-9._]+/g, '-')
    .replaceAll(/^[-.]+|[-.]+$/g, '')
    .slice(0, 60);
  return `${name === '' ? 'document' : name}.${code}.pdf`;
}
