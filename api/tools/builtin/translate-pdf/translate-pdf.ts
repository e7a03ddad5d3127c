// The tool translate_pdf: translates a PDF and keeps its layout. BabelDOC lays out the pages; a language model
// translates.
import { z } from 'zod';
import { Problem } from '../../../../lib/problem.ts';
import { modelField } from '../../../models/index.ts';
import { createValidationProblem } from '../../../http/index.ts';
import { readPdf, type PdfContent } from '../extract-pdf/extract-pdf.ts';
import { createReadableRule, requireOneRule } from '../../inputs/fields.ts';
import { fileAliases, fileFieldNames, fileFields } from '../../inputs/fields.ts';
import { readFile, type InputFile } from '../../inputs/file-reader.ts';
import { parseLanguage, type Language } from '../languages.ts';
import { unprocessable } from '../../problems.ts';
import type { ToolDependencies } from '../../tool.ts';
import { defineTool, type Tool } from '../../tool.ts';
import { PassageTranslator, translatePdf } from './translator.ts';

const maxBytes = 25_000_000;
const maxPages = 30;
const mediaType = 'application/pdf';

export function createTranslatePdfTool(services: ToolDependencies): Tool {
  const { catalog, workers, urls } = services;
  return defineTool({
    name: 'translate_pdf',
    title: 'Translate a PDF',
    description:
      `Takes a PDF of up to 25 MB, such as a paper, from exactly one of url, data and artifact, and returns a PDF that a language model has translated and that keeps the layout: columns, pictures, tables and formulas stay in position. Translates up to ${maxPages} pages per call; use from_page to continue. ` +
      'Does not translate scans, which contain no text, or into languages written from right to left. Runs as a job of several minutes: poll the returned handle, or set wait.',
    input: z
      .strictObject({
        ...fileFields('the PDF'),
        to: z
          .string()
          .min(2)
          .max(60)
          .superRefine(createReadableRule(parseTarget))
          .describe('Target language: a code such as de, pt-BR or zh-Hans, or a name such as German.'),
        from: z
          .string()
          .min(2)
          .max(60)
          .superRefine(createReadableRule((from) => parseLanguage('from', from)))
          .optional()
          .describe('Language of the PDF, by code or name. Default: English.'),
        from_page: z.int().min(1).max(100_000).default(1).describe('First page to translate. Default: 1.'),
        to_page: z
          .int()
          .min(1)
          .max(100_000)
          .optional()
          .describe(
            `Last page to translate. Default: the last page of the file. One call translates at most ${maxPages} pages.`,
          ),
        model: modelField(catalog)
          .optional()
          .describe(`Id of the model that translates, from GET /api/models. Default: ${catalog.preferred.id}.`),
      })
      .superRefine(requireOneRule(fileFieldNames))
      .superRefine(({ from_page, to_page = from_page }, context) => {
        if (to_page < from_page)
          context.addIssue({
            code: 'custom',
            path: ['to_page'],
            message: 'is before from_page',
            params: { fix: 'Send a page at or after from_page.' },
          });
      }),
    aliases: {
      ...fileAliases,
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
      url: z.string().optional().describe('Final URL of the PDF, after redirects; absent for data.'),
      to: z.string().describe('Code of the target language.'),
      to_language: z.string().describe('English name of the target language.'),
      from: z.string().describe('Code of the source language.'),
      total_pages: z.int().describe('Number of pages of the source file.'),
      from_page: z.int().describe('First page translated.'),
      to_page: z.int().describe('Last page translated; the new PDF contains the pages from from_page to this one.'),
      truncated: z.boolean().describe('Whether requested pages after to_page were not translated.'),
      model: z.string().describe('Model that translated.'),
      passages: z.int().describe('Number of model calls.'),
    }),
    example: { url: 'https://arxiv.org/pdf/1706.03762', to: 'de', to_page: 2 },
    price: '0.002',
    artifacts: [mediaType],
    needs: 'pdftranslator',
    asksModels: true,
    openWorld: true,
    long: true,
    limitMs: 1_200_000,
    async run({ to, from, from_page, to_page, model, ...given }, context) {
      const { signal, models, report } = context;
      const [target, source] = [parseTarget(to), parseLanguage('from', from ?? 'en')];
      report({ done: 0, message: 'reading the PDF' });
      const file = await readFile(services, given, {
        maxBytes,
        accept: 'application/pdf,*/*;q=0.5',
        timeoutMs: 60_000,
        signal,
      });
      const read = await readPdf(
        workers,
        { bytes: file.bytes, from: from_page, to: Math.min(to_page ?? Infinity, from_page + maxPages - 1) },
        context,
      );
      assertHasText(read);
      const chosen = model ?? catalog.preferred.id;
      const passages = new PassageTranslator({
        models,
        model: chosen,
        source,
        target,
        pages: read.pages.length,
        report,
      });
      const bytes = await translatePdf(urls, {
        pdf: file.bytes,
        from: source,
        to: target,
        pages: formatPageRange(read),
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
        artifact: { bytes, mediaType, fileName: formatFileName(file, target) },
      };
    },
  });
}

/** Scripts that are rejected: BabelDOC sets every line from left to right. */
const rightToLeftScripts: ReadonlySet<string> = new Set([
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

/** @throws Problem (invalid-request) if it is not a language, or one that cannot be laid out */
function parseTarget(to: string): Language {
  const language = parseLanguage('to', to);
  const { code, name } = language;
  if (!rightToLeftScripts.has(new Intl.Locale(code).maximize().script ?? '')) return language;
  throw createValidationProblem([
    {
      in: 'query',
      field: 'to',
      message: `is ${name}, which is written from right to left and cannot be laid out`,
      fix: 'Use extract_pdf and translate_text to translate the text without its layout.',
    },
  ]);
}

function assertHasText({ pages, total_pages, from_page }: PdfContent): void {
  if (pages.length === 0)
    throw new Problem(unprocessable, `from_page is ${from_page}, but the PDF has only ${total_pages} pages.`);
  if (pages.every(({ text }) => text.trim() === ''))
    throw new Problem(
      unprocessable,
      'These pages contain no text; they may be scans. Use ocr_image to read text from scanned pages.',
    );
}

/** Undefined for the whole file, which is then not split. */
function formatPageRange({ from_page, to_page, total_pages }: PdfContent): string | undefined {
  return from_page === 1 && to_page === total_pages ? undefined : `${from_page}-${to_page}`;
}

function formatFileName({ fileName = '' }: InputFile, { code }: Language): string {
  const name = decodePercent(fileName)
    .replace(/\.pdf$/i, '')
    .normalize('NFKD')
    .replaceAll(/[^A-Za-z0-9._]+/g, '-')
    .replaceAll(/^[-.]+|[-.]+$/g, '')
    .slice(0, 60);
  return `${name === '' ? 'document' : name}.${code}.pdf`;
}

/** A path may contain a literal %. */
function decodePercent(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
