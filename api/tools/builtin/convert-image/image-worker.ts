// Converts an image with sharp. Runs in a worker process.
import type { Sharp } from 'sharp';
import { broken, openImage } from './open-image.ts';

export const imageFormats = ['png', 'jpeg', 'webp', 'avif', 'gif'] as const;
export type ImageFormat = (typeof imageFormats)[number];

export interface ImageTask {
  readonly bytes: Uint8Array;
  readonly format: ImageFormat;
  readonly width?: number | undefined;
  readonly height?: number | undefined;
  readonly fit: 'inside' | 'cover' | 'contain' | 'fill';
  readonly quality: number;
  /** Whether a smaller image keeps its size. */
  readonly noEnlargement?: boolean;
}

export interface ConvertedImage {
  readonly image: Uint8Array;
  readonly format: ImageFormat;
  readonly width: number;
  readonly height: number;
  readonly source: { readonly format: string; readonly width: number; readonly height: number };
}

export default async function run({ bytes, format, quality, ...wanted }: ImageTask): Promise<ConvertedImage> {
  const { image, ...source } = await openImage(bytes);
  const { width, height, fit, noEnlargement: withoutEnlargement = false } = wanted;
  const sized =
    width === undefined && height === undefined
      ? image
      : image.resize({ width, height, fit, background: '#ffffff00', withoutEnlargement });
  const made = await encoded(sized, format, quality)
    .toBuffer({ resolveWithObject: true })
    .catch((error: unknown) => {
      throw broken(error);
    });
  return { image: new Uint8Array(made.data), format, width: made.info.width, height: made.info.height, source };
}

function encoded(image: Sharp, format: ImageFormat, quality: number): Sharp {
  switch (format) {
    case 'png':
      return image.png();
    // What is transparent would turn black.
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
