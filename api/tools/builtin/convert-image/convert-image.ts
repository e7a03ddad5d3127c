// convert_image: an image in another format, smaller or of another quality.
import { z } from 'zod';
import { Problem } from '../../../../lib/problem.ts';
import { invalid } from '../../../http/index.ts';
import { urlField } from '../../fetch/url-field.ts';
import { imageFormats, type ImageTask } from './image-worker.ts';
import { unprocessable } from '../../problems.ts';
import type { ToolServices } from '../../engine/tool-dependencies.ts';
import { defineTool, type Tool } from '../../tool.ts';

const mostBytes = 20_000_000;

const input = z.strictObject({
  url: urlField('where the image is; or send data').optional(),
  data: z
    .string()
    .max(1_400_000)
    .optional()
    .describe('the image itself in base64, with or without a data: prefix, at most 1 MB of image; or send url'),
  format: z.enum(imageFormats).default('png').describe('what to convert to: png, jpeg, webp, avif or gif'),
  width: z.int().min(1).max(8_192).optional().describe('width in pixels; with height left out, in proportion'),
  height: z.int().min(1).max(8_192).optional().describe('height in pixels; with width left out, in proportion'),
  fit: z
    .enum(['inside', 'cover', 'contain', 'fill'])
    .default('inside')
    .describe(
      'what to do when both width and height are given: inside fits whole into them, cover fills and crops, contain adds borders, fill stretches',
    ),
  quality: z.int().min(1).max(100).default(80).describe('1 to 100, for jpeg, webp and avif'),
});

const output = z.object({
  format: z.enum(imageFormats).describe('format of the new image'),
  width: z.int(),
  height: z.int(),
  bytes: z.int(),
  source: z
    .object({ format: z.string(), width: z.int(), height: z.int(), bytes: z.int() })
    .describe('the image as it came'),
});

const converted = output
  .omit({ bytes: true })
  .extend({ source: output.shape.source.omit({ bytes: true }), image: z.instanceof(Uint8Array) });

export function convertImageTool(services: ToolServices): Tool {
  return defineTool({
    name: 'convert_image',
    title: 'Convert an image',
    description:
      'Converts an image from an address or from base64 to PNG, JPEG, WebP, AVIF or GIF, and resizes it. Takes PNG, JPEG, WebP, AVIF, GIF and TIFF of at most 20 MB and 50 megapixels; the first frame of an animation. Metadata such as places are left out. SVG is not taken, because it can hold more than a picture.',
    input,
    aliases: { to: 'format', w: 'width', h: 'height', q: 'quality', base64: 'data', image: 'data' },
    output,
    example: { url: 'https://www.w3.org/assets/logos/w3c-2025/w3c-logo-200.png', format: 'webp', width: 64 },
    price: '0.0001',
    artifacts: ['image/png', 'image/jpeg', 'image/webp', 'image/avif', 'image/gif'],
    openWorld: true,
    limitMs: 60_000,
    run: async ({ url, data, ...wanted }, { signal }) => {
      const bytes = await bytesOf(services, url, data, signal);
      const task: ImageTask = { bytes, ...wanted };
      const { image, source, ...made } = converted.parse(
        await services.workers.run({
          module: new URL('image-worker.ts', import.meta.url),
          input: task,
          timeoutMs: 30_000,
          memoryMb: 512,
          signal,
        }),
      );
      return {
        result: { ...made, bytes: image.length, source: { ...source, bytes: bytes.length } },
        artifact: {
          bytes: image,
          mediaType: `image/${made.format}`,
          fileName: `image.${made.format === 'jpeg' ? 'jpg' : made.format}`,
        },
      };
    },
  });
}

async function bytesOf(
  { fetcher }: ToolServices,
  url: string | undefined,
  data: string | undefined,
  signal: AbortSignal,
): Promise<Uint8Array> {
  if ((url === undefined) === (data === undefined)) {
    throw invalid([
      {
        in: 'query',
        field: 'url',
        message: url === undefined ? 'is missing, and so is data' : 'is given together with data',
        fix: 'send either url or data',
      },
    ]);
  }
  if (url !== undefined)
    return (await fetcher.get({ url, maxBytes: mostBytes, headers: { accept: 'image/*' }, signal })).bytes;
  // Queries turn + into a space.
  const text = (data ?? '')
    .replace(/^data:[^,]{0,200},/, '')
    .replaceAll(' ', '+')
    .replaceAll('-', '+')
    .replaceAll('_', '/');
  if (!/^[A-Za-z0-9+/\s]+={0,2}\s*$/.test(text))
    throw invalid([
      { in: 'query', field: 'data', message: 'is not base64', fix: 'send the bytes of the image in base64' },
    ]);
  const bytes = Buffer.from(text, 'base64');
  if (bytes.length === 0) throw new Problem(unprocessable, 'data holds no bytes');
  return bytes;
}
