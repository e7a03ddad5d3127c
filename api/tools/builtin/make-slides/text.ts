// Text of a slide: inline Markdown becomes styled runs, and the font size follows from the amount of text.
import { marked, type Token, type Tokens } from 'marked';
import type { Line } from './deck.ts';

/** A stretch of text in one style. */
export interface Run {
  readonly text: string;
  readonly bold?: boolean;
  readonly italic?: boolean;
  readonly code?: boolean;
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
      return inner({});
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

/** Inches that a text takes up at a size in points, wrapped to a width. Broad scripts count double. */
export function heightOf(lines: readonly Line[], width: number, size: number): number {
  const lineHeight = (size * 1.2) / 72;
  return lines.reduce((total, { text, level }) => {
    const perLine = Math.max(8, ((width - 0.35 - level * 0.35) * 72) / (size * 0.52));
    return total + Math.ceil(widthOf(plain(text)) / perLine) * lineHeight + (size * 0.45) / 72;
  }, 0);
}

function widthOf(text: string): number {
  return Array.from(text.matchAll(/./gsu)).reduce(
    (sum, [character]) =>
      sum +
      (/[\u1100-\u115F\u2E80-\uA4CF\uAC00-\uD7A3\uF900-\uFAFF\uFE30-\uFE4F\uFF00-\uFF60]|\p{Extended_Pictographic}/u.test(
        character,
      )
        ? 2
        : 1),
    0,
  );
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
