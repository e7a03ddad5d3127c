// Draws one block of a slide where it stands.
import type PptxGenJs from 'pptxgenjs';
import type { Block, Line, PictureBlock } from './deck.ts';
import {
  codeInset,
  codeSizeOf,
  columnWidths,
  quoteSizeOf,
  rowHeight,
  smallest,
  tableSizeOf,
  type Placed,
} from './flow.ts';
import { codeFont, directionOf, font, styled, type Sheet, type TextProps, type Theme } from './styles.ts';

interface Area {
  readonly x: number;
  readonly y: number;
  readonly w: number;
  readonly h: number;
}

/** @param name of its shape, where it has one */
export function drawBlock(
  sheet: Sheet,
  { block, size }: Placed,
  area: Area,
  theme: Theme,
  name: string | undefined,
): void {
  switch (block.kind) {
    case 'text':
      text(sheet, block.lines, size, area, theme, name);
      break;
    case 'code':
      code(sheet, block.code, codeSizeOf(block.code, area.w, size), area, theme);
      break;
    case 'table':
      table(sheet, block, tableSizeOf(size), area, theme);
      break;
    case 'quote':
      quote(sheet, block, quoteSizeOf(size), area, theme);
      break;
    case 'picture':
      picture(sheet, block, area);
  }
}

function text(
  sheet: Sheet,
  lines: readonly Line[],
  size: number,
  area: Area,
  theme: Theme,
  name: string | undefined,
): void {
  const starts = startsOf(lines);
  const runs = lines.flatMap((line, index): TextProps[] => {
    const { level } = line;
    const parts = styled(line.text, theme, level === 0 ? theme.text : theme.soft);
    const start = starts[index];
    return parts.map((part, at) => ({
      ...part,
      options: {
        ...part.options,
        fontSize: level === 0 ? size : Math.max(smallest - 2, size - 2),
        ...(at === 0
          ? {
              ...directionOf(line.text),
              ...bulletOf(line, start, size),
              indentLevel: level,
              paraSpaceAfter: size * 0.4,
            }
          : {}),
        ...(at === parts.length - 1 && index < lines.length - 1 ? { breakLine: true } : {}),
      },
    }));
  });
  if (runs.length === 0) return;
  const options = {
    ...area,
    margin: 0,
    valign: 'top' as const,
    fontFace: font,
    fontSize: size,
    fit: 'shrink' as const,
  };
  sheet.addText(runs, name === undefined ? options : { ...options, objectName: name });
}

function bulletOf(
  { level, isParagraph }: Line,
  start: number | undefined,
  size: number,
): PptxGenJs.default.TextPropsOptions {
  if (isParagraph === true) return { bullet: false };
  const indent = Math.round(size * (start === undefined ? 1 : 1.5));
  if (start !== undefined) return { bullet: { type: 'number', style: 'arabicPeriod', numberStartAt: start, indent } };
  return { bullet: { characterCode: level === 0 ? '25A0' : '2013', indent } };
}

/** With which number the list of each item begins: items that follow each other are one list. */
function startsOf(lines: readonly Line[]): (number | undefined)[] {
  const lists: ({ start: number; next: number } | undefined)[] = [];
  return lines.map(({ level, number }) => {
    // What is less indented ends the lists that are deeper.
    lists.length = Math.min(lists.length, level + 1);
    const open = lists[level];
    lists[level] =
      number === undefined ? undefined : { start: open?.next === number ? open.start : number, next: number + 1 };
    return lists[level]?.start;
  });
}

function code(sheet: Sheet, source: string, size: number, area: Area, theme: Theme): void {
  const lines = source.split('\n');
  sheet.addText(
    lines.map((line, index) => ({
      text: line === '' ? ' ' : line,
      options: index < lines.length - 1 ? { breakLine: true } : {},
    })),
    {
      ...area,
      margin: codeInset * 72,
      valign: 'top',
      align: 'left',
      fontFace: codeFont,
      fontSize: size,
      color: theme.text,
      fill: { color: theme.panel },
    },
  );
}

function table(
  sheet: Sheet,
  { header, rows, align = [] }: Extract<Block, { kind: 'table' }>,
  size: number,
  area: Area,
  theme: Theme,
): void {
  const widths = columnWidths(header, rows, area.w);
  const cells = (row: readonly string[], options: PptxGenJs.default.TableCellProps): PptxGenJs.default.TableCell[] =>
    widths.map((_, index) => ({
      text: styled(row[index] ?? '', theme, options.color ?? theme.text),
      options: { ...options, align: align[index] ?? 'left' },
    }));
  sheet.addTable(
    [
      cells(header, { bold: true, color: theme.background, fill: { color: theme.accent } }),
      ...rows.map((row, index) =>
        cells(row, { color: theme.text, fill: { color: index % 2 === 0 ? theme.panel : theme.background } }),
      ),
    ],
    {
      x: area.x,
      y: area.y,
      w: area.w,
      colW: widths,
      rowH: [header, ...rows].map((row) => rowHeight(row, widths, size)),
      fontFace: font,
      fontSize: size,
      valign: 'middle',
      border: { type: 'solid', pt: 0.5, color: theme.soft },
      margin: [0.04, 0.1, 0.04, 0.1],
    },
  );
}

function quote(
  sheet: Sheet,
  { quote: said, author }: Extract<Block, { kind: 'quote' }>,
  size: number,
  area: Area,
  theme: Theme,
): void {
  const h = author === undefined ? area.h - 0.1 : area.h - 0.6;
  sheet.addShape('rect', { x: area.x, y: area.y, w: 0.08, h: area.h - 0.05, fill: { color: theme.accent } });
  sheet.addText(styled(`“${said.replaceAll(/^["“„«]|["”»]$/g, '')}”`, theme, theme.text), {
    x: area.x + 0.4,
    y: area.y,
    w: area.w - 0.4,
    h,
    margin: 0,
    valign: 'top',
    italic: true,
    fontFace: font,
    fontSize: size,
  });
  if (author !== undefined)
    sheet.addText(styled(`— ${author}`, theme, theme.soft), {
      x: area.x + 0.4,
      y: area.y + h,
      w: area.w - 0.4,
      h: 0.5,
      margin: 0,
      valign: 'middle',
      fontFace: font,
      fontSize: Math.min(18, size),
    });
}

/** As large as its area lets it be, in the middle, and not blown up. */
function picture(sheet: Sheet, { bytes, mediaType, width, height, alt }: PictureBlock, { x, y, w, h }: Area): void {
  const scale = Math.min(w / width, h / height, 1 / 48);
  const size = { w: width * scale, h: height * scale };
  sheet.addImage({
    data: `${mediaType};base64,${Buffer.from(bytes).toString('base64')}`,
    x: x + (w - size.w) / 2,
    y: y + (h - size.h) / 2,
    ...size,
    altText: alt,
  });
}
