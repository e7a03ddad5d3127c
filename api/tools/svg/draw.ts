// Turns SVG into the requested picture: cleaned SVG, or PNG. Runs in worker processes.
import { Problem } from '../../../lib/problem.ts';
import { toolLimit } from '../problems.ts';
import { cleanSvg } from './clean.ts';
import type { Picture } from './picture.ts';
import { pngOf } from './png.ts';

const maxSvgLength = 8_000_000;

export interface PictureOptions {
  readonly format: 'svg' | 'png';
  readonly scale: number;
}

export function draw(svg: string, { format, scale }: PictureOptions, warnings: readonly string[] = []): Picture {
  if (svg.length > maxSvgLength)
    throw new Problem(toolLimit, `The picture would be larger than ${maxSvgLength / 1e6} MB.`, {
      members: { limit: 'size' },
    });
  const clean = cleanSvg(svg);
  if (format === 'svg')
    return { format, ...sizeOf(clean), bytes: new TextEncoder().encode(clean), warnings: [...warnings] };
  const unseen = /<foreignObject\b/.test(clean)
    ? ['Text blocks with markup (foreignObject) are not drawn in PNG; use format=svg.']
    : [];
  return { format, ...pngOf(clean, scale), warnings: [...warnings, ...unseen] };
}

/** Size as the root element says it: width and height, or its viewBox. */
function sizeOf(svg: string): { width: number; height: number } {
  const root = /<svg\b[^>]*>/.exec(svg)?.[0] ?? '';
  const number = (name: string): number => Number.parseFloat(new RegExp(`\\s${name}="([\\d.]+)`).exec(root)?.[1] ?? '');
  const box = /viewBox="\S+\s+\S+\s+([\d.]+)\s+([\d.]+)"/.exec(root);
  const or = (value: number, other: string | undefined): number =>
    Number.isFinite(value) ? value : Number(other ?? 0);
  return { width: or(number('width'), box?.[1]), height: or(number('height'), box?.[2]) };
}
