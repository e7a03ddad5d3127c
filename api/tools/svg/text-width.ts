// Widths of text in the font with which pictures are drawn, for layouts that are made without a browser.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import opentype, { type Font } from 'opentype.js';

const fontOf = (weight: string): Font => {
  const bytes = readFileSync(
    fileURLToPath(import.meta.resolve(`@expo-google-fonts/arimo/${weight}/Arimo_${weight}.ttf`)),
  );
  return opentype.parse(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength));
};
const regular = fontOf('400Regular');
const bold = fontOf('700Bold');

const wide =
  /[\u1100-\u115F\u2E80-\uA4CF\uAC00-\uD7A3\uF900-\uFAFF\uFE30-\uFE4F\uFF00-\uFF60\u{20000}-\u{3FFFD}]|\p{Emoji_Presentation}/u;
const joined = /\p{Mark}|[\u200B-\u200F\u2060]/u;

/** In pixels, at a size in pixels. Letters that the font has not are taken as broad as such scripts are. */
export function textWidth(text: string, size: number, isBold = false): number {
  const font = isBold ? bold : regular;
  let width = 0;
  for (const letter of text) {
    if (joined.test(letter)) continue;
    const index = font.charToGlyphIndex(letter);
    width += index > 0 ? (font.glyphs.get(index).advanceWidth ?? 0) / font.unitsPerEm : wide.test(letter) ? 1.1 : 0.7;
  }
  return width * size;
}
