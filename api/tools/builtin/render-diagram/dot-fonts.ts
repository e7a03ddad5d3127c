// Makes Graphviz measure text as it is drawn: in Arial, by whose widths every viewer draws, and with the width that Chinese,
// Japanese and Korean have.

/**
 * Graphviz knows the widths of ASCII letters, and takes each byte of another one for a space: three are 0.83 of a wide
 * letter. One more letter of two bytes for each three makes up for it, and is taken out of the picture again.
 */
const pad = '\u0378';
const wide =
  /(?:[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\u3000-\u303f\uff00-\uffef]){3}/gu;

const defaults = ['graph', 'node', 'edge'].map((what) => `${what} [fontname="Arial"];`).join(' ');

/** The source with a font of its own, on the same lines. */
export function withFont(source: string): string {
  const padded = source.replaceAll(pad, '').replace(wide, (letters) => letters + pad);
  // The first brace that is in no comment and no name opens the graph.
  const start = /^(?:\s+|\uFEFF|\/\*[\s\S]*?\*\/|\/\/[^\n]*|#[^\n]*|"(?:[^"\\]|\\[\s\S])*"|[^\s{"/#]+|\/)*\{/.exec(
    padded,
  )?.[0];
  return start === undefined ? padded : `${start} ${defaults}${padded.slice(start.length)}`;
}

/** A picture, or words about the source, without what was added. */
export function withoutPads(text: string): string {
  return text.replaceAll(pad, '').replaceAll('&#888;', '');
}
