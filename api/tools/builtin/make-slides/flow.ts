// Parts a slide into as many as its blocks need, and gives each block its place and its size.
import { isOneText, type Block, type Column, type ContentSlide, type Line } from './deck.ts';
import { heightOf, lineCount, pages, plain, type Box } from './text.ts';

/** A block where it stands, in inches from the top of its column; text at its size in points. */
export interface Placed {
  readonly block: Block;
  readonly y: number;
  readonly height: number;
  readonly size: number;
}

export interface PlacedColumn {
  readonly heading?: string | undefined;
  readonly blocks: readonly Placed[];
}

/** Space between blocks. */
const gap = 0.18;
const smallestPicture = 2.4;
export const largest = 24;
export const smallest = 14;
export const codeSizes = { largest: 16, smallest: 9 };

/** The columns of each slide that a slide becomes. */
export function flowed(slide: ContentSlide, boxOf: (columns: number, hasHeadings: boolean) => Box): PlacedColumn[][] {
  const columns = beside(slide.columns);
  const box = boxOf(
    columns.length,
    columns.some(({ heading }) => heading !== undefined),
  );
  const top = columns.length > 1 ? 20 : largest;
  const parts = columns.map(({ blocks }) => pagesOf(blocks, box, top));
  const count = Math.max(1, ...parts.map((pagesOfColumn) => pagesOfColumn.length));
  return Array.from({ length: count }, (_, index) =>
    columns.map(({ heading }, at) => ({ heading, blocks: parts[at]?.[index] ?? [] })),
  );
}

/** One picture stands beside the text that comes with it. */
function beside(columns: readonly Column[]): readonly Column[] {
  const [only] = columns;
  if (only === undefined || columns.length > 1) return columns;
  const pictures = only.blocks.filter(({ kind }) => kind === 'picture');
  const [picture] = pictures;
  const texts = only.blocks.filter(({ kind }) => kind === 'text');
  if (picture?.kind !== 'picture' || pictures.length > 1 || texts.length === 0 || texts.length + 1 < only.blocks.length)
    return columns;
  // What is much broader than high would be small beside text.
  if (picture.width > picture.height * 2.6) return columns;
  return [{ blocks: texts }, { blocks: [picture] }];
}

function pagesOf(blocks: readonly Block[], box: Box, top: number): Placed[][] {
  for (let size = top; size >= smallest; size -= 1) {
    const placed = placedIn(blocks, box, size);
    if (placed !== undefined) return [placed];
  }
  return split(blocks, box).map((page) => {
    for (let size = top - 4; size > smallest; size -= 1) {
      const placed = placedIn(page, box, size);
      if (placed !== undefined) return placed;
    }
    return placedIn(page, box, smallest) ?? squeezed(page, box);
  });
}

/** The blocks below each other; undefined where they do not fit. Pictures share what is left. */
function placedIn(blocks: readonly Block[], box: Box, size: number): Placed[] | undefined {
  const fixed = blocks.map((block) => (block.kind === 'picture' ? 0 : heightOfBlock(block, box.width, size)));
  const pictures = blocks.filter(({ kind }) => kind === 'picture').length;
  const left = box.height - sum(fixed) - gap * Math.max(0, blocks.length - 1);
  const each = pictures === 0 ? 0 : left / pictures;
  if (left < -0.001 || (pictures > 0 && each < Math.min(smallestPicture, box.height))) return undefined;
  let y = 0;
  return blocks.map((block, index) => {
    const height = block.kind === 'picture' ? each : (fixed[index] ?? 0);
    const placed = { block, y, height, size };
    y += height + gap;
    return placed;
  });
}

/** One line that is higher than a slide: shrunk by PowerPoint, but on the slide. */
function squeezed(blocks: readonly Block[], box: Box): Placed[] {
  return blocks.map((block) => ({ block, y: 0, height: box.height, size: smallest }));
}

function split(blocks: readonly Block[], box: Box): Block[][] {
  const found: Block[][] = [[]];
  for (const piece of blocks.flatMap((block) => pieces(block, box))) {
    const page = found.at(-1) ?? [];
    const whole = [...page];
    append(whole, piece);
    if (page.length > 0 && placedIn(whole, box, smallest) === undefined) found.push([piece]);
    else append(page, piece);
  }
  return found;
}

/** A piece goes on with the block of its kind before it. */
function append(page: Block[], piece: Block): void {
  const last = page.at(-1);
  const one = last === undefined ? undefined : joined(last, piece);
  if (one === undefined) page.push(piece);
  else page[page.length - 1] = one;
}

