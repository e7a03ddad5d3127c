// Splits a slide into as many as its blocks need, and gives each block a position and a size. The font size follows
// from the amount of text, whose inline Markdown becomes styled runs.
import { marked, type Token, type Tokens } from 'marked';
import { isOneText, type Block, type Column, type ContentSlide, type Line } from './deck.ts';
import { measureTextWidth } from '../../svg/text-width.ts';

/** A block with its position in inches from the top of its column, and its font size in points. */
export interface PlacedBlock {
  readonly block: Block;
  readonly y: number;
  readonly height: number;
  readonly size: number;
}

export interface PlacedColumn {
  readonly heading?: string | undefined;
  readonly blocks: readonly PlacedBlock[];
}

/** Space between blocks. */
const blockGap = 0.18;
const smallestPicture = 2.4;
export const largestSize = 24;
export const smallestSize = 14;
export const codeSizes = { largest: 16, smallest: 9 };

/** Returns the columns of each slide that a slide becomes. */
export function flowSlide(
  slide: ContentSlide,
  boxOf: (columns: number, hasHeadings: boolean) => TextBox,
): PlacedColumn[][] {
  const columns = placePictureBeside(slide.columns);
  const box = boxOf(
    columns.length,
    columns.some(({ heading }) => heading !== undefined),
  );
  const top = columns.length > 1 ? 20 : largestSize;
  const parts = columns.map(({ blocks }) => paginateBlocks(blocks, box, top));
  const count = Math.max(1, ...parts.map((pagesOfColumn) => pagesOfColumn.length));
  return Array.from({ length: count }, (_, index) =>
    columns.map(({ heading }, at) => ({ heading, blocks: parts[at]?.[index] ?? [] })),
  );
}

/** Places a single picture next to its text. */
function placePictureBeside(columns: readonly Column[]): readonly Column[] {
  const [only] = columns;
  if (only === undefined || columns.length > 1) return columns;
  const pictures = only.blocks.filter(({ kind }) => kind === 'picture');
  const [picture] = pictures;
  const texts = only.blocks.filter(({ kind }) => kind === 'text');
  if (picture?.kind !== 'picture' || pictures.length > 1 || texts.length === 0 || texts.length + 1 < only.blocks.length)
    return columns;
  // A much wider than high picture would be small next to text.
  if (picture.width > picture.height * 2.6) return columns;
  return [{ blocks: texts }, { blocks: [picture] }];
}

function paginateBlocks(blocks: readonly Block[], box: TextBox, top: number): PlacedBlock[][] {
  for (let size = top; size >= smallestSize; size -= 1) {
    const placed = placeBlocks(blocks, box, size);
    if (placed !== undefined) return [placed];
  }
  return splitIntoPages(blocks, box).map((page) => {
    for (let size = top - 4; size > smallestSize; size -= 1) {
      const placed = placeBlocks(page, box, size);
      if (placed !== undefined) return placed;
    }
    return placeBlocks(page, box, smallestSize) ?? squeezeBlocks(page, box);
  });
}

/** Places blocks below each other; undefined if they do not fit. Pictures share the remaining height. */
function placeBlocks(blocks: readonly Block[], box: TextBox, size: number): PlacedBlock[] | undefined {
  const fixed = blocks.map((block) => (block.kind === 'picture' ? 0 : measureBlock(block, box.width, size)));
  const pictures = blocks.filter(({ kind }) => kind === 'picture').length;
  const left = box.height - sum(fixed) - blockGap * Math.max(0, blocks.length - 1);
  const each = pictures === 0 ? 0 : left / pictures;
  if (left < -0.001 || (pictures > 0 && each < Math.min(smallestPicture, box.height))) return undefined;
  let y = 0;
  return blocks.map((block, index) => {
    const height = block.kind === 'picture' ? each : (fixed[index] ?? 0);
    const placed = { block, y, height, size };
    y += height + blockGap;
    return placed;
  });
}

/** A single line that is higher than a slide: PowerPoint shrinks it, but it stays on the slide. */
function squeezeBlocks(blocks: readonly Block[], box: TextBox): PlacedBlock[] {
  return blocks.map((block) => ({ block, y: 0, height: box.height, size: smallestSize }));
}

