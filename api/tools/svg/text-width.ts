// Measures and wraps text in the font of pictures, for layouts without a browser.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import opentype, { type Font } from 'opentype.js';

const fonts = new Map<string, Font>();

/** Reads a font when it is first needed: parsing one takes a quarter of the time in which the API starts. */
function readFont(weight: '400Regular' | '700Bold'): Font {
  const known = fonts.get(weight);
  if (known !== undefined) return known;
  const bytes = readFileSync(
    fileURLToPath(import.meta.resolve(`@expo-google-fonts/arimo/${weight}/Arimo_${weight}.ttf`)),
  );
  const font = opentype.parse(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength));
  fonts.set(weight, font);
  return font;
}

const wide =
  /[\u1100-\u115F\u2E80-\uA4CF\uAC00-\uD7A3\uF900-\uFAFF\uFE30-\uFE4F\uFF00-\uFF60\u{20000}-\u{3FFFD}]|\p{Emoji_Presentation}/u;
const joined = /\p{Mark}|[\u200B-\u200F\u2060]/u;

/** Returns the width in pixels at a font size in pixels. For letters that the font lacks, uses a typical width. */
export function measureTextWidth(text: string, size: number, isBold = false): number {
  const font = readFont(isBold ? '700Bold' : '400Regular');
  let width = 0;
  for (const letter of text) {
    if (joined.test(letter)) continue;
    const index = font.charToGlyphIndex(letter);
    width += index > 0 ? (font.glyphs.get(index).advanceWidth ?? 0) / font.unitsPerEm : wide.test(letter) ? 1.1 : 0.7;
  }
  return width * size;
}

/** Wraps text to a maximum width. Returns a string if it fits on one line. */
export function wrapText(text: string, width: number, size: number): string | string[] {
  const lines = text.split('\n').flatMap((line) => wrapLine(line, width, size));
  return lines.length > 1 ? lines : (lines[0] ?? '');
}

function wrapLine(line: string, width: number, size: number): string[] {
  if (measureTextWidth(line, size, true) <= width) return [line];
  const lines: string[] = [];
  let current = '';
  // Split into words, and into letters in scripts without spaces.
  for (const part of line.split(/(?<=\s)|(?<=[\u2E80-\u9FFF\u3040-\u30FF\uAC00-\uD7A3\u0E00-\u0E7F])/u)) {
    if (current !== '' && measureTextWidth(current + part, size, true) > width) {
      lines.push(current.trimEnd());
      current = '';
    }
    current += part;
  }
  return [...lines, current.trimEnd()];
}
