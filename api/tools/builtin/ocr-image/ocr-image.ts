// ocr_image: the text that can be seen in an image.
import { z } from 'zod';
import { invalid } from '../../../http/index.ts';
import { urlField } from '../../fetch/url-field.ts';
import { ocrLanguages, type OcrTask } from './languages.ts';
import type { ToolServices } from '../../engine/tool-dependencies.ts';
import { defineTool, type Tool } from '../../tool.ts';

const input = z.strictObject({
  url: urlField('where the image is'),
  language: z
    .string()
    .trim()
    .toLowerCase()
    .max(40)
    .default('eng')
    .describe(`language of the text; here: ${ocrLanguages.map(({ code, name }) => `${code} (${name})`).join(', ')}`),
});

const recognised = z.object({
  text: z.string().describe('the text, line by line; empty where none was seen'),
  confidence: z.number().describe('how sure it is, 0 to 100'),
  lines: z
    .array(
      z.object({ text: z.string(), confidence: z.number(), x: z.int(), y: z.int(), width: z.int(), height: z.int() }),
    )
    .describe('each line with its place in pixels of the image, at most 1000'),
  width: z.int().describe('width of the image that was read, in pixels'),
  height: z.int().describe('height of it'),
});

const output = z.object({
  url: z.string().describe('where it was in the end, after redirects'),
  language: z.string().describe('language that was read'),
  ...recognised.shape,
});

export function ocrImageTool(services: ToolServices): Tool {
  return defineTool({
    name: 'ocr_image',
    title: 'Read text from an image',
    description: `Fetches an image of at most 15 MB and reads the text in it, with the place of each line. Takes PNG, JPEG, WebP, AVIF, GIF and TIFF; images of more than 12 megapixels are made smaller first. Languages here: ${ocrLanguages.map(({ name }) => name).join(', ')}. For PDF take extract_pdf.`,
    input,
    aliases: { lang: 'language', image: 'url', image_url: 'url' },
    output,
    example: { url: 'https://tesseract.projectnaptha.com/img/eng_bw.png' },
    price: '0.0002',
    openWorld: true,
    limitMs: 90_000,
    run: async ({ url, language }, { signal }) => {
      const known = ocrLanguages.find(({ code, names }) => code === language || names.includes(language));
      if (known === undefined)
        throw invalid([
          {
            in: 'query',
            field: 'language',
            message: 'is not among the languages here',
            fix: `send one of: ${ocrLanguages.map(({ code }) => code).join(', ')}`,
          },
        ]);
      const file = await services.fetcher.get({ url, maxBytes: 15_000_000, headers: { accept: 'image/*' }, signal });
      const task: OcrTask = { bytes: file.bytes, language: known.code };
      const read = recognised.parse(
        await services.workers.run({
          module: new URL('ocr-worker.ts', import.meta.url),
          input: task,
          timeoutMs: 60_000,
          memoryMb: 512,
          signal,
        }),
      );
      return { result: { url: file.url, language: known.code, ...read } };
    },
  });
}
