// Lays out a deck as a presentation.
import { createRequire } from 'node:module';
import type PptxGenJs from 'pptxgenjs';
import type { ContentSlide, Deck, Slide } from './deck.ts';
import { drawBlock } from './drawn-blocks.ts';
import { flowed, type PlacedColumn } from './flow.ts';
import { repair, shapeNames } from './repair.ts';
import { directionOf, font, styled, type Sheet, type Theme } from './styles.ts';
import { plain, sizeFor, type Box } from './text.ts';

// Its declarations are those of a CommonJS module, and its ES module has no default export that they describe.
const Presentation = createRequire(import.meta.url)('pptxgenjs') as typeof PptxGenJs.default;

/** 16:9, in inches. */
const page = { width: 13.333, height: 7.5 };
const margin = 0.7;
const inner = page.width - 2 * margin;
const bodyTop = 1.75;
const body: Box = { width: inner, height: page.height - bodyTop - 0.75 };
const gap = 0.5;
const headingHeight = 0.65;

export interface PresentationFile {
  readonly bytes: Uint8Array;
  /** What is on each slide, continued ones included. */
  readonly slides: { number: number; layout: string; title: string }[];
}

const titleBox = { x: margin, y: 0.4, w: inner, h: 1.0 };
const half = (inner - gap) / 2;
const masters = {
  cover: {
    title: { x: margin + 0.2, y: 1.6, w: inner - 0.2, h: 2.4 },
    body: { x: margin + 0.2, y: 4.2, w: inner - 0.2, h: 1.6 },
  },
  section: { title: { x: margin, y: 1.9, w: inner, h: 1.9 }, body: { x: margin, y: 4.2, w: inner, h: 1.5 } },
  content: { title: titleBox, body: { x: margin, y: bodyTop, w: body.width, h: body.height } },
  columns: {
    title: titleBox,
    body: { x: margin, y: bodyTop, w: half, h: body.height },
    second: { x: margin + half + gap, y: bodyTop, w: half, h: body.height },
  },
};
type Master = keyof typeof masters;

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
  for (const [name, boxes] of Object.entries(masters)) presentation.defineSlideMaster(masterOf(name, boxes, theme));
  const laid: PresentationFile['slides'] = [];
  const sheet = (master: Master, layout: string, named: string, said: string | undefined): Sheet => {
    const added = presentation.addSlide({ masterName: master });
    added.background = { color: theme.background };
    if (said !== undefined && said !== '') added.addNotes(said);
    laid.push({ number: laid.length + 1, layout, title: plain(named) });
    return added;
  };
  titleSlide(sheet('cover', 'title', title, notes), title, subtitle, theme);
  for (const slide of slides) layOut(slide, theme, sheet, () => laid.length);
  const bytes = await presentation.write({ outputType: 'uint8array' });
  if (!(bytes instanceof Uint8Array)) throw new TypeError('the presentation was not written as bytes');
  return { bytes: await repair(bytes, theme.accent), slides: laid };
}

/** Title and body as placeholders, so that a layout can be changed, and an outline be shown. */
function masterOf(
  name: string,
  { title, ...bodies }: (typeof masters)[Master],
  theme: Theme,
): PptxGenJs.default.SlideMasterProps {
  const text = { fontFace: font, color: theme.text, margin: 0 };
  return {
    title: name,
    background: { color: theme.background },
    objects: [
      {
        placeholder: {
          options: { name: 'title', type: 'title', ...title, ...text, bold: true, align: 'left', fontSize: 30 },
          text: '',
        },
      },
      ...Object.entries(bodies).map(([called, box]) => ({
        placeholder: { options: { name: called, type: 'body' as const, ...box, ...text, fontSize: 20 }, text: '' },
      })),
    ],
  };
}

type NewSheet = (master: Master, layout: string, named: string, said: string | undefined) => Sheet;

function layOut(slide: Slide, theme: Theme, sheet: NewSheet, number: () => number): void {
  if (slide.layout === 'section') {
    sectionSlide(sheet('section', 'section', slide.title, slide.notes), slide, theme);
    return;
  }
  const parts = flowed(slide, boxOf);
  parts.forEach((columns, index) => {
    const title = `${titleOf(slide)}${parts.length < 2 ? '' : ` (${index + 1}/${parts.length})`}`;
    const added = sheet(
      columns.length > 1 ? 'columns' : 'content',
      layoutName(slide),
      title,
      index === 0 ? slide.notes : undefined,
    );
    heading(added, title, theme, slide.title !== undefined);
    columnsOf(added, columns, theme);
    pageNumber(added, number(), theme);
  });
}