function joined(last: Block, piece: Block): Block | undefined {
  if (last.kind === 'text' && piece.kind === 'text')
    return isOneText(last.lines, piece.lines) ? { ...last, lines: [...last.lines, ...piece.lines] } : undefined;
  const whole = wholeOf.get(piece);
  if (whole === undefined || wholeOf.get(last) !== whole) return undefined;
  if (last.kind === 'code' && piece.kind === 'code')
    return partOf(whole, { ...last, code: `${last.code}\n${piece.code}` });
  return last.kind === 'table' && piece.kind === 'table'
    ? partOf(whole, { ...last, rows: [...last.rows, ...piece.rows] })
    : undefined;
}

/** Which block a piece is of: two tables that follow each other stay two. */
const wholeOf = new WeakMap<Block, Block>();

function partOf<Piece extends Block>(whole: Block, piece: Piece): Piece {
  wholeOf.set(piece, whole);
  return piece;
}

/** The smallest pieces of a block: lines of text and of code, rows of a table. */
function pieces(block: Block, box: Box): Block[] {
  if (block.kind === 'text')
    return pages(block.lines, { ...box, height: 0 }, smallest).map((lines: Line[]) => ({ ...block, lines }));
  if (block.kind === 'code') return block.code.split('\n').map((code) => partOf(block, { ...block, code }));
  if (block.kind === 'table' && block.rows.length > 1)
    return block.rows.map((row) => partOf(block, { ...block, rows: [row] }));
  return [block];
}

function heightOfBlock(block: Exclude<Block, { kind: 'picture' }>, width: number, size: number): number {
  switch (block.kind) {
    case 'text':
      return heightOf(block.lines, width, size);
    case 'code':
      return codeHeight(block.code, width, codeSizeOf(block.code, width, size));
    case 'table':
      return tableHeight(block, width, tableSizeOf(size));
    case 'quote':
      return (
        heightOf([{ text: `“${block.quote}”`, level: 0 }], width - 0.5, quoteSizeOf(size)) +
        (block.author === undefined ? 0 : 0.5) +
        0.2
      );
  }
}

export const tableSizeOf = (size: number): number => Math.max(11, size - 4);
export const quoteSizeOf = (size: number): number => size + 4;

/** Inches between the edge of the panel of code and its text. */
export const codeInset = 0.12;

/** So large that the longest line is not broken, where that can be. */
export function codeSizeOf(code: string, width: number, size: number): number {
  const columns = Math.max(1, ...code.split('\n').map(columnsOf));
  const fitting = Math.floor(((width - 2 * codeInset) * 72) / (columns * 0.61));
  return Math.max(codeSizes.smallest, Math.min(codeSizes.largest, size - 4, fitting));
}

function codeHeight(code: string, width: number, size: number): number {
  const perLine = Math.max(10, Math.floor(((width - 2 * codeInset) * 72) / (size * 0.61)));
  const lines = sum(code.split('\n').map((line) => Math.max(1, Math.ceil(columnsOf(line) / perLine))));
  return (lines * size * 1.22) / 72 + 2 * codeInset;
}

const broad = /[\u1100-\u115F\u2E80-\uA4CF\uAC00-\uD7A3\uF900-\uFAFF\uFE30-\uFE4F\uFF00-\uFF60]/u;
const columnsOf = (line: string): number => sum(Array.from(line, (letter) => (broad.test(letter) ? 2 : 1)));

function tableHeight({ header, rows }: Extract<Block, { kind: 'table' }>, width: number, size: number): number {
  return sum([header, ...rows].map((row) => rowHeight(row, columnWidths(header, rows, width), size)));
}

export function rowHeight(row: readonly string[], widths: readonly number[], size: number): number {
  const lines = row.map((cell, index) => lineCount(plain(cell), ((widths[index] ?? 1) - 0.2) * 72, size));
  return (Math.max(1, ...lines) * size * 1.22) / 72 + 0.12;
}

/** As broad as the text of a column asks for, within bounds. */
export function columnWidths(header: readonly string[], rows: readonly (readonly string[])[], width: number): number[] {
  const count = Math.max(header.length, ...rows.map((row) => row.length));
  const wants = Array.from({ length: count }, (_, index) =>
    Math.min(40, Math.max(4, ...[header, ...rows].map((row) => plain(row[index] ?? '').length))),
  );
  return wants.map((want) => (width * want) / sum(wants));
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, each) => total + each, 0);
