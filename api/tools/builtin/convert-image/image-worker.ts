// Converts or measures an image with sharp. Runs in a worker process. Only formats that are pure pictures are opened,
// up to a maximum of pixels.
import sharp, { type Sharp } from 'sharp';
import type { ConvertedImage, ImageFormat, ImageSize, ImageTask, MeasureTask } from './convert-image.ts';
import { Problem } from '../../../../lib/problem.ts';
import { unprocessable } from '../../problems.ts';

export default async function run(task: ImageTask | MeasureTask): Promise<ConvertedImage | ImageSize> {
  const { image, ...source } = await openImage(task.bytes);
  if (!('format' in task)) return { width: source.width, height: source.height };
  const { format, quality, width, height, fit, noEnlargement: withoutEnlargement = false } = task;
  const sized =
    width === undefined && height === undefined
      ? image
      : image.resize({ width, height, fit, background: '#ffffff00', withoutEnlargement });
  const made = await encode(sized, format, quality)
    .toBuffer({ resolveWithObject: true })
    .catch((error: unknown) => {
      throw toImageProblem(error);
    });
  return { image: new Uint8Array(made.data), format, width: made.info.width, height: made.info.height, source };
}

function encode(image: Sharp, format: ImageFormat, quality: number): Sharp {
  switch (format) {
    case 'png':
      return image.png();
    // Transparent pixels would turn black.
    case 'jpeg':
      return image.flatten({ background: '#ffffff' }).jpeg({ quality, mozjpeg: true });
    case 'webp':
      return image.webp({ quality });
    case 'avif':
      return image.avif({ quality, effort: 2 });
    case 'gif':
      return image.gif();
  }
}

/**
 * libvips can open more than web images: SVG with the files that it refers to, PDF, and whatever a system module
 * supports.
 */
const acceptedFormats: ReadonlySet<string> = new Set(['png', 'jpeg', 'webp', 'gif', 'heif', 'tiff', 'avif']);
const maxPixels = 50_000_000;

interface OpenedImage {
  readonly image: Sharp;
  readonly format: string;
  readonly width: number;
  readonly height: number;
}

sharp.cache(false);
sharp.concurrency(1);
sharp.block({ operation: ['VipsForeignLoad'] });
sharp.unblock({
  operation: [
    'VipsForeignLoadPng',
    'VipsForeignLoadJpeg',
    'VipsForeignLoadWebp',
    'VipsForeignLoadNsgif',
    'VipsForeignLoadHeif',
    'VipsForeignLoadTiff',
  ],
});

/** @throws Problem (unprocessable) */
export async function openImage(bytes: Uint8Array): Promise<OpenedImage> {
  if (bytes.length === 0) throw new Problem(unprocessable, 'The file is empty.');
  const image = sharp(bytes, { limitInputPixels: maxPixels, failOn: 'error', animated: false });
  const { format, width, height } = await image.metadata().catch((error: unknown) => {
    throw toImageProblem(error);
  });
  if (!acceptedFormats.has(format))
    throw new Problem(
      unprocessable,
      `Images of the format ${format} are not supported. Send PNG, JPEG, WebP, AVIF, GIF or TIFF.`,
    );
  return { image: image.autoOrient(), format: format === 'heif' ? 'avif' : format, width, height };
}

/** Converts an error of libvips. */
export function toImageProblem(error: unknown): Problem {
  const reason = error instanceof Error ? (error.message.split('\n')[0] ?? '') : '';
  if (/pixel limit/i.test(reason)) return new Problem(unprocessable, `The image has more than ${maxPixels} pixels.`);
  if (/unsupported image format/i.test(reason))
    return new Problem(unprocessable, 'The file is not a supported image. Send PNG, JPEG, WebP, AVIF, GIF or TIFF.');
  return new Problem(unprocessable, `The image cannot be read: ${reason.slice(0, 200)}`, { cause: error });
}