/** A quote without a title is found in an outline by its words. */
function titleOf({ title, columns }: ContentSlide): string {
  if (title !== undefined) return title;
  const quote = columns.flatMap(({ blocks }) => blocks).find(({ kind }) => kind === 'quote');
  return quote?.kind === 'quote' ? quote.quote.slice(0, 60) : ' ';
}

function layoutName({ columns }: ContentSlide): string {
  if (columns.length > 1) return 'two_columns';
  const kinds = new Set((columns[0]?.blocks ?? []).map(({ kind }) => kind));
  const [kind = 'text'] = kinds;
  if (kinds.size > 1) return 'mixed';
  return kind === 'text' ? 'bullets' : kind;
}

function boxOf(columns: number, hasHeadings: boolean): Box {
  return {
    width: columns > 1 ? half : body.width,
    height: hasHeadings ? body.height - headingHeight : body.height,
  };
}

function columnsOf(sheet: Sheet, columns: readonly PlacedColumn[], theme: Theme): void {
  const hasHeadings = columns.some(({ heading: named }) => named !== undefined);
  const box = boxOf(columns.length, hasHeadings);
  columns.forEach(({ heading: named, blocks }, index) => {
    const x = margin + index * (box.width + gap);
    if (named !== undefined)
      sheet.addText(styled(named, theme, theme.accent), {
        x,
        y: bodyTop,
        w: box.width,
        h: 0.5,
        margin: 0,
        valign: 'middle',
        fontFace: font,
        fontSize: sizeFor([{ text: named, level: 0 }], { width: box.width, height: 0.55 }, 20, 11) ?? 11,
        bold: true,
      });
    const top = bodyTop + (hasHeadings ? headingHeight : 0);
    // The first text of a column is what an outline shows.
    const outlined = blocks.find(({ block }) => block.kind === 'text');
    const called = index === 0 ? shapeNames.body : shapeNames.second;
    for (const placed of blocks) {
      const area = { x, y: top + placed.y, w: box.width, h: placed.height };
      drawBlock(sheet, placed, area, theme, placed === outlined ? called : undefined);
    }
  });
}

function pageNumber(sheet: Sheet, number: number, theme: Theme): void {
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
  const size = sizeFor([{ text: title, level: 0 }], { width: inner, height: 2.2 }, 48, 18) ?? 18;
  sheet.addText(styled(title, theme, theme.text), {
    objectName: shapeNames.title,
    ...masters.cover.title,
    ...directionOf(title),
    valign: 'bottom',
    fontFace: font,
    fontSize: size,
    bold: true,
  });
  if (subtitle === undefined) return;
  sheet.addText(styled(subtitle, theme, theme.soft), {
    objectName: shapeNames.body,
    ...masters.cover.body,
    ...directionOf(subtitle),
    valign: 'top',
    fontFace: font,
    fontSize: sizeFor([{ text: subtitle, level: 0 }], { width: inner - 0.4, height: 1.5 }, 24, 10) ?? 10,
  });
}

function sectionSlide(sheet: Sheet, { title, subtitle }: Extract<Slide, { layout: 'section' }>, theme: Theme): void {
  sheet.background = { color: theme.panel };
  sheet.addShape('rect', { x: margin, y: 3.95, w: 1.6, h: 0.07, fill: { color: theme.accent } });
  sheet.addText(styled(title, theme, theme.text), {
    objectName: shapeNames.title,
    ...masters.section.title,
    ...directionOf(title),
    margin: 0,
    valign: 'bottom',
    fontFace: font,
    fontSize: sizeFor([{ text: title, level: 0 }], { width: inner, height: 1.8 }, 40, 18) ?? 18,
    bold: true,
  });
  if (subtitle === undefined) return;
  sheet.addText(styled(subtitle, theme, theme.soft), {
    objectName: shapeNames.body,
    ...masters.section.body,
    ...directionOf(subtitle),
    margin: 0,
    valign: 'top',
    fontFace: font,
    fontSize: sizeFor([{ text: subtitle, level: 0 }], { width: inner, height: 1.4 }, 22, 10) ?? 10,
  });
}

/** A title that is only for the outline lies in the background. */
function heading(sheet: Sheet, title: string, theme: Theme, isShown: boolean): void {
  const size = sizeFor([{ text: title, level: 0 }], { width: inner, height: 1.05 }, 30, 12) ?? 12;
  sheet.addText(styled(title, theme, isShown ? theme.text : theme.background), {
    objectName: shapeNames.title,
    ...titleBox,
    ...directionOf(title),
    margin: 0,
    valign: 'bottom',
    fontFace: font,
    fontSize: size,
    bold: true,
  });
  const x = directionOf(title).rtlMode === true ? margin + inner - 1.2 : margin;
  if (isShown) sheet.addShape('rect', { x, y: 1.5, w: 1.2, h: 0.06, fill: { color: theme.accent } });
}
