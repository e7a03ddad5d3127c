// Parses an outline in Markdown into slides of blocks.
import { marked, type Token, type Tokens } from 'marked';
import { type FieldError, Problem } from '../../../../lib/problem.ts';
import { readPart } from '../../../http/index.ts';
import { unprocessable } from '../../problems.ts';
import {
  maxColumns,
  maxSlides,
  outlineDeck,
  type OutlineBlock,
  type OutlineDeck,
  type OutlineSlide,
  isOneText,
  type Line,
} from './deck.ts';
import { prepareOutline } from './prepare-outline.ts';

/** The format of an outline, for descriptions and error messages. */
export const outlineForm =
  '# for the title and for sections, ## for slides, - or 1. for lists, two ### for two columns, tables, fenced code, ![alt](URL or artifact), ```chart (input of make_chart), ```mermaid, ```d2, ```dot, > for a quote with its author last after —, "Notes: …" for speaker notes';

export interface Outline {
  readonly deck: OutlineDeck;
  /** What the slides do not keep as it was written. */
  readonly warnings: readonly string[];
}

/** @throws Problem (unprocessable) that names the part that cannot be read */
export function readOutline(given: string): Outline {
  const { text: outline, warnings } = prepareOutline(given);
  const parts = splitParts(marked.lexer(outline, { gfm: true }).filter(({ type }) => !['space', 'def'].includes(type)));
  const [first, ...others] = parts;
  if (first === undefined) throw new Problem(unprocessable, `The outline has no headings. Use ${outlineForm}.`);
  const titled = first.depth === 1;
  const slides = [...(titled ? toExtraSlides(first) : []), ...(titled ? others : parts).flatMap(toSlides)];
  const { text: subtitle, notes } = readTextAndNotes(first.body);
  const head = titled
    ? { title: first.title, ...(subtitle === '' ? {} : { subtitle }), ...(notes === undefined ? {} : { notes }) }
    : { title: first.title };
  return { deck: readDeck(head, slides), warnings };
}

/** @throws Problem (unprocessable) */
function readDeck(head: object, slides: readonly unknown[]): OutlineDeck {
  try {
    return readPart('argument', outlineDeck, { ...head, slides });
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    const { message, fix } = explainFault(error.errors[0], slides);
    throw new Problem(unprocessable, `The outline cannot be turned into slides: ${message}. ${fix}`, {
      errors: [{ in: 'query', field: 'outline', message, fix }],
      cause: error,
    });
  }
}

interface OutlinePart {
  readonly depth: number;
  readonly title: string;
  readonly body: Token[];
  /** Whether its title is also the first token of its body. */
  readonly isTitled?: boolean;
}

/**
 * Splits at headings of the first two levels; a rule begins a new slide if no heading follows it. Content before the
 * first heading is put below that heading.
 */
function splitParts(tokens: readonly Token[]): OutlinePart[] {
  const parts: OutlinePart[] = [];
  const before: Token[] = [];
  tokens.forEach((token, index) => {
    if (isHeading(token) && token.depth <= 2) parts.push({ depth: token.depth, title: token.text, body: [] });
    else if (token.type === 'hr') parts.push(...startAfterRule(parts, tokens[index + 1]));
    else (parts.at(-1)?.body ?? before).push(token);
  });
  parts[0]?.body.unshift(...before);
  // A part that began with a rule took its title from its first token.
  return parts.map((part) => (part.isTitled === true ? { ...part, body: part.body.slice(1) } : part));
}

function startAfterRule(parts: readonly OutlinePart[], next: Token | undefined): OutlinePart[] {
  const last = parts.at(-1);
  if (last === undefined || next === undefined || next.type === 'hr' || (isHeading(next) && next.depth <= 2)) return [];
  const title = findTitle(next);
  return [{ depth: 2, title: title ?? last.title, body: [], isTitled: title !== undefined }];
}

/** A short line at the beginning of a slide is its title. */
function findTitle(token: Token): string | undefined {
  const title = isHeading(token) || token.type === 'paragraph' ? readText(token) : '';
  return title === '' || title.length > 80 || notesMark.test(title) || title.includes('![') ? undefined : title;
}

/** Content under the title of the deck, other than its subtitle, becomes a slide. */
function toExtraSlides(first: OutlinePart): unknown[] {
  const body = first.body.filter((token) => !isPlainParagraph(token) && !isNotes(token));
  return body.length === 0 ? [] : [toContentSlide({ ...first, body })];
}

/** Returns a section slide, or a content slide if the heading of a section has content. */
function toSlides(part: OutlinePart): unknown[] {
  const { depth, title, body } = part;
  if (depth === 1 && body.every((token) => isPlainParagraph(token) || isNotes(token))) {
    const { text, notes } = readTextAndNotes(body);
    return [
      {
        layout: 'section',
        title,
        ...(text === '' ? {} : { subtitle: text }),
        ...(notes === undefined ? {} : { notes }),
      },
    ];
  }
  return [toContentSlide(part)];
}

