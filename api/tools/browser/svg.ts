// Draws a clean SVG as PNG in a page: with the fonts of the system, colour emoji, and HTML inside of the SVG.
import { z } from 'zod';
import type { Picture } from '../svg/picture.ts';
import { zoomOf } from '../svg/png.ts';
import type { Page } from './page.ts';
import type { BrowserTask } from './task.ts';

const size = z.object({ width: z.number().positive(), height: z.number().positive() });

export async function drawSvg(
  page: Page,
  { svg, scale }: Extract<BrowserTask, { readonly kind: 'svg' }>,
): Promise<Picture> {
  const text = literal(new TextDecoder().decode(svg));
  const box = await page.evaluate(`showSvg(${text})`, size);
  return screenshotOf(page, box, scale);
}

/** JSON as a script reads it. */
export function literal(value: unknown): string {
  return JSON.stringify(value).replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029');
}

/** What the page shows, as a picture of this size. */
export async function screenshotOf(page: Page, box: z.output<typeof size>, scale: number): Promise<Picture> {
  const zoom = zoomOf(box, scale);
  const bytes = await page.screenshot({ ...box, scale: zoom });
  return {
    format: 'png',
    bytes,
    width: Math.round(box.width * zoom),
    height: Math.round(box.height * zoom),
    warnings: [],
  };
}
