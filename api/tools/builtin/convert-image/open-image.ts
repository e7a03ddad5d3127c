// Opens a stranger's image within limits, in worker processes: only formats that are pure pictures, and a maximum of
// pixels.
import sharp, { type Sharp } from 'sharp';
import { Problem } from '../../../../lib/problem.ts';
import { unprocessable } from '../../problems.ts';

/**
 * libvips can open more than pictures for the web: SVG with what it refers to, PDF, whatever a module of the system
 * knows.
 */
const taken: ReadonlySet<string> = new Set(['png', 'jpeg', 'webp', 'gif', 'heif', 'tiff', 'avif']);
const maxPixels = 50_000_000;

export interface OpenImage {
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
export async function openImage(bytes: Uint8Array): Promise<OpenImage> {
  if (bytes.length === 0) throw new Problem(unprocessable, 'The file is empty.');
  const image = sharp(bytes, { limitInputPixels: maxPixels, failOn: 'error', animated: false });
  const { format, width, height } = await image.metadata().catch((error: unknown) => {
    throw broken(error);
  });
  if (!taken.has(format))
    throw new Problem(
      unprocessable,
      `Images of the format ${format} are not supported. Send PNG, JPEG, WebP, AVIF, GIF or TIFF.`,
    );
  return { image: image.autoOrient(), format: format === 'heif' ? 'avif' : format, width, height };
}

/** What libvips says of an image that it cannot read. */
export function broken(error: unknown): Problem {
  const said = error instanceof Error ? (error.message.split('\n')[0] ?? '') : '';
  if (/pixel limit/i.test(said)) return new Problem(unprocessable, `The image has more than ${maxPixels} pixels.`);
  if (/unsupported image format/i.test(said))
    return new Problem(unprocessable, 'The file is not a supported image. Send PNG, JPEG, WebP, AVIF, GIF or TIFF.');
  return new Problem(unprocessable, `The image cannot be read: ${said.slice(0, 200)}`, { cause: error });
}