function toContentSlide({ title, body }: OutlinePart): unknown {
  const { notes } = readTextAndNotes(body);
  const shown = cutAtNotes(body).filter((token) => !isNotes(token));
  const columns = shown.filter(isHeading).length >= 2 ? toColumns(shown) : [{ blocks: parseBlocks(shown) }];
  return { layout: 'content', title, columns, ...(notes === undefined ? {} : { notes }) };
}

/** The first third-level heading begins the left column, the second the right one; later ones stay in the right one. */
function toColumns(body: readonly Token[]): { heading?: string; blocks: OutlineBlock[] }[] {
  const columns: { heading: string; body: Token[] }[] = [];
  const before: Token[] = [];
  for (const token of body) {
    if (isHeading(token) && columns.length < 2) columns.push({ heading: token.text, body: [] });
    else (columns.at(-1)?.body ?? before).push(token);
  }
  return columns.map(({ heading, body: own }, index) => ({
    heading,
    blocks: parseBlocks(index === 0 ? [...before, ...own] : own),
  }));
}

/** Reads the paragraphs below a title, and its notes. */
function readTextAndNotes(body: readonly Token[]): { text: string; notes: string | undefined } {
  const markedNotes = body
    .filter(isNotes)
    .map((token) => readText(token).replace(notesMark, ''))
    .filter((text) => text !== '');
  const after = body.slice(cutAtNotes(body).length + 1).map((token) => token.raw.trim());
  const notes = [...markedNotes, ...after].join('\n\n');
  return {
    text: cutAtNotes(body)
      .filter((token) => !isNotes(token) && isPlainParagraph(token))
      .map(readText)
      .join(' ')
      .trim(),
    notes: notes === '' ? undefined : notes,
  };
}

const notesMark = /^\**(?:speaker |presenter )?notes?\**:\**\s*/i;

/** Cuts off the notes that follow a standalone notes mark. */
function cutAtNotes(body: readonly Token[]): readonly Token[] {
  const at = body.findIndex((token) => isNotes(token) && readText(token).replace(notesMark, '') === '');
  return at < 0 ? body : body.slice(0, at);
}

function isNotes(token: Token): boolean {
  return token.type === 'paragraph' && notesMark.test((token as Tokens.Paragraph).text);
}

/** Whether it is a paragraph of text without images. */
function isPlainParagraph(token: Token): boolean {
  return token.type === 'paragraph' && !(token as Tokens.Paragraph).tokens.some(({ type }) => type === 'image');
}

function isHeading(token: Token): token is Tokens.Heading {
  return token.type === 'heading';
}

/** Explains a fault in terms of the outline, not of the deck that it becomes. */
function explainFault(fault: FieldError | undefined, slides: readonly unknown[]): { message: string; fix: string } {
  const use = `Use ${outlineForm}.`;
  if (slides.length === 0) return { message: 'it has no slides', fix: use };
  if (fault === undefined) return { message: 'it has no form that is known', fix: use };
  const [part, index, ...field] = fault.field.split('.');
  if (part !== 'slides') return { message: `${part ?? ''} ${fault.message}`, fix: use };
  if (index === undefined)
    return {
      message: `it has ${slides.length} slides; the maximum is ${maxSlides}`,
      fix: `Combine slides, or send it in several calls of at most ${maxSlides} slides each.`,
    };
  const { title = '' } = slides[Number(index)] as Partial<OutlineSlide>;
  const slide = `slide ${Number(index) + 1} (${JSON.stringify(title)})`;
  if (field.at(-1) === 'header')
    return {
      message: `${slide} has a table of more than ${maxColumns} columns`,
      fix: `Leave columns out, or split the table into tables of at most ${maxColumns} columns.`,
    };
  const named = field.filter((name) => !/^\d+$|^columns$|^blocks$/.test(name));
  return { message: `${slide}: ${named.join('.')} ${fault.message}`.replaceAll(/\s+/g, ' '), fix: use };
}

/** Characters per line; a longer text continues in further lines. */
const maxLineLength = 560;

const drawingLanguages: Readonly<Record<string, string>> = {
  chart: 'chart',
  'vega-lite': 'chart',
  vegalite: 'chart',
  vega: 'chart',
  mermaid: 'mermaid',
  mmd: 'mermaid',
  d2: 'd2',
  dot: 'graphviz',
  graphviz: 'graphviz',
  gv: 'graphviz',
};

function parseBlocks(body: readonly Token[]): OutlineBlock[] {
  return joinTextBlocks(body.flatMap((token) => parseToken(token, 0)));
}

