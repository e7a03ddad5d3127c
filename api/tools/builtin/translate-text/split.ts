// Splits a long text into parts that a model translates well: between paragraphs, otherwise between sentences, or
// between words in an overlong sentence.

/** Parts of at most `maximum` characters where the text allows it; joined they are the text again, to the letter. */
export function splitText(text: string, maximum: number): string[] {
  return packed(
    blocks(text).flatMap((block) => (block.length <= maximum ? [block] : sentences(block, maximum))),
    maximum,
  );
}

/** Two parts of a text, cut between sentences near its middle; undefined when it cannot be cut. */
export function halves(text: string): [string, string] | undefined {
  const pieces = splitText(text, Math.ceil(text.length / 2));
  const [first, ...rest] = pieces;
  return first === undefined || rest.length === 0 ? undefined : [first, rest.join('')];
}

/** Paragraphs with the blank lines after them. A fenced block is one, whatever is in it. */
function blocks(text: string): string[] {
  const found: string[] = [];
  let block = '';
  let fence: string | undefined;
  for (const line of text.match(/[^\n]*\n|[^\n]+$/g) ?? []) {
    if (fence === undefined && line.trim() !== '' && /\n[^\S\n]*\n$/.test(block)) {
      found.push(block);
      block = '';
    }
    block += line;
    fence = fenceAfter(fence, line);
  }
  return [...found, block];
}

/** The fence that is open after a line, where one was open before it or not. */
function fenceAfter(open: string | undefined, line: string): string | undefined {
  const mark = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1];
  if (mark === undefined) return open;
  if (open === undefined) return mark;
  return mark.startsWith(open) ? undefined : open;
}

const segmenter = new Intl.Segmenter('en', { granularity: 'sentence' });

/** Sentences; one that is too long is cut between words, and a word that is too long, anywhere but inside a character. */
function sentences(text: string, maximum: number): string[] {
  return [...segmenter.segment(text)].flatMap(({ segment }) => {
    if (segment.length <= maximum) return [segment];
    return packed(
      (segment.match(/\S*\s*/g) ?? []).flatMap((word) =>
        word.length <= maximum ? [word] : packed(Array.from(word), maximum),
      ),
      maximum,
    );
  });
}

function packed(pieces: readonly string[], maximum: number): string[] {
  const parts: string[] = [];
  for (const piece of pieces) {
    const last = parts.at(-1);
    if (last !== undefined && last.length + piece.length <= maximum) parts[parts.length - 1] = last + piece;
    else if (piece !== '') parts.push(piece);
  }
  return parts;
}
