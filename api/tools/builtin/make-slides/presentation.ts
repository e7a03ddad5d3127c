// Lays out a deck as a presentation: one function per layout, font sizes by the amount of text.
import { createRequire } from 'node:module';
import type PptxGenJs from 'pptxgenjs';
import type { Column, Deck, Line, Slide } from './deck.ts';
import { repair } from './repair.ts';
import { pages, plain, runsOf, sizeFor, type Box } from './text.ts';

// Its declarations are those of a CommonJS module, and its ES module has no default export that they describe.
const Presentation = createRequire(import.meta.url)('pptxgenjs') as typeof PptxGenJs.default;

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

const font = 'Calibri';
const codeFont = 'Consolas';
/** 16:9, in inches. */
const page = { width: 13.333, height: 7.5 };
const margin = 0.7;
const inner = page.width - 2 * margin;
const bodyTop = 1.75;
const body: Box = { width: inner, height: page.height - bodyTop - 0.75 };
const gap = 0.5;
const columnBox: Box = { width: (inner - gap) / 2, height: body.height - 0.7 };

type Sheet = ReturnType<PptxGenJs.default['addSlide']>;
type TextProps = PptxGenJs.default.TextProps;

export interface PresentationFile {
  readonly bytes: Uint8Array;
  /** What is on each slide, continued ones included. */
  readonly slides: { number: number; layout: string; title: string }[];
}

/** A slide that holds too much goes on in another of the same title. */
export async function makePresentation(
  { title, subtitle, notes, slides }: Deck,
  theme: Theme,
): Promise<PresentationFile> {
  const presentation = new Presentation();
  presentation.layout = 'LAYOUT_WIDE';
  presentation.title = plain(title);
  presentation.company = 'Moorage';
  presentation.theme = { headFontFace: font, bodyFontFace: font };
  const laid: PresentationFile['slides'] = [];
  const sheet = (layout: string, named: string, said: string | undefined): Sheet => {
    const added = presentation.addSlide();
    added.background = { color: theme.background };
    if (said !== undefined && said !== '') added.addNotes(said);
    laid.push({ number: laid.length + 1, layout, title: plain(named) });
    return added;
  };
  titleSlide(sheet('title', title, notes), title, subtitle, theme);
  for (const slide of slides.flatMap(fitting))
    layOut(sheet(slide.layout, slide.title ?? slideName(slide), slide.notes), slide, theme, laid.length);
  const bytes = await presentation.write({ outputType: 'uint8array' });
  if (!(bytes instanceof Uint8Array)) throw new TypeError('the presentation was not written as bytes');
  return { bytes: await repair(bytes, theme.accent), slides: laid };
}

function slideName(slide: Slide): string {
  return slide.layout === 'quote' ? slide.quote.slice(0, 60) : slide.layout;
}

const smallest = 14;
const rowsOnSlide = 10;

/** The slide, or several where it holds too much. Notes stay with the first. */
function fitting(slide: Slide): Slide[] {
  if (slide.layout === 'bullets')
    return spread(slide, pages(slide.bullets, body, smallest + 2), (bullets) => ({ bullets }));
  if (slide.layout === 'table') return spread(slide, chunks(slide.rows, rowsOnSlide), (rows) => ({ rows }));
  if (slide.layout !== 'two_columns') return [slide];
  const [left, right] = [slide.left, slide.right].map(({ bullets }) => pages(bullets, columnBox, smallest));
  const maximum = Math.max(left?.length ?? 0, right?.length ?? 0);
  return spread(slide, [...Array(maximum).keys()], (index) => ({
    left: { ...slide.left, bullets: left?.[index] ?? [] },
    right: { ...slide.right, bullets: right?.[index] ?? [] },
  }));
}

function spread<Part>(slide: Slide, parts: readonly Part[], change: (part: Part) => Partial<Slide>): Slide[] {
  if (parts.length < 2) return [slide];
  return parts.map(
    (part, index) =>
      ({
        ...slide,
        ...change(part),
        title: `${slide.title ?? ''} (${index + 1}/${parts.length})`,
        notes: index === 0 ? slide.notes : undefined,
      }) as Slide,
  );
}

