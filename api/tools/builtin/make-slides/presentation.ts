// Lays out a deck as a PPTX presentation with pptxgenjs, and repairs what pptxgenjs writes.
import { createRequire } from 'node:module';
import type PptxGenJs from 'pptxgenjs';
import JSZip from 'jszip';
import type { ContentSlide, Deck, Slide } from './deck.ts';
import { drawBlock, detectDirection, textFont, styleText, type Sheet, type Theme } from './draw-blocks.ts';
import { flowSlide, type PlacedColumn, toPlainText, fitSize, type TextBox } from './flow.ts';

// Its type declarations describe a CommonJS module; the ES module lacks the default export that they declare.
const Presentation = createRequire(import.meta.url)('pptxgenjs') as typeof PptxGenJs.default;

/** 16:9, in inches. */
const pageSize = { width: 13.333, height: 7.5 };
const margin = 0.7;
const innerWidth = pageSize.width - 2 * margin;
const bodyTop = 1.75;
const bodyBox: TextBox = { width: innerWidth, height: pageSize.height - bodyTop - 0.75 };
const columnGap = 0.5;
const headingHeight = 0.65;

export interface PresentationFile {
  readonly bytes: Uint8Array;
  /** One entry per slide, including continuation slides. */
  readonly slides: { number: number; layout: string; title: string }[];
}

const titleBox = { x: margin, y: 0.4, w: innerWidth, h: 1.0 };
const halfWidth = (innerWidth - columnGap) / 2;
const masters = {
  cover: {
    title: { x: margin + 0.2, y: 1.6, w: innerWidth - 0.2, h: 2.4 },
    body: { x: margin + 0.2, y: 4.2, w: innerWidth - 0.2, h: 1.6 },
  },
  section: { title: { x: margin, y: 1.9, w: innerWidth, h: 1.9 }, body: { x: margin, y: 4.2, w: innerWidth, h: 1.5 } },
  content: { title: titleBox, body: { x: margin, y: bodyTop, w: bodyBox.width, h: bodyBox.height } },
  columns: {
    title: titleBox,
    body: { x: margin, y: bodyTop, w: halfWidth, h: bodyBox.height },
    second: { x: margin + halfWidth + columnGap, y: bodyTop, w: halfWidth, h: bodyBox.height },
  },
};
type Master = keyof typeof masters;

/** A slide with too much content continues on another with the same title. */
export async function createPresentation(
  { title, subtitle, notes, slides }: Deck,
  theme: Theme,
): Promise<PresentationFile> {
  const presentation = new Presentation();
  presentation.layout = 'LAYOUT_WIDE';
  presentation.title = toPlainText(title);
  presentation.company = 'Moorage';
  presentation.theme = { headFontFace: textFont, bodyFontFace: textFont };
  for (const [name, boxes] of Object.entries(masters)) presentation.defineSlideMaster(defineMaster(name, boxes, theme));
  const laid: PresentationFile['slides'] = [];
  const sheet = (master: Master, layout: string, named: string, speakerNotes: string | undefined): Sheet => {
    const added = presentation.addSlide({ masterName: master });
    added.background = { color: theme.background };
    if (speakerNotes !== undefined && speakerNotes !== '') added.addNotes(speakerNotes);
    laid.push({ number: laid.length + 1, layout, title: toPlainText(named) });
    return added;
  };
  fillTitleSlide(sheet('cover', 'title', title, notes), title, subtitle, theme);
  for (const slide of slides) addSlides(slide, theme, sheet, () => laid.length);
  const bytes = await presentation.write({ outputType: 'uint8array' });
  if (!(bytes instanceof Uint8Array)) throw new TypeError('the presentation was not written as bytes');
  return { bytes: await repairPresentation(bytes, theme.accent), slides: laid };
}