function parseToken(token: Token, level: number): OutlineBlock[] {
  switch (token.type) {
    case 'code':
      return [parseCode(token as Tokens.Code)];
    case 'table':
      return [parseTable(token as Tokens.Table)];
    case 'blockquote':
      return [{ kind: 'quote', ...parseQuote((token as Tokens.Blockquote).text) }];
    case 'list':
      return parseList(token as Tokens.List, level);
    case 'heading':
      return createTextBlock([{ text: `**${readText(token)}**`, level, isParagraph: true }]);
    default:
      return parseParagraph(token, (text) => ({ text, level, isParagraph: true }));
  }
}

function parseCode({ text, lang = '' }: Tokens.Code): OutlineBlock {
  const language = drawingLanguages[/^[\w-]*/.exec(lang)?.[0].toLowerCase() ?? ''];
  return language === undefined || text.trim() === ''
    ? { kind: 'code', code: text.replaceAll('\t', '    ') }
    : { kind: 'drawing', language, source: text };
}

function parseTable({ header, rows, align }: Tokens.Table): OutlineBlock {
  return {
    kind: 'table',
    header: header.map((cell) => cell.text),
    rows: rows.map((row) => row.map((cell) => cell.text)),
    align: align.map((side) => side ?? null),
  };
}

function parseQuote(text: string): { quote: string; author?: string } {
  const [, quote = text, author] = /^([\s\S]*?)\n\s*(?:—|–|--)\s*(.+)$/.exec(text.trim()) ?? [];
  return { quote: quote.replaceAll(/\s+/g, ' ').trim(), ...(author === undefined ? {} : { author }) };
}

/** Parses list items with their numbers. Indentation stops at the third level. */
function parseList({ items, ordered, start }: Tokens.List, level: number): OutlineBlock[] {
  return items.flatMap((item, index) => {
    const number = ordered ? { number: (start === '' ? 1 : start) + index } : {};
    let isFirst = true;
    return item.tokens.flatMap((token): OutlineBlock[] => {
      if (token.type === 'space' || token.type === 'checkbox') return [];
      if (token.type !== 'text' && token.type !== 'paragraph')
        return token.type === 'list'
          ? parseList(token as Tokens.List, Math.min(level + 1, 2))
          : parseToken(token, level);
      const box = item.task && isFirst ? (item.checked === true ? '✓ ' : '☐ ') : '';
      const asFirst = isFirst;
      isFirst = false;
      return parseParagraph(token, (text) => ({
        text: `${box}${text}`,
        level,
        ...(asFirst ? number : { isParagraph: true }),
      }));
    });
  });
}

/** Returns the text of a paragraph, then its images. */
function parseParagraph(token: Token, lineOf: (text: string) => Line): OutlineBlock[] {
  const inner: readonly Token[] = 'tokens' in token ? (token.tokens ?? []) : [];
  const images = inner.filter((each): each is Tokens.Image => each.type === 'image');
  const text = images.reduce((now, image) => now.replace(image.raw, ''), readText(token)).trim();
  return [
    ...(text === ''
      ? []
      : createTextBlock(
          splitLongText(text).map((part, index) =>
            index === 0 ? lineOf(part) : { ...lineOf(part), isParagraph: true },
          ),
        )),
    ...images.map((image): OutlineBlock => ({ kind: 'image', href: image.href, alt: image.text })),
  ];
}

/** Splits a long text after sentences, or at least between words. */
function splitLongText(text: string): string[] {
  const parts: string[] = [];
  let left = text;
  while (left.length > maxLineLength) {
    const head = left.slice(0, maxLineLength);
    const end = Math.max(
      ...['. ', '! ', '? ', '。', '！', '？', '; '].map((mark) => head.lastIndexOf(mark) + mark.length - 1),
    );
    const at =
      end > maxLineLength / 3 ? end : head.lastIndexOf(' ') > maxLineLength / 3 ? head.lastIndexOf(' ') : maxLineLength;
    parts.push(left.slice(0, at + 1).trim());
    left = left.slice(at + 1).trim();
  }
  return left === '' ? parts : [...parts, left];
}

function createTextBlock(lines: Line[]): OutlineBlock[] {
  return [{ kind: 'text', lines }];
}

/** Joins adjacent text into one block. */
function joinTextBlocks(blocks: readonly OutlineBlock[]): OutlineBlock[] {
  const found: OutlineBlock[] = [];
  for (const block of blocks) {
    const last = found.at(-1);
    if (block.kind === 'text' && last?.kind === 'text' && isOneText(last.lines, block.lines))
      found[found.length - 1] = { kind: 'text', lines: [...last.lines, ...block.lines] };
    else found.push(block);
  }
  return found;
}

function readText(token: Token): string {
  return 'text' in token && typeof token.text === 'string' ? token.text.replaceAll(/\s*\n\s*/g, ' ').trim() : '';
}
