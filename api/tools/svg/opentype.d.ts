// What is used of opentype.js: its published types pull in those of browsers, which clash with the ones of Node.
declare module 'opentype.js' {
  interface Glyph {
    readonly advanceWidth?: number;
  }
  interface Font {
    readonly unitsPerEm: number;
    readonly glyphs: { get(index: number): Glyph };
    charToGlyphIndex(letter: string): number;
  }
  const opentype: { parse(bytes: ArrayBuffer): Font };
  export type { Font, Glyph };
  export default opentype;
}
