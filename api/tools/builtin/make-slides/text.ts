// Text of a slide: inline Markdown becomes styled runs, and the font size follows from the amount of text.
import { marked, type Token, type Tokens } from 'marked';
import { textWidth } from '../../svg/text-width.ts';
import type { Line } from './deck.ts';

/** A stretch of text in one style. */
export interface Run {
  readonly text: string;
  readonly bold?: boolean;
  readonly italic?: boolean;
  readonly code?: boolean;
  readonly struck?: boolean;
  readonly link?: string;
}

/** **bold**, *italic*, `code` and [links](https://…); anything else stays as it is written. */
export function runsOf(text: string): Run[] {
  return merge(marked.Lexer.lexInline(text), {});
}

function merge(tokens: readonly Token[], style: Omit<Run, 'text'>): Run[] {
  return tokens.flatMap((token) => runs(token, style));
}

function runs(token: Token, style: Omit<Run, 'text'>): Run[] {
  const inner = (more: Omit<Run, 'text'>): Run[] =>
    merge((token as Tokens.Generic).tokens ?? [], { ...style, ...more });
  switch (token.type) {
    case 'strong':
      return inner({ bold: true });
    case 'em':
      return inner({ italic: true });
    case 'del':
      return inner({ struck: true });
    case 'codespan':
      return [{ ...style, text: (token as Tokens.Codespan).text, code: true }];
    case 'link':
      return inner(linkOf((token as Tokens.Link).href));
    case 'image':
      return [{ ...style, text: (token as Tokens.Image).text }];
    case 'br':
      return [{ ...style, text: ' ' }];
    case 'escape':
      return [{ ...style, text: (token as Tokens.Escape).text }];
    default:
      return (token as Tokens.Generic).tokens === undefined ? [{ ...style, text: token.raw }] : inner({});
  }
}

/** Other addresses than those of the web lead nowhere. */
function linkOf(href: string): { link?: string } {
  return /^https?:\/\//i.test(href) && URL.canParse(href) ? { link: href } : {};
}

/** The text without its marks. */
export function plain(text: string): string {
  return runsOf(text)
    .map((run) => run.text)
    .join('');
}

export interface Box {
  /** In inches. */
  readonly width: number;
  readonly height: number;
}

/** Calibri is narrower than the font that is measured; what stands in for it elsewhere may be broader. */
const breadth = 1.04;

/** Inches that a text takes up at a size in points, wrapped to a width. */
export function heightOf(lines: readonly Line[], width: number, size: number): number {
  const lineHeight = (size * 1.22) / 72;
  return lines.reduce((total, { text, level }) => {
    const room = Math.max(0.5, width - 0.4 - level * 0.4);
    return total + lineCount(plain(text), room * 72, size) * lineHeight + (size * 0.45) / 72;
  }, 0);
}

/** Lines of a text as it wraps: a word that does not fit begins the next one. */
export function lineCount(text: string, room: number, size: number): number {
  let count = 1;
  let used = 0;
  for (const word of text.split(/(?<=\s)|(?<=[\u2E80-\u9FFF\u3040-\u30FF\uAC00-\uD7A3\u0E00-\u0E7F])/u)) {
    const width = textWidth(word, size) * breadth;
    if (used > 0 && used + textWidth(word.trimEnd(), size) * breadth > room) {
      count += 1;
      used = 0;
    }
    // A word that is broader than a line is broken.
    count += Math.floor(width / room);
    used += width % room;
  }
  return count;
}

/** The largest size between two at which the lines fit into a box; undefined where none does. */
export function sizeFor(
  lines: readonly Line[],
  { width, height }: Box,
  largest: number,
  smallest: number,
): number | undefined {
  for (let size = largest; size >= smallest; size -= 1) if (heightOf(lines, width, size) <= height) return size;
  return undefined;
}

/**
 * The lines in as few pages as they need at a size. A line of its own is never parted, so one that is taller than the
 * box gets a page.
 */
export function pages(lines: readonly Line[], { width, height }: Box, size: number): Line[][] {
  const found: Line[][] = [[]];
  for (const line of lines) {
    const page = found.at(-1) ?? [];
    if (page.length > 0 && heightOf([...page, line], width, size) > height) found.push([line]);
    else page.push(line);
  }
  return found;
}