function chunks<Item>(items: readonly Item[], size: number): Item[][] {
  return Array.from({ length: Math.max(1, Math.ceil(items.length / size)) }, (_, index) =>
    items.slice(index * size, (index + 1) * size),
  );
}

function layOut(sheet: Sheet, slide: Slide, theme: Theme, number: number): void {
  if (slide.layout === 'section') {
    sectionSlide(sheet, slide, theme);
    return;
  }
  if (slide.layout !== 'quote' || slide.title !== undefined) heading(sheet, slide.title ?? '', theme);
  if (slide.layout === 'bullets') bullets(sheet, slide.bullets, { x: margin, y: bodyTop, ...body }, theme, 24);
  if (slide.layout === 'two_columns') columns(sheet, slide.left, slide.right, theme);
  if (slide.layout === 'table') table(sheet, slide, theme);
  if (slide.layout === 'quote') quote(sheet, slide, theme);
  sheet.addText(String(number), {
    x: page.width - margin - 1,
    y: page.height - 0.55,
    w: 1,
    h: 0.3,
    align: 'right',
    fontFace: font,
    fontSize: 11,
    color: theme.soft,
  });
}

function titleSlide(sheet: Sheet, title: string, subtitle: string | undefined, theme: Theme): void {
  sheet.addShape('rect', { x: 0, y: 0, w: 0.35, h: page.height, fill: { color: theme.accent } });
  const size = sizeFor([{ text: title, level: 0 }], { width: inner, height: 2.2 }, 48, 24) ?? 24;
  sheet.addText(styled(title, theme, theme.text), {
    x: margin + 0.2,
    y: 1.6,
    w: inner - 0.2,
    h: 2.4,
    valign: 'bottom',
    fontFace: font,
    fontSize: size,
    bold: true,
  });
  if (subtitle === undefined) return;
  const smaller = sizeFor([{ text: subtitle, level: 0 }], { width: inner, height: 1.4 }, 24, 14) ?? 14;
  sheet.addText(styled(subtitle, theme, theme.soft), {
    x: margin + 0.2,
    y: 4.2,
    w: inner - 0.2,
    h: 1.6,
    valign: 'top',
    fontFace: font,
    fontSize: smaller,
  });
}

function sectionSlide(sheet: Sheet, { title, subtitle }: Extract<Slide, { layout: 'section' }>, theme: Theme): void {
  sheet.background = { color: theme.panel };
  sheet.addShape('rect', { x: margin, y: 3.95, w: 1.6, h: 0.07, fill: { color: theme.accent } });
  const size = sizeFor([{ text: title, level: 0 }], { width: inner, height: 1.7 }, 40, 22) ?? 22;
  sheet.addText(styled(title, theme, theme.text), {
    x: margin,
    y: 1.9,
    w: inner,
    h: 1.9,
    margin: 0,
    valign: 'bottom',
    fontFace: font,
    fontSize: size,
    bold: true,
  });
  if (subtitle !== undefined)
    sheet.addText(styled(subtitle, theme, theme.soft), {
      x: margin,
      y: 4.2,
      w: inner,
      h: 1.5,
      margin: 0,
      valign: 'top',
      fontFace: font,
      fontSize: sizeFor([{ text: subtitle, level: 0 }], { width: inner, height: 1.4 }, 22, 14) ?? 14,
    });
}

function heading(sheet: Sheet, title: string, theme: Theme): void {
  const size = sizeFor([{ text: title, level: 0 }], { width: inner, height: 0.95 }, 30, 18) ?? 18;
  sheet.addText(styled(title, theme, theme.text), {
    x: margin,
    y: 0.4,
    w: inner,
    h: 1.0,
    margin: 0,
    valign: 'bottom',
    fontFace: font,
    fontSize: size,
    bold: true,
  });
  sheet.addShape('rect', { x: margin, y: 1.5, w: 1.2, h: 0.06, fill: { color: theme.accent } });
}

