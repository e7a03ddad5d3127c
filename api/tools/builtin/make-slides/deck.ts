// The schemas of a deck: as a model writes it, as an outline becomes it, and as slides of blocks once pictures are
// loaded.
import { z } from 'zod';

/** Per table. */
export const maxColumns = 8;

const shortText = z.string().trim().min(1).max(200);
const longText = z.string().trim().min(1).max(600);
const speakerNotes = z.string().trim().max(4_000).optional();

/** A line of text, indented or not. Text may carry **bold**, *italic*, `code` and [links](https://…). */
export const deckLine = z.union([
  longText.transform((text) => ({ text, level: 0 })),
  z.object({ text: longText, level: z.int().min(0).max(2).default(0) }),
]);
/** A line with a number is an item of a numbered list; a paragraph has no bullet. */
export type Line = z.output<typeof deckLine> & {
  readonly number?: number | undefined;
  readonly isParagraph?: boolean | undefined;
};
const deckLines = z.array(deckLine).max(60);

/** Whether lines continue the text before them: a list that restarts its numbers needs a separate text. */
export function isOneText(before: readonly Line[], after: readonly Line[]): boolean {
  const numbers = before.flatMap(({ number, level }) => (level === 0 && number !== undefined ? [number] : []));
  const next = after.find(({ number, level }) => level === 0 && number !== undefined)?.number;
  const last = numbers.at(-1);
  return last === undefined || next === undefined || next === last + 1;
}

const deckColumn = z.object({ heading: shortText.optional(), bullets: deckLines });

const deckSlide = z.discriminatedUnion('layout', [
  z.object({ layout: z.literal('section'), title: shortText, subtitle: longText.optional(), notes: speakerNotes }),
  z.object({ layout: z.literal('bullets'), title: shortText, bullets: deckLines, notes: speakerNotes }),
  z.object({
    layout: z.literal('two_columns'),
    title: shortText,
    left: deckColumn,
    right: deckColumn,
    notes: speakerNotes,
  }),
  z.object({
    layout: z.literal('table'),
    title: shortText,
    header: z.array(z.string().max(200)).min(1).max(maxColumns),
    rows: z.array(z.array(z.string().max(300)).max(maxColumns)).max(30),
    notes: speakerNotes,
  }),
  z.object({
    layout: z.literal('quote'),
    title: shortText.optional(),
    quote: longText,
    author: shortText.optional(),
    notes: speakerNotes,
  }),
]);

export const maxSlides = 40;

export const deck = z.object({
  title: shortText,
  subtitle: longText.optional(),
  notes: speakerNotes,
  slides: z.array(deckSlide).min(1).max(maxSlides),
});

const cellAlign = z.enum(['left', 'center', 'right']).nullable();
const outlineLine = z.object({
  text: z.string().min(1).max(600),
  level: z.int().min(0).max(2),
  number: z.int().optional(),
  isParagraph: z.boolean().optional(),
});

/** A block of a slide; blocks are placed below each other. */
const outlineBlock = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('text'), lines: z.array(outlineLine).max(400) }),
  z.object({ kind: z.literal('code'), code: z.string().max(20_000) }),
  z.object({
    kind: z.literal('table'),
    header: z.array(z.string().max(200)).min(1).max(maxColumns),
    rows: z.array(z.array(z.string().max(300)).max(maxColumns)).max(120),
    align: z.array(cellAlign).optional(),
  }),
  z.object({ kind: z.literal('quote'), quote: longText, author: shortText.optional() }),
  /** A picture to fetch. */
  z.object({ kind: z.literal('image'), href: z.string().min(1).max(1_400_000), alt: z.string().max(600) }),
  /** The source of a chart or a diagram to draw. */
  z.object({ kind: z.literal('drawing'), language: z.string(), source: z.string().min(1).max(100_000) }),
]);
export type OutlineBlock = z.output<typeof outlineBlock>;

const outlineColumn = z.object({ heading: shortText.optional(), blocks: z.array(outlineBlock).max(60) });

const outlineSlide = z.discriminatedUnion('layout', [
  z.object({ layout: z.literal('section'), title: shortText, subtitle: longText.optional(), notes: speakerNotes }),
  z.object({
    layout: z.literal('content'),
    title: shortText.optional(),
    columns: z.array(outlineColumn).min(1).max(2),
    notes: speakerNotes,
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

/** A block of a slide after its pictures are loaded. */
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

/** Converts the slides that a model wrote to slides of blocks. */
export function toBlockDeck({ slides, ...head }: z.output<typeof deck>): Deck {
  return { ...head, slides: slides.map(toBlockSlide) };
}

function toBlockSlide(written: z.output<typeof deckSlide>): Slide {
  const content = (columns: Column[]): ContentSlide => ({
    layout: 'content',
    title: written.title,
    columns,
    notes: written.notes,
  });
  switch (written.layout) {
    case 'section':
      return written;
    case 'bullets':
      return content([{ blocks: [{ kind: 'text', lines: written.bullets }] }]);
    case 'two_columns':
      return content(
        [written.left, written.right].map(({ heading, bullets }) => ({
          heading,
          blocks: [{ kind: 'text', lines: bullets }],
        })),
      );
    case 'table':
      return content([{ blocks: [{ kind: 'table', header: written.header, rows: written.rows }] }]);
    case 'quote':
      return content([{ blocks: [{ kind: 'quote', quote: written.quote, author: written.author }] }]);
  }
}