/** Title and body are placeholders, so that the layout can be changed and the outline view works. */
function defineMaster(
  name: string,
  { title, ...bodies }: (typeof masters)[Master],
  theme: Theme,
): PptxGenJs.default.SlideMasterProps {
  const text = { fontFace: textFont, color: theme.text, margin: 0 };
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

type AddSheet = (master: Master, layout: string, named: string, speakerNotes: string | undefined) => Sheet;

function addSlides(slide: Slide, theme: Theme, sheet: AddSheet, number: () => number): void {
  if (slide.layout === 'section') {
    fillSectionSlide(sheet('section', 'section', slide.title, slide.notes), slide, theme);
    return;
  }
  const parts = flowSlide(slide, chooseBox);
  parts.forEach((columns, index) => {
    const title = `${chooseTitle(slide)}${parts.length < 2 ? '' : ` (${index + 1}/${parts.length})`}`;
    const added = sheet(
      columns.length > 1 ? 'columns' : 'content',
      nameLayout(slide),
      title,
      index === 0 ? slide.notes : undefined,
    );
    addHeading(added, title, theme, slide.title !== undefined);
    addColumns(added, columns, theme);
    addPageNumber(added, number(), theme);
  });
}

/** A quote without a title appears in the outline view by its words. */
function chooseTitle({ title, columns }: ContentSlide): string {
  if (title !== undefined) return title;
  const quote = columns.flatMap(({ blocks }) => blocks).find(({ kind }) => kind === 'quote');
  return quote?.kind === 'quote' ? quote.quote.slice(0, 60) : ' ';
}

function nameLayout({ columns }: ContentSlide): string {
  if (columns.length > 1) return 'two_columns';
  const kinds = new Set((columns[0]?.blocks ?? []).map(({ kind }) => kind));
  const [kind = 'text'] = kinds;
  if (kinds.size > 1) return 'mixed';
  return kind === 'text' ? 'bullets' : kind;
}

function chooseBox(columns: number, hasHeadings: boolean): TextBox {
  return {
    width: columns > 1 ? halfWidth : bodyBox.width,
    height: hasHeadings ? bodyBox.height - headingHeight : bodyBox.height,
  };
}

function addColumns(sheet: Sheet, columns: readonly PlacedColumn[], theme: Theme): void {
  const hasHeadings = columns.some(({ heading: named }) => named !== undefined);
  const box = chooseBox(columns.length, hasHeadings);
  columns.forEach(({ heading: named, blocks }, index) => {
    const x = margin + index * (box.width + columnGap);
    if (named !== undefined)
      sheet.addText(styleText(named, theme, theme.accent), {
        x,
        y: bodyTop,
        w: box.width,
        h: 0.5,
        margin: 0,
        valign: 'middle',
        fontFace: textFont,
        fontSize: fitSize([{ text: named, level: 0 }], { width: box.width, height: 0.55 }, 20, 11) ?? 11,
        bold: true,
      });
    const top = bodyTop + (hasHeadings ? headingHeight : 0);
    // The outline view shows the first text of a column.
    const outlined = blocks.find(({ block }) => block.kind === 'text');
    const called = index === 0 ? shapeNames.body : shapeNames.second;
    for (const placed of blocks) {
      const area = { x, y: top + placed.y, w: box.width, h: placed.height };
      drawBlock(sheet, placed, area, theme, placed === outlined ? called : undefined);
    }
  });
}

function addPageNumber(sheet: Sheet, number: number, theme: Theme): void {
  sheet.addText(String(number), {
    x: pageSize.width - margin - 1,
    y: pageSize.height - 0.55,
    w: 1,
    h: 0.3,
    align: 'right',
    fontFace: textFont,
    fontSize: 11,
    color: theme.soft,
  });
}

function fillTitleSlide(sheet: Sheet, title: string, subtitle: string | undefined, theme: Theme): void {
  sheet.addShape('rect', { x: 0, y: 0, w: 0.35, h: pageSize.height, fill: { color: theme.accent } });
  const size = fitSize([{ text: title, level: 0 }], { width: innerWidth, height: 2.2 }, 48, 18) ?? 18;
  sheet.addText(styleText(title, theme, theme.text), {
    objectName: shapeNames.title,
    ...masters.cover.title,
    ...detectDirection(title),
    valign: 'bottom',
    fontFace: textFont,
    fontSize: size,
    bold: true,
  });
  if (subtitle === undefined) return;
  sheet.addText(styleText(subtitle, theme, theme.soft), {
    objectName: shapeNames.body,
    ...masters.cover.body,
    ...detectDirection(subtitle),
    valign: 'top',
    fontFace: textFont,
    fontSize: fitSize([{ text: subtitle, level: 0 }], { width: innerWidth - 0.4, height: 1.5 }, 24, 10) ?? 10,
  });
}

function fillSectionSlide(
  sheet: Sheet,
  { title, subtitle }: Extract<Slide, { layout: 'section' }>,
  theme: Theme,
): void {
  sheet.background = { color: theme.panel };
  sheet.addShape('rect', { x: margin, y: 3.95, w: 1.6, h: 0.07, fill: { color: theme.accent } });
  sheet.addText(styleText(title, theme, theme.text), {
    objectName: shapeNames.title,
    ...masters.section.title,
    ...detectDirection(title),
    margin: 0,
    valign: 'bottom',
    fontFace: textFont,
    fontSize: fitSize([{ text: title, level: 0 }], { width: innerWidth, height: 1.8 }, 40, 18) ?? 18,
    bold: true,
  });
  if (subtitle === undefined) return;
  sheet.addText(styleText(subtitle, theme, theme.soft), {
    objectName: shapeNames.body,
    ...masters.section.body,
    ...detectDirection(subtitle),
    margin: 0,
    valign: 'top',
    fontFace: textFont,
    fontSize: fitSize([{ text: subtitle, level: 0 }], { width: innerWidth, height: 1.4 }, 22, 10) ?? 10,
  });
}

/** A title that is only for the outline view has the colour of the background. */
function addHeading(sheet: Sheet, title: string, theme: Theme, isShown: boolean): void {
  const size = fitSize([{ text: title, level: 0 }], { width: innerWidth, height: 1.05 }, 30, 12) ?? 12;
  sheet.addText(styleText(title, theme, isShown ? theme.text : theme.background), {
    objectName: shapeNames.title,
    ...titleBox,
    ...detectDirection(title),
    margin: 0,
    valign: 'bottom',
    fontFace: textFont,
    fontSize: size,
    bold: true,
  });
  const x = detectDirection(title).rtlMode === true ? margin + innerWidth - 1.2 : margin;
  if (isShown) sheet.addShape('rect', { x, y: 1.5, w: 1.2, h: 0.06, fill: { color: theme.accent } });
}

/** Shapes of these names become placeholders of their slide. */
const shapeNames = { title: 'Title', body: 'Body 1', second: 'Body 2' } as const;

/**
 * Repairs what pptxgenjs 4.0.1 writes: paragraph properties repeated inside a paragraph, which PowerPoint reports as damage;
 * bullets without a colour; and placeholders, which it cannot place freely.
 *
 * @param accent colour of the bullets, as RRGGBB
 */
async function repairPresentation(bytes: Uint8Array, accent: string): Promise<Uint8Array> {
  const archive = await JSZip.loadAsync(bytes);
  const change = async (folder: RegExp, changed: (xml: string) => string): Promise<void> => {
    const names = Object.keys(archive.files).filter((name) => folder.test(name));
    await Promise.all(
      names.map(async (name) => {
        const xml = await archive.file(name)?.async('string');
        if (xml !== undefined) archive.file(name, changed(xml));
      }),
    );
  };
  await change(/^ppt\/slides\/slide\d+\.xml$/, (xml) =>
    placePlaceholders(colorBullets(removeRepeatedProperties(xml), accent)),
  );
  await change(/^ppt\/slideLayouts\/slideLayout\d+\.xml$/, numberPlaceholders);
  return archive.generateAsync({ type: 'uint8array', compression: 'DEFLATE' });
}

/** Keeps only the properties at the beginning of each paragraph. Text is escaped in XML, so none can look like a tag. */
function removeRepeatedProperties(xml: string): string {
  return xml.replaceAll(/(<\/a:r>|<\/a:fld>|<a:br\/>)<a:pPr(?:[^>]*\/>|[^>]*>.*?<\/a:pPr>)/gs, '$1');
}

function colorBullets(xml: string, accent: string): string {
  return xml.replaceAll('<a:buSzPct', `<a:buClr><a:srgbClr val="${accent}"/></a:buClr><a:buSzPct`);
}

const toBodyPlaceholder = (index: number): string => `<p:ph type="body" idx="${index}"/>`;
const placeholders = new Map<string, string>([
  [shapeNames.title, '<p:ph type="title"/>'],
  [shapeNames.body, toBodyPlaceholder(1)],
  [shapeNames.second, toBodyPlaceholder(2)],
]);

/** Turns named shapes into placeholders, and drops the empty ones that pptxgenjs adds to each slide. */
function placePlaceholders(xml: string): string {
  return xml.replaceAll(/<p:sp>.*?<\/p:sp>/gs, (shape) => {
    if (shape.includes('<p:ph')) return '';
    const name = /<p:cNvPr [^>]*\bname="([^"]*)"/.exec(shape)?.[1];
    const kind = placeholders.get(name ?? '');
    if (kind === undefined) return shape;
    return shape.replace(/<p:nvPr>\s*<\/p:nvPr>|<p:nvPr\s*\/>/, `<p:nvPr>${kind}</p:nvPr>`);
  });
}

/** Numbers the placeholders of a layout as slides refer to them. */
function numberPlaceholders(xml: string): string {
  let bodies = 0;
  return xml.replaceAll(/<p:ph\b[^>]*?\/>/gs, (placeholder) => {
    if (/type="title"/.test(placeholder)) return '<p:ph type="title"/>';
    if (!/type="body"/.test(placeholder)) return placeholder;
    bodies += 1;
    return toBodyPlaceholder(bodies);
  });
}