interface Area {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

function bullets(sheet: Sheet, lines: readonly Line[], area: Area, theme: Theme, largest: number): void {
  const size = sizeFor(lines, area, largest, smallest) ?? smallest;
  const runs = lines.flatMap(({ text, level }, index): TextProps[] => {
    const parts = styled(text, theme, level === 0 ? theme.text : theme.soft);
    return parts.map((part, at) => ({
      ...part,
      options: {
        ...part.options,
        fontSize: level === 0 ? size : Math.max(smallest - 2, size - 2),
        ...(at === 0
          ? {
              bullet: level === 0 ? { characterCode: '25A0' } : { characterCode: '2013' },
              indentLevel: level,
              paraSpaceAfter: size * 0.4,
            }
          : {}),
        ...(at === parts.length - 1 && index < lines.length - 1 ? { breakLine: true } : {}),
      },
    }));
  });
  if (runs.length > 0)
    sheet.addText(runs, {
      x: area.x,
      y: area.y,
      w: area.width,
      h: area.height,
      margin: 0,
      valign: 'top',
      fontFace: font,
      fontSize: size,
    });
}

function columns(sheet: Sheet, left: Column, right: Column, theme: Theme): void {
  [left, right].forEach(({ heading: named, bullets: lines }, index) => {
    const x = margin + index * (columnBox.width + gap);
    if (named !== undefined)
      sheet.addText(styled(named, theme, theme.accent), {
        x,
        y: bodyTop,
        w: columnBox.width,
        h: 0.5,
        margin: 0,
        valign: 'middle',
        fontFace: font,
        fontSize: 20,
        bold: true,
      });
    bullets(sheet, lines, { x, y: bodyTop + 0.65, ...columnBox }, theme, 20);
  });
}

function table(sheet: Sheet, { header, rows }: Extract<Slide, { layout: 'table' }>, theme: Theme): void {
  const width = Math.max(header.length, ...rows.map((row) => row.length));
  const size = Math.max(11, Math.min(20, Math.round(24 - width - rows.length / 2)));
  const cell = (text: string | undefined, options: PptxGenJs.default.TableCellProps): PptxGenJs.default.TableCell => ({
    text: styled(text ?? '', theme, options.color ?? theme.text),
    options,
  });
  const cells = (row: readonly string[], options: PptxGenJs.default.TableCellProps): PptxGenJs.default.TableCell[] =>
    Array.from({ length: width }, (_, index) => cell(row[index], options));
  sheet.addTable(
    [
      cells(header, { bold: true, color: theme.background, fill: { color: theme.accent } }),
      ...rows.map((row, index) =>
        cells(row, { color: theme.text, fill: { color: index % 2 === 0 ? theme.panel : theme.background } }),
      ),
    ],
    {
      x: margin,
      y: bodyTop,
      w: inner,
      fontFace: font,
      fontSize: size,
      valign: 'middle',
      border: { type: 'solid', pt: 0.5, color: theme.soft },
      margin: [0.05, 0.1, 0.05, 0.1],
    },
  );
}

function quote(sheet: Sheet, { quote: said, author }: Extract<Slide, { layout: 'quote' }>, theme: Theme): void {
  const box = { width: inner - 1, height: 3.2 };
  sheet.addShape('rect', { x: margin, y: bodyTop + 0.1, w: 0.08, h: 4.1, fill: { color: theme.accent } });
  sheet.addText(styled(`“${said.replaceAll(/^["“„«]|["”»]$/g, '')}”`, theme, theme.text), {
    x: margin + 0.5,
    y: bodyTop,
    w: box.width,
    h: box.height,
    margin: 0,
    valign: 'middle',
    italic: true,
    fontFace: font,
    fontSize: sizeFor([{ text: said, level: 0 }], box, 32, 16) ?? 16,
  });
  if (author !== undefined)
    sheet.addText(styled(`— ${author}`, theme, theme.soft), {
      x: margin + 0.5,
      y: bodyTop + 3.4,
      w: box.width,
      h: 0.6,
      margin: 0,
      valign: 'top',
      fontFace: font,
      fontSize: 18,
    });
}

/** Text of a line in runs that PowerPoint edits like typed ones. */
function styled(text: string, theme: Theme, color: string): TextProps[] {
  return runsOf(text).map((run) => ({
    text: run.text,
    options: {
      color,
      ...(run.bold === true ? { bold: true } : {}),
      ...(run.italic === true ? { italic: true } : {}),
      ...(run.code === true ? { fontFace: codeFont } : {}),
      ...(run.link === undefined ? {} : { color: theme.accent, hyperlink: { url: run.link } }),
    },
  }));
}
