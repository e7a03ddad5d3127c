// Draws lines of text as a picture, for tests of what reads pictures.
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { Resvg } from '@resvg/resvg-js';
import sharp from 'sharp';

const fonts = join(dirname(createRequire(import.meta.url).resolve('dejavu-fonts-ttf/package.json')), 'ttf');

/** A PNG, black on white, a line below the other. */
export async function lettersPng(lines: readonly string[]): Promise<Buffer> {
  const text = lines
    .map((line, index) => `<text x="40" y="${90 + index * 80}" font-family="DejaVu Sans" font-size="48">${line}</text>`)
    .join('');
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="700" height="${60 + lines.length * 80}"><rect width="100%" height="100%" fill="#fff"/>${text}</svg>`;
  const drawn = new Resvg(svg, {
    font: { loadSystemFonts: false, fontFiles: [join(fonts, 'DejaVuSans.ttf')], defaultFontFamily: 'DejaVu Sans' },
  }).render();
  return sharp(drawn.asPng()).png().toBuffer();
}
