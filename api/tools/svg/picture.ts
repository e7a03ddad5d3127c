// A picture drawn by workers: its fields, the call that draws it, and the browser's task for what resvg cannot draw.
import { z } from 'zod';
import type { Artifact } from '../tool.ts';
import type { WorkerCall, WorkerTask, Workers } from '../engine/workers/workers.ts';
import type { PictureOptions } from './draw.ts';

export const pictureFields = {
  format: z.enum(['svg', 'png']).describe('Format of the picture.'),
  width: z.number().describe('Width in pixels.'),
  height: z.number().describe('Height in pixels.'),
  warnings: z.array(z.string()).describe('Details that may not look as intended.'),
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

export function toArtifact({ bytes, format }: Picture, name: string): Artifact {
  return { bytes, mediaType: format === 'svg' ? 'image/svg+xml' : 'image/png', fileName: `${name}.${format}` };
}

/** Draws a picture in workers. The browser draws a PNG that resvg cannot. */
export async function makePicture(
  workers: Workers,
  task: WorkerTask,
  call: WorkerCall,
  { format, scale }: PictureOptions,
): Promise<Picture> {
  const made = picture.parse(await workers.run(task, call));
  if (made.format === format) return made;
  const drawn = picture.parse(await workers.run(createBrowserTask({ kind: 'svg', svg: made.bytes, scale }), call));
  return { ...drawn, warnings: made.warnings };
}

export type BrowserTask =
  | {
      readonly kind: 'mermaid';
      readonly source: string;
      readonly layout: string | undefined;
      readonly format: 'svg' | 'png';
      readonly scale: number;
    }
  /** Converts a clean SVG to PNG. */
  | { readonly kind: 'svg'; readonly svg: Uint8Array; readonly scale: number };

/** A browser takes a second to start, so its process is kept warm. */
export function createBrowserTask(input: BrowserTask): WorkerTask {
  return {
    module: new URL('../browser/worker.ts', import.meta.url),
    input,
    memoryMb: 512,
    timeoutMs: 20_000,
    startsProgram: true,
    warm: true,
  };
}
