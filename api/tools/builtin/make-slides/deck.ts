// The schema of a deck as a model writes it, and the slides that it, or an outline, becomes.
import { z } from 'zod';

/** Columns of a table. */
export const maxColumns = 8;

const short = z.string().trim().min(1).max(200);
const long = z.string().trim().min(1).max(600);
const notes = z.string().trim().max(4_000).optional();

/** A line of text, indented or not. Text may carry **bold**, *italic*, `code` and [links](https://…). */
export const line = z.union([
  long.transform((text) => ({ text, level: 0 })),
  z.object({ text: long, level: z.int().min(0).max(2).default(0) }),
]);
/** With a number, an item of a numbered list; a paragraph has no bullet. */
export type Line = z.output<typeof line> & {
  readonly number?: number | undefined;
  readonly isParagraph?: boolean | undefined;
};
const lines = z.array(line).max(60);

/** Whether lines go on in the text before them: a list that begins anew is numbered anew only in a text of its own. */
export function isOneText(before: readonly Line[], after: readonly Line[]): boolean {
  const numbers = before.flatMap(({ number, level }) => (level === 0 && number !== undefined ? [number] : []));
  const next = after.find(({ number, level }) => level === 0 && number !== undefined)?.number;
  const last = numbers.at(-1);
  return last === undefined || next === undefined || next === last + 1;
}

const column = z.object({ heading: short.optional(), bullets: lines });

const slide = z.discriminatedUnion('layout', [
  z.object({ layout: z.literal('section'), title: short, subtitle: long.optional(), notes }),
  z.object({ layout: z.literal('bullets'), title: short, bullets: lines, notes }),
  z.object({ layout: z.literal('two_columns'), title: short, left: column, right: column, notes }),
  z.object({
    layout: z.literal('table'),
    title: short,
    header: z.array(z.string().max(200)).min(1).max(maxColumns),
    rows: z.array(z.array(z.string().max(300)).max(maxColumns)).max(30),
    notes,
  }),
  z.object({ layout: z.literal('quote'), title: short.optional(), quote: long, author: short.optional(), notes }),
]);

export const maxSlides = 40;

export const deck = z.object({
  title: short,
  subtitle: long.optional(),
  notes,
  slides: z.array(slide).min(1).max(maxSlides),
});

const align = z.enum(['left', 'center', 'right']).nullable();
const outlineLine = z.object({
  text: z.string().min(1).max(600),
  level: z.int().min(0).max(2),
  number: z.int().optional(),
  isParagraph: z.boolean().optional(),
});

/** What stands on a slide, one below the other. */
const block = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('text'), lines: z.array(outlineLine).max(400) }),
  z.object({ kind: z.literal('code'), code: z.string().max(20_000) }),
  z.object({
    kind: z.literal('table'),
    header: z.array(z.string().max(200)).min(1).max(maxColumns),
    rows: z.array(z.array(z.string().max(300)).max(maxColumns)).max(120),
    align: z.array(align).optional(),
  }),
  z.object({ kind: z.literal('quote'), quote: long, author: short.optional() }),
  /** A picture by its address, which is fetched. */
  z.object({ kind: z.literal('image'), href: z.string().min(1).max(1_400_000), alt: z.string().max(600) }),
  /** A chart or a diagram by its source, which is drawn. */
  z.object({ kind: z.literal('drawing'), language: z.string(), source: z.string().min(1).max(100_000) }),
]);
export type OutlineBlock = z.output<typeof block>;

const outlineColumn = z.object({ heading: short.optional(), blocks: z.array(block).max(60) });

const outlineSlide = z.discriminatedUnion('layout', [
  z.object({ layout: z.literal('section'), title: short, subtitle: long.optional(), notes }),
  z.object({
    layout: z.literal('content'),
    title: short.optional(),
    columns: z.array(outlineColumn).min(1).max(2),
    notes,
  }),
]);
export type OutlineSlide = z.output<typeof outlineSlide>;

export const outlineDeck = deck.extend({ slides: z.array(outlineSlide).min(1).max(maxSlides) });
export type OutlineDeck = z.output<typeof outlineDeck>;

export interface PictureBlock {
  readonly kind: 'picture';
  readonly bytes: Uint8Array;
  readonly mediaType: string;
  readonly width: number;
  readonly height: number;
  readonly alt: string;
}

/** What stands on a slide once its pictures are there. */
export type Block = Exclude<OutlineBlock, { kind: 'image' | 'drawing' }> | PictureBlock;
export interface Column {
  readonly heading?: string | undefined;
  readonly blocks: readonly Block[];
}
export interface ContentSlide {
  readonly layout: 'content';
  readonly title?: string | undefined;
  readonly columns: readonly Column[];
  readonly notes?: string | undefined;
}
export type Slide = Extract<OutlineSlide, { layout: 'section' }> | ContentSlide;
export type Deck = Omit<OutlineDeck, 'slides'> & { readonly slides: readonly Slide[] };

/** The slides of a model as slides of blocks. */
export function withBlocks({ slides, ...head }: z.output<typeof deck>): Deck {
  return { ...head, slides: slides.map(slideOf) };
}

function slideOf(given: z.output<typeof slide>): Slide {
  const content = (columns: Column[]): ContentSlide => ({
    layout: 'content',
    title: given.title,
    columns,
    notes: given.notes,
  });
  switch (given.layout) {
    case 'section':
      return given;
    case 'bullets':
      return content([{ blocks: [{ kind: 'text', lines: given.bullets }] }]);
    case 'two_columns':
      return content(
        [given.left, given.right].map(({ heading, bullets }) => ({
          heading,
          blocks: [{ kind: 'text', lines: bullets }],
        })),
      );
    case 'table':
      return content([{ blocks: [{ kind: 'table', header: given.header, rows: given.rows }] }]);
    case 'quote':
      return content([{ blocks: [{ kind: 'quote', quote: given.quote, author: given.author }] }]);
  }
}
