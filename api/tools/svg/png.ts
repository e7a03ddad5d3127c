// Draws SVG as PNG with resvg and bundled fonts: no system font, no other file and no URL is read.
import { fileURLToPath } from 'node:url';
import { Resvg, type ResvgRenderOptions } from '@resvg/resvg-js';
import { Problem } from '../../../lib/problem.ts';
import { unprocessable } from '../problems.ts';

/** Pixels of a picture, at most: 64 MB while it is drawn. */
const maxPixels = 16_000_000;

const fontFile = (path: string): string => fileURLToPath(import.meta.resolve(path));

/** Arimo is as wide as Arial, by which layouts measure; DejaVu has the symbols and the other alphabets. */
const latin = [
  ...['400Regular', '400Regular_Italic', '500Medium', '600SemiBold', '700Bold', '700Bold_Italic'].map((weight) =>
    fontFile(`@expo-google-fonts/arimo/${weight}/Arimo_${weight}.ttf`),
  ),
  ...['DejaVuSans', 'DejaVuSans-Bold', 'DejaVuSansMono', 'DejaVuSansMono-Bold'].map((name) =>
    fontFile(`dejavu-fonts-ttf/ttf/${name}.ttf`),
  ),
];
const packageOfHan = fontFile('@embedpdf/fonts-sc').replace(/dist\/.*$/, 'fonts/');
const han = ['Regular', 'Bold'].map((weight) => `${packageOfHan}NotoSansHans-${weight}.otf`);
const needsHan = /[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef\u{20000}-\u{3ffff}]|&#(x[2-9a-f][0-9a-f]{3}|\d{5});/iu;

export interface Png {
  readonly bytes: Uint8Array;
  readonly width: number;
  readonly height: number;
}

/** The scale that was asked for, or less where the picture would be too large. */
export function zoomOf({ width, height }: { readonly width: number; readonly height: number }, scale: number): number {
  return Math.min(scale, Math.sqrt(maxPixels / (width * height)), 16_000 / Math.max(width, height));
}

/** @throws Problem (unprocessable) when it has no size or is no SVG */
export function pngOf(given: string, scale: number): Png {
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
      fitTo: { mode: 'zoom', value: zoomOf({ width, height }, scale) },
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
