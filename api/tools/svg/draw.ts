// Turns SVG into the requested picture: cleaned SVG, or PNG. Runs in worker processes.
import { Problem } from '../../../lib/problem.ts';
import { toolLimit, unprocessable } from '../problems.ts';
import { cleanSvg, decoded, nothingRemoved } from './clean.ts';
import type { Picture } from './picture.ts';
import { pngOf } from './png.ts';

const maxSvgLength = 8_000_000;

export interface PictureOptions {
  readonly format: 'svg' | 'png';
  readonly scale: number;
}

/** A clean SVG, or the PNG of it; an SVG in place of a PNG that only the browser can draw (`make-picture.ts`). */
export function draw(
  svg: string,
  { format, scale }: PictureOptions,
  warnings: readonly string[] = [],
  forResvg?: (svg: string) => string,
): Picture {
  if (svg.length > maxSvgLength)
    throw new Problem(toolLimit, `The picture would be larger than ${maxSvgLength / 1e6} MB.`, {
      members: { limit: 'size' },
    });
  const removed = nothingRemoved();
  const clean = cleanSvg(svg, removed);
  refuseImages(removed.images);
  const notes = [...warnings, ...[...removed.others].slice(0, 20).map(removal)];
  if (format === 'svg') return asSvg(clean, notes);
  if (needsBrowser(clean)) return asSvg(clean, notes);
  return { format, ...pngOf(forResvg === undefined ? clean : cleanSvg(forResvg(svg)), scale), warnings: notes };
}

function asSvg(clean: string, warnings: string[]): Picture {
  return { format: 'svg', ...sizeOf(clean), bytes: new TextEncoder().encode(clean), warnings };
}

/** Letters of which the bundled fonts have none, emoji, and HTML. */
const unknownLetters =
  /(?![\p{Script=Latin}\p{Script=Greek}\p{Script=Cyrillic}\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Common}\p{Script=Inherited}])\p{L}|\p{Emoji_Presentation}|\ufe0f/u;

function needsBrowser(clean: string): boolean {
  if (/<foreignObject\b/.test(clean)) return true;
  const text = clean.replace(/<style\b[\s\S]*?<\/style>/g, '').replace(/<[^>]*>/g, ' ');
  return unknownLetters.test(decoded(text));
}

const removal = (what: string): string => `Removed from the picture: ${what.slice(0, 200)}.`;

/** A picture without one of its images would be another picture. */
function refuseImages(addresses: ReadonlySet<string>): void {
  const [first] = addresses;
  if (first === undefined) return;
  throw new Problem(
    unprocessable,
    `The picture names an image from outside: ${first.slice(0, 200)}. Nothing is loaded; give the image as a data: URL (png, jpeg, gif or webp), or leave it out.`,
  );
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
