// The tool ocr_image: reads the text in an image, or in pages of a scanned PDF.
import { z } from 'zod';
import { Problem } from '../../../../lib/problem.ts';
import { createValidationProblem } from '../../../http/index.ts';
import { requireOneRule } from '../../inputs/fields.ts';
import { fileAliases, fileFieldNames, fileFields } from '../../inputs/fields.ts';
import { readFile } from '../../inputs/file-reader.ts';
import { isPdf } from '../extract-pdf/extract-pdf.ts';
import type { ToolDependencies } from '../../tool.ts';
import { unprocessable } from '../../problems.ts';
import { defineTool, type Tool } from '../../tool.ts';

interface OcrLanguage {
  /** Tesseract's code. */
  readonly code: string;
  readonly name: string;
  /** Other accepted names, in lower case. */
  readonly names: readonly string[];
}

/** Languages whose data is installed, each as an npm package: nothing is downloaded during a call. */
export const ocrLanguages: readonly OcrLanguage[] = [
  { code: 'eng', name: 'English', names: ['en', 'english', 'en-us', 'en-gb'] },
  { code: 'deu', name: 'German', names: ['de', 'ger', 'german', 'deutsch', 'de-de', 'de-at', 'de-ch'] },
  { code: 'fra', name: 'French', names: ['fr', 'fre', 'french', 'français', 'fr-fr', 'fr-ca'] },
  { code: 'spa', name: 'Spanish', names: ['es', 'spanish', 'español', 'es-es', 'es-mx'] },
  { code: 'ita', name: 'Italian', names: ['it', 'italian', 'italiano'] },
  { code: 'por', name: 'Portuguese', names: ['pt', 'portuguese', 'português', 'pt-br', 'pt-pt'] },
  { code: 'nld', name: 'Dutch', names: ['nl', 'dut', 'dutch', 'nederlands'] },
  { code: 'pol', name: 'Polish', names: ['pl', 'polish', 'polski'] },
  { code: 'tur', name: 'Turkish', names: ['tr', 'turkish', 'türkçe'] },
  { code: 'ukr', name: 'Ukrainian', names: ['uk', 'ukrainian', 'українська'] },
  { code: 'ara', name: 'Arabic', names: ['ar', 'arabic', 'العربية'] },
  { code: 'hin', name: 'Hindi', names: ['hi', 'hindi', 'हिन्दी'] },
  {
    code: 'chi_sim',
    name: 'Simplified Chinese',
    names: ['zh', 'zh-cn', 'zh-hans', 'zho', 'chi', 'chi-sim', 'chinese', 'simplified chinese', '中文', '简体中文'],
  },
  {
    code: 'chi_tra',
    name: 'Traditional Chinese',
    names: ['zh-tw', 'zh-hk', 'zh-hant', 'chi-tra', 'traditional chinese', '繁體中文'],
  },
  { code: 'jpn', name: 'Japanese', names: ['ja', 'jp', 'japanese', '日本語'] },
  { code: 'kor', name: 'Korean', names: ['ko', 'kr', 'korean', '한국어'] },
];

/** Per call: Tesseract reads with all languages at the same time, and each takes time. */
const maxLanguages = 3;
/** Pages of a PDF per call, if there is time. */
const maxPages = 10;

const ocrLine = z.object({
  page: z.int(),
  text: z.string(),
  confidence: z.number(),
  x: z.int(),
  y: z.int(),
  width: z.int(),
  height: z.int(),
});
export type OcrLine = z.output<typeof ocrLine>;

const ocrPage = z.object({
  page: z.int(),
  text: z.string(),
  confidence: z.number(),
  width: z.int(),
  height: z.int(),
});
export type OcrPage = z.output<typeof ocrPage>;

const ocrReading = z.object({
  pages: z.array(ocrPage),
  lines: z.array(ocrLine),
  total_pages: z.int(),
  truncated: z.boolean(),
});
export type OcrReading = z.output<typeof ocrReading>;

export interface OcrTask {
  readonly bytes: Uint8Array;
  /** Tesseract's codes. */
  readonly languages: readonly string[];
  readonly isPdf: boolean;
  /** Pages of a PDF. */
  readonly from: number;
  readonly to: number | undefined;
  readonly maxPages: number;
}

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
  text: z.string().describe('Text, line by line, with an empty line between pages; empty if none was found.'),
  confidence: z.number().describe('Confidence, 0 to 100.'),
  lines: z
    .array(ocrLine)
    .describe('Lines with their position in pixels on the page as read (after scaling), at most 1000.'),
  width: z.int().describe('Width in pixels of the image (or first page) as read, after any scaling.'),
  height: z.int().describe('Height in pixels, likewise.'),
  pages: z.array(ocrPage).optional().describe('Pages of a PDF that were read.'),
  total_pages: z.int().optional().describe('Number of pages of a PDF.'),
  truncated: z.boolean().optional().describe('Whether requested pages of a PDF after the last of pages were not read.'),
});

