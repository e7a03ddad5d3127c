// The schema of a deck, whether a model or the caller wrote it.
import { z } from 'zod';

const short = z.string().trim().min(1).max(200);
const long = z.string().trim().min(1).max(600);
const notes = z.string().trim().max(4_000).optional();

/** A line of text, indented or not. Text may carry **bold**, *italic*, `code` and [links](https://…). */
export const line = z.union([
  long.transform((text) => ({ text, level: 0 })),
  z.object({ text: long, level: z.int().min(0).max(2).default(0) }),
]);
export type Line = z.output<typeof line>;
const lines = z.array(line).max(60);

const column = z.object({ heading: short.optional(), bullets: lines });
export type Column = z.output<typeof column>;

export const slide = z.discriminatedUnion('layout', [
  z.object({ layout: z.literal('section'), title: short, subtitle: long.optional(), notes }),
  z.object({ layout: z.literal('bullets'), title: short, bullets: lines, notes }),
  z.object({ layout: z.literal('two_columns'), title: short, left: column, right: column, notes }),
  z.object({
    layout: z.literal('table'),
    title: short,
    header: z.array(z.string().max(200)).min(1).max(8),
    rows: z.array(z.array(z.string().max(300)).max(8)).max(30),
    notes,
  }),
  z.object({ layout: z.literal('quote'), title: short.optional(), quote: long, author: short.optional(), notes }),
]);
export type Slide = z.output<typeof slide>;

export const maxSlides = 40;

export const deck = z.object({
  title: short,
  subtitle: long.optional(),
  notes,
  slides: z.array(slide).min(1).max(maxSlides),
});
export type Deck = z.output<typeof deck>;
