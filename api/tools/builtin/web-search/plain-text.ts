// Text of search engines as plain text: without markup, entities, control characters and halves of characters. Some
// engines of SearXNG hand on what a page or an API gave them.
import { Parser } from 'htmlparser2';

/** Elements that engines mark words with, or that come along with a piece of a page. */
const elements: ReadonlySet<string> = new Set(
  (
    'a abbr address article aside b bdi bdo big blockquote body br button center cite code dd del details dfn div dl dt em figcaption figure font footer form ' +
    'h1 h2 h3 h4 h5 h6 head header hr html i iframe img input ins kbd label li link main mark meta nav noscript ol p picture pre q s samp script section small source span strike ' +
    'strong style sub summary sup svg table tbody td template textarea tfoot th thead time title tr tt u ul var video wbr'
  ).split(' '),
);
const voids: ReadonlySet<string> = new Set(['br', 'hr', 'img', 'input', 'link', 'meta', 'source', 'wbr']);
/** They set words apart; all others stand within a word. */
const inline: ReadonlySet<string> = new Set(
  'a abbr b bdi bdo big cite code del dfn em font i ins kbd mark q s samp small span strike strong sub sup tt u var wbr'.split(
    ' ',
  ),
);

/** Escaped twice is the most that is seen. */
const maxPasses = 3;

/** On one line, at most so many characters, cut between them. */
export function plainText(text: string, maximum: number): string {
  let plain = text.slice(0, maximum * 8);
  for (let pass = 0; pass < maxPasses; pass++) {
    const next = withoutMarkup(plain);
    if (next === plain) break;
    plain = next;
  }
  const line = plain
    .replaceAll(/\p{Cs}/gu, '')
    .replaceAll(/[\s\p{Cc}\u2028\u2029]+/gu, ' ')
    // They turn the direction of whatever is shown after them.
    .replaceAll(/[\u202a-\u202e\u2066-\u2069\ufeff\ufffe\uffff]/g, '')
    .trim();
  return line.length <= maximum
    ? line
    : line
        .slice(0, maximum)
        .replace(/[\ud800-\udbff]$/, '')
        .trimEnd();
}

interface Piece {
  text: string;
}

function withoutMarkup(text: string): string {
  if (!/[<&]/.test(text)) return text;
  const pieces: Piece[] = [];
  /** Tags that are not closed so far: words of the text, unless their end is found. */
  const open: { readonly name: string; readonly piece: Piece }[] = [];
  const parser = new Parser(
    {
      ontext: (part) => {
        pieces.push({ text: part });
      },
      onopentag: (name, attributes) => {
        const written = text.slice(parser.startIndex, parser.endIndex + 1);
        const piece = { text: written };
        pieces.push(piece);
        if (isMarkup(name, attributes, text.charAt(parser.endIndex + 1))) piece.text = gap(name);
        else open.push({ name, piece });
      },
      onclosetag: (name, isImplied) => {
        const last = open.findLastIndex((each) => each.name === name);
        if (isImplied) return;
        pieces.push({ text: elements.has(name) ? gap(name) : text.slice(parser.startIndex, parser.endIndex + 1) });
        const [opened] = last < 0 ? [] : open.splice(last, 1);
        if (opened !== undefined && elements.has(name)) opened.piece.text = gap(name);
      },
    },
    { decodeEntities: true, lowerCaseTags: true },
  );
  parser.end(text);
  return pieces.map((piece) => piece.text).join('');
}

/** A lone `<a>` is what a text speaks of, like the title of a page about it; before a word, it marks the word. */
function isMarkup(name: string, attributes: Readonly<Record<string, string>>, next: string): boolean {
  if (!elements.has(name)) return false;
  return voids.has(name) || Object.keys(attributes).length > 0 || /[\p{L}\p{N}]/u.test(next);
}

function gap(name: string): string {
  return inline.has(name) ? '' : ' ';
}
