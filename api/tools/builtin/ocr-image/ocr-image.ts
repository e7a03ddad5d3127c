// The tool ocr_image: reads the text in an image, or in pages of a scanned PDF.
import { z } from 'zod';
import { Problem } from '../../../../lib/problem.ts';
import { createValidationProblem } from '../../../http/index.ts';
import { requireOneRule } from '../../inputs/field-rules.ts';
import { fileAliases, fileFieldNames, fileFields } from '../../inputs/file-fields.ts';
import { readFile } from '../../inputs/file-reader.ts';
import { startsAsPdf } from '../extract-pdf/read.ts';
import { maxLanguages, ocrLanguages, otherLanguages, readLanguages } from './languages.ts';
import { line, maxPages, page, reading, type OcrTask, type Reading } from './read.ts';
import type { ToolDependencies } from '../../engine/tool-dependencies.ts';
import { unprocessable } from '../../problems.ts';
import { defineTool, type Tool } from '../../tool.ts';

const input = z
  .strictObject({
    ...fileFields('the image or PDF'),
    language: z
      .string()
      .trim()
      .max(100)
      .default('eng')
      .describe(
        `Language of the text, or up to ${maxLanguages} joined by +, as in eng+deu. Available: ${ocrLanguages.map(({ code }) => code).join(', ')}.`,
      ),
    from_page: z.int().min(1).max(100_000).default(1).describe('First page of a PDF to read.'),
    to_page: z
      .int()
      .min(1)
      .max(100_000)
      .optional()
      .describe(`Last page of a PDF to read. Default: the last of the file. One call reads at most ${maxPages} pages.`),
  })
  .superRefine(requireOneRule(fileFieldNames));

const output = z.object({
  url: z.string().optional().describe('Final URL, after redirects; absent for data.'),
  language: z.string().describe('Language codes that were used.'),
  text: z.string().describe('Text, line by line, pages apart by an empty line; empty if none was found.'),
  confidence: z.number().describe('Confidence, 0 to 100.'),
  lines: z.array(line).describe('Lines with their position in pixels of the page as it was read, at most 1000.'),
  width: z.int().describe('Width in pixels of the image (or first page) as it was read: after scaling, if it was.'),
  height: z.int().describe('Height, likewise.'),
  pages: z.array(page).optional().describe('Pages of a PDF that were read.'),
  total_pages: z.int().optional().describe('Number of pages of a PDF.'),
  truncated: z.boolean().optional().describe('Whether requested pages of a PDF after the last of pages were not read.'),
});

export function ocrImageTool(services: ToolDependencies): Tool {
  return defineTool({
    name: 'ocr_image',
    title: 'Read text from an image or scanned PDF',
    description: `Reads the text in an image (PNG, JPEG, WebP, AVIF, GIF, TIFF) or a scanned PDF of up to 25 MB with Tesseract, from exactly one of url, data and artifact. Returns the text, and up to 1,000 lines with position and confidence; text that cannot be read reliably is refused free of charge, with the languages to try. Images of more than 12 megapixels are scaled down first. Of a PDF one call reads up to ${maxPages} pages; use from_page to continue. For a PDF that has text, use extract_pdf.`,
    input,
    aliases: {
      ...fileAliases,
      lang: 'language',
      image: 'url',
      image_url: 'url',
      languages: 'language',
      from: 'from_page',
      to: 'to_page',
    },
    output,
    example: { url: 'https://tesseract.projectnaptha.com/img/eng_bw.png' },
    price: '0.0002',
    openWorld: true,
    limitMs: 90_000,
    run: async ({ language, from_page, to_page, ...given }, context) => {
      const { signal } = context;
      const languages = codesOf(language);
      if (to_page !== undefined && to_page < from_page)
        throw new Problem(unprocessable, `to_page (${to_page}) is before from_page (${from_page}).`);
      const file = await readFile(services, given, { maxBytes: 25_000_000, accept: 'image/*,application/pdf', signal });
      const task: OcrTask = { bytes: file.bytes, languages, from: from_page, to: to_page };
      const module = new URL('ocr-worker.ts', import.meta.url);
      const read = reading.parse(
        await services.workers.run({ module, input: task, timeoutMs: 80_000, memoryMb: 512 }, context),
      );
      const found = summary(read, startsAsPdf(file.bytes));
      refuseGuess(found, languages);
      return { result: { url: file.url, language: languages.join('+'), ...found } };
    },
  });
}

/** Below this, Tesseract has mostly guessed: text of its language scores above 60 even where it is printed badly. */
const minConfidence = 45;
/** Characters of the guess that are shown. */
const maxGuess = 300;

/** Text in a language that was not set comes out as garbage of one that was. @throws Problem (unprocessable) */
function refuseGuess(
  { text, confidence }: Pick<z.input<typeof output>, 'text' | 'confidence'>,
  used: readonly string[],
): void {
  if (text === '' || confidence >= minConfidence) return;
  const others = otherLanguages(used);
  const names = others.map(({ code, name }) => `${code} (${name})`).join(', ');
  throw new Problem(
    unprocessable,
    `The text cannot be read reliably: the confidence is ${Math.round(confidence)} of 100. It is probably not in ${used.join('+')}, or the picture is too small or unclear. Send the language of the text, up to ${maxLanguages} joined by +: ${names}.`,
    {
      errors: [
        {
          in: 'query',
          field: 'language',
          message: `gives text with a confidence of only ${Math.round(confidence)}`,
          fix: `Send the language of the text, such as ${others[0]?.code ?? 'eng'}.`,
        },
      ],
      members: {
        confidence: Math.round(confidence),
        languages: others.map(({ code }) => code),
        text: text.slice(0, maxGuess).toWellFormed(),
      },
    },
  );
}

/** @throws a problem that names the languages there are */
function codesOf(language: string): readonly string[] {
  const { codes, unknown } = readLanguages(language);
  if (unknown.length === 0 && codes.length > 0 && codes.length <= maxLanguages) return codes;
  const names = ocrLanguages.map(({ code, name }) => `${code} (${name})`).join(', ');
  throw createValidationProblem([
    {
      in: 'query',
      field: 'language',
      message:
        codes.length > maxLanguages
          ? `names ${codes.length} languages; one call reads at most ${maxLanguages}`
          : `${unknown.map((word) => JSON.stringify(word)).join(', ')} is not one of the available languages`,
      fix: `Send up to ${maxLanguages} of: ${names}; joined by +, as in eng+deu.`,
    },
  ]);
}

function summary(
  { pages, lines, total_pages, truncated }: Reading,
  isPdf: boolean,
): Omit<z.input<typeof output>, 'language'> {
  const found = pages.filter(({ text }) => text !== '');
  return {
    text: found.map(({ text }) => text).join('\n\n'),
    confidence: found.reduce((sum, { confidence }) => sum + confidence, 0) / Math.max(1, found.length),
    lines,
    width: pages[0]?.width ?? 0,
    height: pages[0]?.height ?? 0,
    ...(isPdf ? { pages, total_pages, truncated } : {}),
  };
}
