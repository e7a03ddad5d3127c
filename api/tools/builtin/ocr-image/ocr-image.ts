// The tool ocr_image: reads the text in an image.
import { z } from 'zod';
import { invalid } from '../../../http/index.ts';
import { fileAliases, fileFields } from '../../inputs/file-fields.ts';
import { readFile } from '../../inputs/file-reader.ts';
import { ocrLanguages, type OcrTask } from './languages.ts';
import type { ToolDependencies } from '../../engine/tool-dependencies.ts';
import { defineTool, type Tool } from '../../tool.ts';

const input = z.strictObject({
  ...fileFields('the image'),
  language: z
    .string()
    .trim()
    .toLowerCase()
    .max(40)
    .default('eng')
    .describe(
      `Language of the text. Available: ${ocrLanguages.map(({ code, name }) => `${code} (${name})`).join(', ')}. Default: eng.`,
    ),
});

const recognised = z.object({
  text: z.string().describe('Text, line by line; empty if none was found.'),
  confidence: z.number().describe('Confidence, 0 to 100.'),
  lines: z
    .array(
      z.object({ text: z.string(), confidence: z.number(), x: z.int(), y: z.int(), width: z.int(), height: z.int() }),
    )
    .describe('Lines with their position in pixels of the image as it was read, at most 1000.'),
  width: z.int().describe('Width in pixels of the image as it was read: after scaling down, if it was too large.'),
  height: z.int().describe('Height in pixels of the image as it was read.'),
});

const output = z.object({
  url: z.string().optional().describe('Final URL, after redirects; absent for data.'),
  language: z.string().describe('Language code that was used.'),
  ...recognised.shape,
});

export function ocrImageTool(services: ToolDependencies): Tool {
  return defineTool({
    name: 'ocr_image',
    title: 'Read text from an image',
    description: `Reads the text in an image of up to 15 MB and 50 megapixels with Tesseract, from exactly one of url, data and artifact. Returns the text, and up to 1,000 lines with position and confidence. Accepts PNG, JPEG, WebP, AVIF, GIF and TIFF; images of more than 12 megapixels are scaled down first. Languages: ${ocrLanguages.map(({ name }) => name).join(', ')}. For a PDF with text, use extract_pdf.`,
    input,
    aliases: { ...fileAliases, lang: 'language', image: 'url', image_url: 'url' },
    output,
    example: { url: 'https://tesseract.projectnaptha.com/img/eng_bw.png' },
    price: '0.0002',
    openWorld: true,
    limitMs: 90_000,
    run: async ({ language, ...given }, context) => {
      const { signal } = context;
      const known = ocrLanguages.find(({ code, names }) => code === language || names.includes(language));
      if (known === undefined)
        throw invalid([
          {
            in: 'query',
            field: 'language',
            message: 'is not one of the available languages',
            fix: `Send one of: ${ocrLanguages.map(({ code }) => code).join(', ')}.`,
          },
        ]);
      const file = await readFile(services, given, { maxBytes: 15_000_000, accept: 'image/*', signal });
      const task: OcrTask = { bytes: file.bytes, language: known.code };
      const read = recognised.parse(
        await services.workers.run(
          {
            module: new URL('ocr-worker.ts', import.meta.url),
            input: task,
            timeoutMs: 60_000,
            memoryMb: 512,
          },
          context,
        ),
      );
      return { result: { url: file.url, language: known.code, ...read } };
    },
  });
}
