// A picture as a worker hands it over: SVG, cleaned, or PNG drawn from it.
import { z } from 'zod';
import type { Artifact } from '../tool.ts';

export const pictureFields = {
  format: z.enum(['svg', 'png']).describe('Format of the picture'),
  width: z.number().describe('Width in pixels'),
  height: z.number().describe('Height in pixels'),
  warnings: z.array(z.string()).describe('What may not look as meant'),
};

export const picture = z.object({
  ...pictureFields,
  bytes: z.custom<Uint8Array>((value) => value instanceof Uint8Array),
});
export type Picture = z.output<typeof picture>;

export const formatField = z.enum(['svg', 'png']).default('svg').describe('svg (default) or png');
export const scaleField = z
  .number()
  .min(0.1)
  .max(4)
  .default(2)
  .describe('How much larger than its own size a PNG is drawn, 0.1 to 4');

export function artifactOf({ bytes, format }: Picture, name: string): Artifact {
  return { bytes, mediaType: format === 'svg' ? 'image/svg+xml' : 'image/png', fileName: `${name}.${format}` };
}
