// A scholarly work: the common form of both sources.
import { z } from 'zod';
import type { Fetcher } from '../../fetch/fetcher.ts';

export const work = z.object({
  source: z.enum(['crossref', 'arxiv']).describe('Source of the record.'),
  type: z.string().describe('Type of work, such as journal-article, book-chapter or preprint.'),
  title: z.string(),
  authors: z
    .array(z.object({ given: z.string().optional(), family: z.string() }))
    .describe('Authors in order; an organization has its name in family.'),
  year: z.int().optional(),
  month: z.int().optional(),
  venue: z.string().optional().describe('Journal, book or conference.'),
  volume: z.string().optional(),
  issue: z.string().optional(),
  pages: z.string().optional(),
  publisher: z.string().optional(),
  doi: z.string().optional(),
  arxiv: z.string().optional().describe('arXiv id with its version.'),
  url: z.string().describe('URL of the work.'),
  abstract: z.string().optional(),
});

export type Work = z.output<typeof work>;

/** Where to ask, and on whose behalf. */
export interface Source {
  readonly fetcher: Fetcher;
  readonly base: string;
  readonly signal: AbortSignal;
}

/** Text without markup and with single spaces. */
export function plainText(text: string): string {
  return text
    .replace(/<[^>]{0,500}>/g, ' ')
    .replace(/&lt;/g, '<')
    .replace(/&gt;/g, '>')
    .replace(/&amp;/g, '&')
    .replace(/\s+/g, ' ')
    .trim();
}

/** Only what is there, so that a field without a value is left out. */
export function known<Fields extends Record<string, unknown>>(
  fields: Fields,
): { [Name in keyof Fields]?: NonNullable<Fields[Name]> } {
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== undefined && value !== null && value !== ''),
  ) as { [Name in keyof Fields]?: NonNullable<Fields[Name]> };
}
