// Draws one block of a slide in its area, with the fonts, colours and styled text of a presentation.
import type PptxGenJs from 'pptxgenjs';
import type { Block, Line, PictureBlock } from './deck.ts';
import {
  codeInset,
  fitCodeSize,
  shareColumnWidths,
  toQuoteSize,
  measureRow,
  smallestSize,
  toTableSize,
  type PlacedBlock,
  parseRuns,
} from './flow.ts';

interface SlideArea {
  readonly x: number;
  readonly y: number;
  readonly w: number;
  readonly h: number;
}

/** @param name of the shape, if it has one */
export function drawBlock(
  sheet: Sheet,
  { block, size }: PlacedBlock,
  area: SlideArea,
  theme: Theme,
  name: string | undefined,
): void {
  switch (block.kind) {
    case 'text':
      drawText(sheet, block.lines, size, area, theme, name);
      break;
    case 'code':
      drawCode(sheet, block.code, fitCodeSize(block.code, area.w, size), area, theme);
      break;
    case 'table':
      drawTable(sheet, block, toTableSize(size), area, theme);
      break;
    case 'quote':
      drawQuote(sheet, block, toQuoteSize(size), area, theme);
      break;
    case 'picture':
      drawPicture(sheet, block, area);
  }
}

function drawText(
  sheet: Sheet,
  lines: readonly Line[],
  size: number,
  area: SlideArea,
  theme: Theme,
  name: string | undefined,
): void {
  const starts = findListStarts(lines);
  const runs = lines.flatMap((line, index): TextProps[] => {
    const { level } = line;
    const parts = styleText(line.text, theme, level === 0 ? theme.text : theme.soft);
    const start = starts[index];
    return parts.map((part, at) => ({
      ...part,
      options: {
        ...part.options,
        fontSize: level === 0 ? size : Math.max(smallestSize - 2, size - 2),
        ...(at === 0
          ? {
              ...detectDirection(line.text),
              ...chooseBullet(line, start, size),
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
    fontFace: textFont,
    fontSize: size,
    fit: 'shrink' as const,
  };
  sheet.addText(runs, name === undefined ? options : { ...options, objectName: name });
}

function chooseBullet(
  { level, isParagraph }: Line,
  start: number | undefined,
  size: number,
): PptxGenJs.default.TextPropsOptions {
  if (isParagraph === true) return { bullet: false };
  const indent = Math.round(size * (start === undefined ? 1 : 1.5));
  if (start !== undefined) return { bullet: { type: 'number', style: 'arabicPeriod', numberStartAt: start, indent } };
  return { bullet: { characterCode: level === 0 ? '25A0' : '2013', indent } };
}

/** Finds the first number of the list that each item belongs to: consecutive items are one list. */
function findListStarts(lines: readonly Line[]): (number | undefined)[] {
  const lists: ({ start: number; next: number } | undefined)[] = [];
  return lines.map(({ level, number }) => {
    // A less indented item ends the deeper lists.
    lists.length = Math.min(lists.length, level + 1);
    const open = lists[level];
    lists[level] =
      number === undefined ? undefined : { start: open?.next === number ? open.start : number, next: number + 1 };
    return lists[level]?.start;
  });
}

function drawCode(sheet: Sheet, source: string, size: number, area: SlideArea, theme: Theme): void {
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

function drawTable(
  sheet: Sheet,
  { header, rows, align = [] }: Extract<Block, { kind: 'table' }>,
  size: number,
  area: SlideArea,
  theme: Theme,
): void {
  const widths = shareColumnWidths(header, rows, area.w);
  const cells = (row: readonly string[], options: PptxGenJs.default.TableCellProps): PptxGenJs.default.TableCell[] =>
    widths.map((_, index) => ({
      text: styleText(row[index] ?? '', theme, options.color ?? theme.text),
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
      rowH: [header, ...rows].map((row) => measureRow(row, widths, size)),
      fontFace: textFont,
      fontSize: size,
      valign: 'middle',
      border: { type: 'solid', pt: 0.5, color: theme.soft },
      margin: [0.04, 0.1, 0.04, 0.1],
    },
  );
}

function drawQuote(
  sheet: Sheet,
  { quote: words, author }: Extract<Block, { kind: 'quote' }>,
  size: number,
  area: SlideArea,
  theme: Theme,
): void {
  const h = author === undefined ? area.h - 0.1 : area.h - 0.6;
  sheet.addShape('rect', { x: area.x, y: area.y, w: 0.08, h: area.h - 0.05, fill: { color: theme.accent } });
  sheet.addText(styleText(`“${words.replaceAll(/^["“„«]|["”»]$/g, '')}”`, theme, theme.text), {
    x: area.x + 0.4,
    y: area.y,
    w: area.w - 0.4,
    h,
    margin: 0,
    valign: 'top',
    italic: true,
    fontFace: textFont,
    fontSize: size,
  });
  if (author !== undefined)
    sheet.addText(styleText(`— ${author}`, theme, theme.soft), {
      x: area.x + 0.4,
      y: area.y + h,
      w: area.w - 0.4,
      h: 0.5,
      margin: 0,
      valign: 'middle',
      fontFace: textFont,
      fontSize: Math.min(18, size),
    });
}

/** Centres a picture as large as its area allows, without enlarging it beyond 48 pixels per inch. */
function drawPicture(
  sheet: Sheet,
  { bytes, mediaType, width, height, alt }: PictureBlock,
  { x, y, w, h }: SlideArea,
): void {
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

export interface Theme {
  readonly background: string;
  readonly text: string;
  readonly soft: string;
  readonly accent: string;
  readonly panel: string;
}

export const themes: Readonly<Record<'light' | 'dark', Theme>> = {
  light: { background: 'FFFFFF', text: '1F2933', soft: '5F6C7B', accent: '0B6E99', panel: 'EEF4F7' },
  dark: { background: '15202B', text: 'F2F5F7', soft: 'A9B7C4', accent: '4FC3F7', panel: '22303D' },
};

export const textFont = 'Calibri';
export const codeFont = 'Consolas';

export type Sheet = ReturnType<PptxGenJs.default['addSlide']>;
export type TextProps = PptxGenJs.default.TextProps;

/** Detects right-to-left text, such as Arabic and Hebrew, by its first letter. */
export function detectDirection(text: string): { rtlMode?: true; align?: 'right' } {
  const first = /[\p{L}]/u.exec(text)?.[0] ?? '';
  return /[\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Syriac}\p{Script=Thaana}]/u.test(first)
    ? { rtlMode: true, align: 'right' }
    : {};
}

/** Converts a line to runs that can be edited in PowerPoint like typed text. */
export function styleText(text: string, theme: Theme, color: string): TextProps[] {
  return parseRuns(text).map((run) => ({
    text: run.text,
    options: {
      color,
      ...(run.bold === true ? { bold: true } : {}),
      ...(run.italic === true ? { italic: true } : {}),
      ...(run.struck === true ? { strike: 'sngStrike' as const } : {}),
      ...(run.code === true ? { fontFace: codeFont } : {}),
      ...(run.link === undefined ? {} : { color: theme.accent, hyperlink: { url: run.link } }),
    },
  }));
}
