// A picture as a worker returns it: cleaned SVG, or PNG drawn from it.
import { z } from 'zod';
import type { Artifact } from '../tool.ts';

export const pictureFields = {
  format: z.enum(['svg', 'png']).describe('Format of the picture.'),
  width: z.number().describe('Width in pixels.'),
  height: z.number().describe('Height in pixels.'),
  warnings: z.array(z.string()).describe('What may not look as intended.'),
};

export const picture = z.object({
  ...pictureFields,
  bytes: z.custom<Uint8Array>((value) => value instanceof Uint8Array),
});
export type Picture = z.output<typeof picture>;

export const formatField = z.enum(['svg', 'png']).default('svg').describe('Picture format: svg (default) or png.');
export const scaleField = z
  .number()
  .min(0.1)
  .max(4)
  .default(2)
  .describe(
    'Scale of a PNG relative to the natural size of the picture, 0.1 to 4. Default: 2. Reduced where the PNG would exceed 16 megapixels.',
  );

export function artifactOf({ bytes, format }: Picture, name: string): Artifact {
  return { bytes, mediaType: format === 'svg' ? 'image/svg+xml' : 'image/png', fileName: `${name}.${format}` };
}