export function createOcrImageTool(services: ToolDependencies): Tool {
  return defineTool({
    name: 'ocr_image',
    title: 'Read text from an image or scanned PDF',
    description: `Reads the text in an image (PNG, JPEG, WebP, AVIF, GIF, TIFF) or a scanned PDF of up to 25 MB with Tesseract, from exactly one of url, data and artifact. Returns the text, and up to 1,000 lines with position and confidence; text that cannot be read reliably is rejected free of charge, with the languages to try. Images of more than 12 megapixels are scaled down first. One call reads up to ${maxPages} pages; use from_page to continue. For a PDF that has text, use extract_pdf.`,
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
      const languages = requireLanguages(language);
      if (to_page !== undefined && to_page < from_page)
        throw new Problem(unprocessable, `to_page (${to_page}) is before from_page (${from_page}).`);
      const file = await readFile(services, given, { maxBytes: 25_000_000, accept: 'image/*,application/pdf', signal });
      const task: OcrTask = {
        bytes: file.bytes,
        languages,
        isPdf: isPdf(file.bytes),
        from: from_page,
        to: to_page,
        maxPages,
      };
      const module = new URL('ocr-worker.ts', import.meta.url);
      const read = ocrReading.parse(
        await services.workers.run({ module, input: task, timeoutMs: 80_000, memoryMb: 512 }, context),
      );
      const found = summarize(read, task.isPdf);
      assertConfident(found, languages);
      return { result: { url: file.url, language: languages.join('+'), ...found } };
    },
  });
}

/** Below this, Tesseract mostly guessed: text in a language that was set scores above 60 even if it is printed badly. */
const minConfidence = 45;
/** Characters of the guess in the error. */
const maxGuess = 300;

/** Text in a language that was not set is read as garbage in one that was. @throws Problem (unprocessable) */
function assertConfident(
  { text, confidence }: Pick<z.input<typeof output>, 'text' | 'confidence'>,
  used: readonly string[],
): void {
  if (text === '' || confidence >= minConfidence) return;
  const others = listOtherLanguages(used);
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

/** @throws Problem (invalid-request) that names the available languages */
function requireLanguages(language: string): readonly string[] {
  const { codes, unknown } = parseLanguages(language);
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

function summarize(
  { pages, lines, total_pages, truncated }: OcrReading,
  ofPdf: boolean,
): Omit<z.input<typeof output>, 'language'> {
  const found = pages.filter(({ text }) => text !== '');
  return {
    text: found.map(({ text }) => text).join('\n\n'),
    confidence: found.reduce((sum, { confidence }) => sum + confidence, 0) / Math.max(1, found.length),
    lines,
    width: pages[0]?.width ?? 0,
    height: pages[0]?.height ?? 0,
    ...(ofPdf ? { pages, total_pages, truncated } : {}),
  };
}

/** Scripts of the languages that do not use Latin letters. */
const nonLatinScripts: Readonly<Record<string, string>> = {
  ukr: 'Cyrillic',
  ara: 'Arabic',
  hin: 'Devanagari',
  chi_sim: 'Han',
  chi_tra: 'Han',
  jpn: 'Han',
  kor: 'Hangul',
};

/**
 * Lists unused languages, those with another script first: letters of the same script are mostly read correctly anyway.
 */
function listOtherLanguages(used: readonly string[]): readonly OcrLanguage[] {
  const findScript = (code: string): string => nonLatinScripts[code] ?? 'Latin';
  const read = new Set(used.map(findScript));
  const others = ocrLanguages.filter(({ code }) => !used.includes(code));
  return [
    ...others.filter(({ code }) => !read.has(findScript(code))),
    ...others.filter(({ code }) => read.has(findScript(code))),
  ];
}

/** Parses `eng+deu` or `en, de` into distinct codes in their order, and lists unknown names separately. */
function parseLanguages(text: string): {
  readonly codes: readonly string[];
  readonly unknown: readonly string[];
} {
  const words = text
    .toLowerCase()
    .split(/[+,]/)
    .map((word) => word.trim().replaceAll(/(?<=^[a-z]{2})_/g, '-'))
    .filter((word) => word !== '');
  const found = words.map((word) => ({
    word,
    language: ocrLanguages.find(({ code, names }) => code === word || names.includes(word)),
  }));
  return {
    codes: [...new Set(found.flatMap(({ language }) => language?.code ?? []))],
    unknown: found.flatMap(({ word, language }) => (language === undefined ? [word] : [])),
  };
}
