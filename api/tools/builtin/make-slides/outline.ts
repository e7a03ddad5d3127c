// Parses an outline in Markdown into a deck.
import { marked, type Token, type Tokens } from 'marked';
import type { z } from 'zod';
import { Problem } from '../../../../lib/problem.ts';
import { unprocessable } from '../../problems.ts';
import { deck, type Column, type Deck, type Line, type Slide } from './deck.ts';

/** The format of an outline, for descriptions and error messages. */
export const outlineForm =
  '# for the title of the deck and then for each section, ## for each slide, - for bullets, two ### on a slide for two columns, | for a table, > for a quote with its author on the last line after —, "Notes: …" for speaker notes';

/** @throws Problem (unprocessable) that names what cannot be read */
export function readOutline(outline: string): Deck {
  const tokens = marked
    .lexer(outline, { gfm: true })
    .filter(({ type }) => !['space', 'hr', 'def', 'html'].includes(type));
  const parts = split(tokens);
  const [first, ...others] = parts;
  if (first === undefined) throw new Problem(unprocessable, `The outline has no headings. Use ${outlineForm}.`);
  const titled = first.depth === 1;
  const slides = (titled ? others : parts).map(slideOf);
  const { text: subtitle, notes } = plainOf(first.body);
  const head = titled
    ? { title: first.title, ...(subtitle === '' ? {} : { subtitle }), ...(notes === undefined ? {} : { notes }) }
    : { title: first.title };
  const read = deck.safeParse({ ...head, slides });
  if (read.success) return read.data;
  throw new Problem(
    unprocessable,
    `The outline cannot be turned into slides: ${faultOf(read.error, slides)}. Use ${outlineForm}.`,
  );
}

interface Part {
  readonly depth: number;
  readonly title: string;
  readonly body: Token[];
}

/** Headings of the first two levels, each with what follows. What stands before the first is left out. */
function split(tokens: readonly Token[]): Part[] {
  const parts: Part[] = [];
  for (const token of tokens) {
    if (isHeading(token) && token.depth <= 2) parts.push({ depth: token.depth, title: token.text, body: [] });
    else parts.at(-1)?.body.push(token);
  }
  return parts;
}

function slideOf({ depth, title, body }: Part): unknown {
  const { text, notes } = plainOf(body);
  const common = { title, ...(notes === undefined ? {} : { notes }) };
  if (depth === 1) return { layout: 'section', ...common, ...(text === '' ? {} : { subtitle: text }) };
  const shown = body.filter((token) => !isNotes(token));
  const table = shown.find(isTable);
  if (table !== undefined)
    return {
      layout: 'table',
      ...common,
      header: table.header.map((cell) => cell.text),
      rows: table.rows.map((row) => row.map((cell) => cell.text)),
    };
  const [quote] = shown;
  if (shown.length === 1 && quote?.type === 'blockquote')
    return { layout: 'quote', ...common, ...quoteOf((quote as Tokens.Blockquote).text) };
  return shown.filter(isHeading).length >= 2
    ? { layout: 'two_columns', ...common, ...columnsOf(shown) }
    : { layout: 'bullets', ...common, bullets: linesOf(shown) };
}

function quoteOf(text: string): { quote: string; author?: string } {
  const [, quote = text, author] = /^([\s\S]*?)\n\s*(?:—|–|--)\s*(.+)$/.exec(text.trim()) ?? [];
  return { quote: quote.replaceAll(/\s+/g, ' ').trim(), ...(author === undefined ? {} : { author }) };
}

/** The first heading of the third level begins the left column, the second the right one; further ones stay in it. */
function columnsOf(body: readonly Token[]): { left: Column; right: Column } {
  const columns: { heading: string; body: Token[] }[] = [];
  const before: Token[] = [];
  for (const token of body) {
    if (isHeading(token) && columns.length < 2) columns.push({ heading: token.text, body: [] });
    else (columns.at(-1)?.body ?? before).push(token);
  }
  const [left, right] = columns.map(({ heading, body: own }) => ({ heading, bullets: linesOf(own) }));
  return {
    left: { ...left, bullets: [...linesOf(before), ...(left?.bullets ?? [])] },
    right: { ...right, bullets: right?.bullets ?? [] },
  };
}

function linesOf(body: readonly Token[], level = 0): Line[] {
  return body.flatMap((token): Line[] => {
    if (token.type === 'list') return (token as Tokens.List).items.flatMap((item) => itemLines(item, level));
    if (isHeading(token)) return [{ text: `**${token.text}**`, level }];
    const text = textOf(token);
    return text === '' ? [] : [{ text, level }];
  });
}

/** An item, and the lists in it one level deeper; below the third level nothing is indented any more. */
function itemLines(item: Tokens.ListItem, level: number): Line[] {
  const inner = item.tokens.filter(({ type }) => type === 'list');
  const text = item.tokens
    .filter(({ type }) => type !== 'list')
    .map(textOf)
    .join(' ')
    .trim();
  return [...(text === '' ? [] : [{ text, level }]), ...linesOf(inner, Math.min(level + 1, 2))];
}

/** The paragraphs of a title, and its notes. */
function plainOf(body: readonly Token[]): { text: string; notes: string | undefined } {
  const notes = body
    .filter(isNotes)
    .map((token) => textOf(token).replace(notesMark, ''))
    .join('\n\n');
  return {
    text: body
      .filter((token) => !isNotes(token))
      .map(textOf)
      .join(' ')
      .trim(),
    notes: notes === '' ? undefined : notes,
  };
}

const notesMark = /^\**notes?\**:\**\s*/i;

function isNotes(token: Token): boolean {
  return token.type === 'paragraph' && notesMark.test((token as Tokens.Paragraph).text);
}

function isHeading(token: Token): token is Tokens.Heading {
  return token.type === 'heading';
}

function isTable(token: Token): token is Tokens.Table {
  return token.type === 'table';
}

function textOf(token: Token): string {
  return 'text' in token && typeof token.text === 'string' ? token.text.replaceAll(/\s*\n\s*/g, ' ').trim() : '';
}

function faultOf(error: z.ZodError, slides: readonly unknown[]): string {
  const { path, message } = error.issues[0] ?? { path: [], message: 'wrong' };
  const [part, index, ...field] = path.map(String);
  if (part !== 'slides') return `${part ?? ''}: ${message}`;
  if (slides.length === 0) return 'it has no slides';
  if (index === undefined) return message;
  const { title = '' } = slides[Number(index)] as Partial<Slide>;
  return `slide ${Number(index) + 1} (${JSON.stringify(title)}): ${field.join('.')} ${message}`;
}