function splitIntoPages(blocks: readonly Block[], box: TextBox): Block[][] {
  const found: Block[][] = [[]];
  for (const piece of blocks.flatMap((block) => splitBlock(block, box))) {
    const page = found.at(-1) ?? [];
    const whole = [...page];
    appendPiece(whole, piece);
    if (page.length > 0 && placeBlocks(whole, box, smallestSize) === undefined) found.push([piece]);
    else appendPiece(page, piece);
  }
  return found;
}

/** Joins a piece with the block before it if both belong together. */
function appendPiece(page: Block[], piece: Block): void {
  const last = page.at(-1);
  const one = last === undefined ? undefined : joinPieces(last, piece);
  if (one === undefined) page.push(piece);
  else page[page.length - 1] = one;
}

function joinPieces(last: Block, piece: Block): Block | undefined {
  if (last.kind === 'text' && piece.kind === 'text')
    return isOneText(last.lines, piece.lines) ? { ...last, lines: [...last.lines, ...piece.lines] } : undefined;
  const whole = wholeByPiece.get(piece);
  if (whole === undefined || wholeByPiece.get(last) !== whole) return undefined;
  if (last.kind === 'code' && piece.kind === 'code')
    return markPart(whole, { ...last, code: `${last.code}\n${piece.code}` });
  return last.kind === 'table' && piece.kind === 'table'
    ? markPart(whole, { ...last, rows: [...last.rows, ...piece.rows] })
    : undefined;
}

/** The block of each piece: two adjacent tables stay two. */
const wholeByPiece = new WeakMap<Block, Block>();

function markPart<Piece extends Block>(whole: Block, piece: Piece): Piece {
  wholeByPiece.set(piece, whole);
  return piece;
}

/** Splits a block into its smallest pieces: lines of text or code, rows of a table. */
function splitBlock(block: Block, box: TextBox): Block[] {
  if (block.kind === 'text')
    return paginateLines(block.lines, { ...box, height: 0 }, smallestSize).map((lines: Line[]) => ({
      ...block,
      lines,
    }));
  if (block.kind === 'code') return block.code.split('\n').map((code) => markPart(block, { ...block, code }));
  if (block.kind === 'table' && block.rows.length > 1)
    return block.rows.map((row) => markPart(block, { ...block, rows: [row] }));
  return [block];
}

function measureBlock(block: Exclude<Block, { kind: 'picture' }>, width: number, size: number): number {
  switch (block.kind) {
    case 'text':
      return measureText(block.lines, width, size);
    case 'code':
      return measureCode(block.code, width, fitCodeSize(block.code, width, size));
    case 'table':
      return measureTable(block, width, toTableSize(size));
    case 'quote':
      return (
        measureText([{ text: `“${block.quote}”`, level: 0 }], width - 0.5, toQuoteSize(size)) +
        (block.author === undefined ? 0 : 0.5) +
        0.2
      );
  }
}

export const toTableSize = (size: number): number => Math.max(11, size - 4);
export const toQuoteSize = (size: number): number => size + 4;

/** Inches between the edge of a code panel and its text. */
export const codeInset = 0.12;

/** Chooses the largest size at which the longest line fits, within bounds. */
export function fitCodeSize(code: string, width: number, size: number): number {
  const columns = Math.max(1, ...code.split('\n').map(countColumns));
  const fitting = Math.floor(((width - 2 * codeInset) * 72) / (columns * 0.61));
  return Math.max(codeSizes.smallest, Math.min(codeSizes.largest, size - 4, fitting));
}

function measureCode(code: string, width: number, size: number): number {
  const perLine = Math.max(10, Math.floor(((width - 2 * codeInset) * 72) / (size * 0.61)));
  const lines = sum(code.split('\n').map((line) => Math.max(1, Math.ceil(countColumns(line) / perLine))));
  return (lines * size * 1.22) / 72 + 2 * codeInset;
}

const broadLetter = /[\u1100-\u115F\u2E80-\uA4CF\uAC00-\uD7A3\uF900-\uFAFF\uFE30-\uFE4F\uFF00-\uFF60]/u;
const countColumns = (line: string): number => sum(Array.from(line, (letter) => (broadLetter.test(letter) ? 2 : 1)));

function measureTable({ header, rows }: Extract<Block, { kind: 'table' }>, width: number, size: number): number {
  return sum([header, ...rows].map((row) => measureRow(row, shareColumnWidths(header, rows, width), size)));
}

