// The tool convert_image: converts an image to another format, size or quality.
import { z } from 'zod';
import { requireOneRule } from '../../inputs/fields.ts';
import { fileAliases, fileFieldNames, fileFields, maxDataMegabytes } from '../../inputs/fields.ts';
import { readFile } from '../../inputs/file-reader.ts';
import { pictureFormat } from '../../inputs/fields.ts';
import type { ToolDependencies } from '../../tool.ts';
import { defineTool, type Tool } from '../../tool.ts';

const maxBytes = 20_000_000;
const imageFormats = ['png', 'jpeg', 'webp', 'avif', 'gif'] as const;
export type ImageFormat = (typeof imageFormats)[number];

/** Without a format, the worker only measures the image. */
export interface MeasureTask {
  readonly bytes: Uint8Array;
}

export interface ImageTask extends MeasureTask {
  readonly format: ImageFormat;
  readonly width?: number | undefined;
  readonly height?: number | undefined;
  readonly fit: 'inside' | 'cover' | 'contain' | 'fill';
  readonly quality: number;
  /** Whether a smaller image keeps its size. */
  readonly noEnlargement?: boolean;
}

export interface ImageSize {
  readonly width: number;
  readonly height: number;
}

export interface ConvertedImage extends ImageSize {
  readonly image: Uint8Array;
  readonly format: ImageFormat;
  readonly source: { readonly format: string; readonly width: number; readonly height: number };
}

const input = z
  .strictObject({
    ...fileFields('the image'),
    format: pictureFormat(imageFormats)
      .prefault('png')
      .describe('Target format: png (default), jpeg (or jpg), webp, avif or gif.'),
    width: z
      .int()
      .min(1)
      .max(8_192)
      .optional()
      .describe('Target width in pixels, up to 8192. If only width is set, the height follows in proportion.'),
    height: z
      .int()
      .min(1)
      .max(8_192)
      .optional()
      .describe('Target height in pixels, up to 8192. If only height is set, the width follows in proportion.'),
    fit: z
      .enum(['inside', 'cover', 'contain', 'fill'])
      .default('inside')
      .describe(
        'How to resize when both width and height are set: inside (default) fits the whole image, cover fills and crops, contain adds borders, fill stretches.',
      ),
    quality: z.int().min(1).max(100).default(80).describe('Quality for jpeg, webp and avif, 1 to 100. Default: 80.'),
  })
  .superRefine(requireOneRule(fileFieldNames));

const output = z.object({
  format: z.enum(imageFormats).describe('Format of the new image.'),
  width: z.int(),
  height: z.int(),
  bytes: z.int(),
  source: z
    .object({ format: z.string(), width: z.int(), height: z.int(), bytes: z.int() })
    .describe('Properties of the source image.'),
});

const workerOutput = output
  .omit({ bytes: true })
  .extend({ source: output.shape.source.omit({ bytes: true }), image: z.instanceof(Uint8Array) });

export function createConvertImageTool(services: ToolDependencies): Tool {
  return defineTool({
    name: 'convert_image',
    title: 'Convert an image',
    description: `Converts an image to PNG, JPEG, WebP, AVIF or GIF, and resizes it. Send exactly one of url and artifact (up to 20 MB) and data (up to ${maxDataMegabytes} MB). Accepts PNG, JPEG, WebP, AVIF, GIF and TIFF of up to 50 megapixels; of an animation, only the first frame. Metadata, such as the location, is removed. Does not accept SVG, because it can contain more than a picture. Returns the new image as a file.`,
    input,
    aliases: { to: 'format', w: 'width', h: 'height', q: 'quality', image: 'data', ...fileAliases },
    output,
    example: { url: 'https://www.w3.org/assets/logos/w3c-2025/w3c-logo-200.png', format: 'webp', width: 64 },
    price: '0.0001',
    artifacts: ['image/png', 'image/jpeg', 'image/webp', 'image/avif', 'image/gif'],
    openWorld: true,
    limitMs: 60_000,
    run: async ({ url, data, artifact, ...wanted }, context) => {
      const { signal } = context;
      const given = { url, data, artifact };
      const { bytes } = await readFile(services, given, { maxBytes, accept: 'image/*', signal });
      const task: ImageTask = { bytes, ...wanted };
      const { image, source, ...made } = workerOutput.parse(
        await services.workers.run(
          {
            module: new URL('image-worker.ts', import.meta.url),
            input: task,
            timeoutMs: 30_000,
            memoryMb: 512,
          },
          context,
        ),
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
