// Converts SVG to a picture: cleaned SVG, or PNG drawn by resvg with bundled fonts. Runs in worker processes. resvg reads
// no system font, no other file and no URL.
import { fileURLToPath } from 'node:url';
import { Resvg, type ResvgRenderOptions } from '@resvg/resvg-js';
import { Problem } from '../../../lib/problem.ts';
import { toolLimit, unprocessable } from '../problems.ts';
import { cleanSvg, decodeEntities, createRemoved } from './clean.ts';
import type { Picture } from './picture.ts';

const maxSvgLength = 8_000_000;

export interface PictureOptions {
  readonly format: 'svg' | 'png';
  readonly scale: number;
}

/** Returns a clean SVG or its PNG. If only the browser can draw the PNG, returns the SVG (see `makePicture`). */
export function drawPicture(
  svg: string,
  { format, scale }: PictureOptions,
  warnings: readonly string[] = [],
  forResvg?: (svg: string) => string,
): Picture {
  if (svg.length > maxSvgLength)
    throw new Problem(toolLimit, `The picture would be larger than ${maxSvgLength / 1e6} MB.`, {
      members: { limit: 'size' },
    });
  const removed = createRemoved();
  const clean = cleanSvg(svg, removed);
  refuseImages(removed.images);
  const notes = [...warnings, ...[...removed.others].slice(0, 20).map(formatRemoval)];
  if (format === 'svg') return toSvgPicture(clean, notes);
  if (isBrowserRequired(clean)) return toSvgPicture(clean, notes);
  return { format, ...drawPng(forResvg === undefined ? clean : cleanSvg(forResvg(svg)), scale), warnings: notes };
}

function toSvgPicture(clean: string, warnings: string[]): Picture {
  return { format: 'svg', ...readSize(clean), bytes: new TextEncoder().encode(clean), warnings };
}

/** Letters that the bundled fonts lack, and emoji. */
const unknownLetters =
  /(?![\p{Script=Latin}\p{Script=Greek}\p{Script=Cyrillic}\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Common}\p{Script=Inherited}])\p{L}|\p{Emoji_Presentation}|\ufe0f/u;

function isBrowserRequired(clean: string): boolean {
  if (/<foreignObject\b/.test(clean)) return true;
  const text = clean.replace(/<style\b[\s\S]*?<\/style>/g, '').replace(/<[^>]*>/g, ' ');
  return unknownLetters.test(decodeEntities(text));
}

const formatRemoval = (what: string): string => `Removed from the picture: ${what.slice(0, 200)}.`;

/** An image cannot be left out without changing the picture's meaning. */
function refuseImages(addresses: ReadonlySet<string>): void {
  const [first] = addresses;
  if (first === undefined) return;
  throw new Problem(
    unprocessable,
    `The picture names an image from outside: ${first.slice(0, 200)}. Nothing is loaded; give the image as a data: URL (png, jpeg, gif or webp), or leave it out.`,
  );
}

/** Reads the size from the root element: width and height, or the viewBox. */
function readSize(svg: string): { width: number; height: number } {
  const root = /<svg\b[^>]*>/.exec(svg)?.[0] ?? '';
  const number = (name: string): number => Number.parseFloat(new RegExp(`\\s${name}="([\\d.]+)`).exec(root)?.[1] ?? '');
  const box = /viewBox="\S+\s+\S+\s+([\d.]+)\s+([\d.]+)"/.exec(root);
  const or = (value: number, other: string | undefined): number =>
    Number.isFinite(value) ? value : Number(other ?? 0);
  return { width: or(number('width'), box?.[1]), height: or(number('height'), box?.[2]) };
}

/** Maximum pixels of a picture, which need 64 MB while it is drawn. */
const maxPixels = 16_000_000;

const resolveFontFile = (path: string): string => fileURLToPath(import.meta.resolve(path));

/** Arimo has the metrics of Arial, which layouts assume; DejaVu has symbols and other alphabets. */
const latin = [
  ...['400Regular', '400Regular_Italic', '500Medium', '600SemiBold', '700Bold', '700Bold_Italic'].map((weight) =>
    resolveFontFile(`@expo-google-fonts/arimo/${weight}/Arimo_${weight}.ttf`),
  ),
  ...['DejaVuSans', 'DejaVuSans-Bold', 'DejaVuSansMono', 'DejaVuSansMono-Bold'].map((name) =>
    resolveFontFile(`dejavu-fonts-ttf/ttf/${name}.ttf`),
  ),
];
const packageOfHan = resolveFontFile('@embedpdf/fonts-sc').replace(/dist\/.*$/, 'fonts/');
const han = ['Regular', 'Bold'].map((weight) => `${packageOfHan}NotoSansHans-${weight}.otf`);
const needsHan = /[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef\u{20000}-\u{3ffff}]|&#(x[2-9a-f][0-9a-f]{3}|\d{5});/iu;

export interface Png {
  readonly bytes: Uint8Array;
  readonly width: number;
  readonly height: number;
}

/** Reduces the requested scale if the picture would be too large. */
export function limitZoom(
  { width, height }: { readonly width: number; readonly height: number },
  scale: number,
): number {
  return Math.min(scale, Math.sqrt(maxPixels / (width * height)), 16_000 / Math.max(width, height));
}

/** @throws Problem (unprocessable) if it has no size or is not SVG */
export function drawPng(given: string, scale: number): Png {
  const svg = given.replace(/(font-family\s*[=:]\s*["']?)Courier[^"';,]*/g, '$1DejaVu Sans Mono');
  const options: ResvgRenderOptions = {
    background: 'white',
    font: {
      loadSystemFonts: false,
      fontFiles: needsHan.test(svg) ? [...latin, ...han] : latin,
      defaultFontFamily: 'Arimo',
      sansSerifFamily: 'Arimo',
      serifFamily: 'Arimo',
      monospaceFamily: 'DejaVu Sans Mono',
    },
    logLevel: 'off',
  };
  try {
    const { width, height } = new Resvg(svg, { ...options, font: { loadSystemFonts: false } });
    const picture = new Resvg(svg, {
      ...options,
      fitTo: { mode: 'zoom', value: limitZoom({ width, height }, scale) },
    }).render();
    return { bytes: new Uint8Array(picture.asPng()), width: picture.width, height: picture.height };
  } catch (error) {
    throw new Problem(
      unprocessable,
      `The picture cannot be drawn as PNG: ${error instanceof Error ? error.message.slice(0, 300) : 'it has no size'}`,
      { cause: error },
    );
  }
}