export function measureRow(row: readonly string[], widths: readonly number[], size: number): number {
  const lines = row.map((cell, index) => countLines(toPlainText(cell), ((widths[index] ?? 1) - 0.2) * 72, size));
  return (Math.max(1, ...lines) * size * 1.22) / 72 + 0.12;
}

/** Shares the width in proportion to the text of each column, within bounds. */
export function shareColumnWidths(
  header: readonly string[],
  rows: readonly (readonly string[])[],
  width: number,
): number[] {
  const count = Math.max(header.length, ...rows.map((row) => row.length));
  const wanted = Array.from({ length: count }, (_, index) =>
    Math.min(40, Math.max(4, ...[header, ...rows].map((row) => toPlainText(row[index] ?? '').length))),
  );
  return wanted.map((want) => (width * want) / sum(wanted));
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, each) => total + each, 0);

/** A stretch of text in one style. */
export interface TextRun {
  readonly text: string;
  readonly bold?: boolean;
  readonly italic?: boolean;
  readonly code?: boolean;
  readonly struck?: boolean;
  readonly link?: string;
}

/** Parses **bold**, *italic*, `code` and [links](https://…); keeps anything else as it is written. */
export function parseRuns(text: string): TextRun[] {
  return parseTokens(marked.Lexer.lexInline(text), {});
}

function parseTokens(tokens: readonly Token[], style: Omit<TextRun, 'text'>): TextRun[] {
  return tokens.flatMap((token) => parseInlineToken(token, style));
}

function parseInlineToken(token: Token, style: Omit<TextRun, 'text'>): TextRun[] {
  const inner = (more: Omit<TextRun, 'text'>): TextRun[] =>
    parseTokens((token as Tokens.Generic).tokens ?? [], { ...style, ...more });
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
      return inner(toLink((token as Tokens.Link).href));
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

/** Keeps web addresses only: others lead nowhere. */
function toLink(href: string): { link?: string } {
  return /^https?:\/\//i.test(href) && URL.canParse(href) ? { link: href } : {};
}

/** Removes inline Markdown. */
export function toPlainText(text: string): string {
  return parseRuns(text)
    .map((run) => run.text)
    .join('');
}

export interface TextBox {
  /** In inches. */
  readonly width: number;
  readonly height: number;
}

/** Calibri is narrower than the measured font, but its substitutes elsewhere can be wider. */
const breadthFactor = 1.04;

/** Measures the height in inches of a text at a size in points, wrapped to a width. */
export function measureText(lines: readonly Line[], width: number, size: number): number {
  const lineHeight = (size * 1.22) / 72;
  return lines.reduce((total, { text, level }) => {
    const room = Math.max(0.5, width - 0.4 - level * 0.4);
    return total + countLines(toPlainText(text), room * 72, size) * lineHeight + (size * 0.45) / 72;
  }, 0);
}

/** Counts the lines of a wrapped text. */
export function countLines(text: string, room: number, size: number): number {
  let count = 1;
  let used = 0;
  for (const word of text.split(/(?<=\s)|(?<=[\u2E80-\u9FFF\u3040-\u30FF\uAC00-\uD7A3\u0E00-\u0E7F])/u)) {
    const width = measureTextWidth(word, size) * breadthFactor;
    if (used > 0 && used + measureTextWidth(word.trimEnd(), size) * breadthFactor > room) {
      count += 1;
      used = 0;
    }
    // A word that is wider than a line is broken.
    count += Math.floor(width / room);
    used += width % room;
  }
  return count;
}

/** Chooses the largest size in a range at which the lines fit into a box; undefined if none does. */
export function fitSize(
  lines: readonly Line[],
  { width, height }: TextBox,
  largest: number,
  smallest: number,
): number | undefined {
  for (let size = largest; size >= smallest; size -= 1) if (measureText(lines, width, size) <= height) return size;
  return undefined;
}

/**
 * Distributes lines over as few pages as they need at a size. A line is never split, so one that is taller than the box
 * gets a page to itself.
 */
export function paginateLines(lines: readonly Line[], { width, height }: TextBox, size: number): Line[][] {
  const found: Line[][] = [[]];
  for (const line of lines) {
    const page = found.at(-1) ?? [];
    if (page.length > 0 && measureText([...page, line], width, size) > height) found.push([line]);
    else page.push(line);
  }
  return found;
}
