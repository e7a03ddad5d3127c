// Scholarly works from Crossref and arXiv, in one common form.
import { z } from 'zod';
import { XMLParser } from 'fast-xml-parser';
import type { Fetcher } from '../../fetch/fetcher.ts';
import { Problem } from '../../../../lib/problem.ts';
import { fetchFailed } from '../../problems.ts';

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

/** The API to ask, and the signal of the call. */
export interface CitationSource {
  readonly fetcher: Fetcher;
  readonly base: string;
  readonly signal: AbortSignal;
}

const optionalText = z.string().nullish();
const crossrefDate = z.looseObject({ 'date-parts': z.array(z.array(z.number().nullable())).nullish() }).nullish();
const crossrefAuthor = z.looseObject({ given: optionalText, family: optionalText, name: optionalText });
const crossrefItem = z.looseObject({
  DOI: z.string(),
  URL: optionalText,
  type: optionalText,
  title: z.array(z.string()).nullish(),
  'container-title': z.array(z.string()).nullish(),
  author: z.array(crossrefAuthor).nullish(),
  issued: crossrefDate,
  volume: optionalText,
  issue: optionalText,
  page: optionalText,
  publisher: optionalText,
  abstract: optionalText,
});
const singleResponse = z.looseObject({ message: crossrefItem });
const listResponse = z.looseObject({ message: z.looseObject({ items: z.array(crossrefItem) }) });

/** Fetches one work by DOI (none if it is unknown), or the best matches for a query. */
export async function fetchCrossrefWorks(
  { fetcher, base, signal }: CitationSource,
  wanted: { doi: string } | { query: string; count: number },
): Promise<Work[]> {
  const path =
    'doi' in wanted
      ? `/works/${encodeURIComponent(wanted.doi)}`
      : `/works?${new URLSearchParams({ 'query.bibliographic': wanted.query, rows: String(wanted.count) }).toString()}`;
  const answer = await fetcher.fetch({
    url: `${base}${path}`,
    headers: { accept: 'application/json' },
    maxBytes: 8_000_000,
    timeoutMs: 25_000,
    signal,
  });
  if (answer.status === 404) return [];
  if (answer.status !== 200)
    throw new Problem(fetchFailed, `Crossref returned status ${answer.status}.`, {
      members: { target_status: answer.status },
    });
  try {
    const body: unknown = JSON.parse(new TextDecoder().decode(answer.bytes));
    return 'doi' in wanted
      ? [fromCrossref(singleResponse.parse(body).message)]
      : listResponse.parse(body).message.items.slice(0, wanted.count).map(fromCrossref);
  } catch (error) {
    throw new Problem(fetchFailed, 'Crossref returned something other than works.', { cause: error });
  }
}

function fromCrossref({
  DOI: doi,
  URL: url,
  type,
  title,
  author,
  volume,
  issue,
  page: pages,
  publisher,
  abstract,
  issued,
  'container-title': venue,
}: z.output<typeof crossrefItem>): Work {
  const [year, month] = issued?.['date-parts']?.[0] ?? [];
  return {
    source: 'crossref',
    type: type ?? 'other',
    title: readFirst(title),
    authors: (author ?? []).map(toAuthor).filter(({ family }) => family !== ''),
    ...omitEmpty({
      year,
      month,
      venue: readFirst(venue),
      volume,
      issue,
      pages,
      publisher,
      abstract: toPlainText(abstract ?? '').slice(0, 5_000),
    }),
    doi,
    url: url ?? `https://doi.org/${doi}`,
  };
}

function toAuthor({ given, family, name }: z.output<typeof crossrefAuthor>): Work['authors'][number] {
  return { family: family ?? name ?? '', ...omitEmpty({ given }) };
}

function readFirst(texts: readonly string[] | null | undefined): string {
  return toPlainText(texts?.[0] ?? '');
}

const arxivEntry = z.looseObject({
  id: z.string(),
  title: z.string(),
  summary: z.string().optional(),
  published: z.string().optional(),
  author: z.array(z.looseObject({ name: z.string() })).default([]),
  doi: z.string().optional(),
  journal_ref: z.string().optional(),
});
const atomFeed = z.looseObject({ feed: z.looseObject({ entry: z.array(arxivEntry).default([]) }) });

/** Entities are not expanded: the only use of entities that a document declares is to make it grow. */
const atomParser = new XMLParser({
  removeNSPrefix: true,
  parseTagValue: false,
  processEntities: false,
  isArray: (name) => name === 'entry' || name === 'author',
  textNodeName: 'text',
  ignoreAttributes: true,
});

/** Fetches the work with this id; none if it is unknown. arXiv answers with an Atom feed. */
export async function fetchArxivWorks({ fetcher, base, signal }: CitationSource, id: string): Promise<Work[]> {
  const answer = await fetcher.fetch({
    url: `${base}/api/query?${new URLSearchParams({ id_list: id, max_results: '1' }).toString()}`,
    headers: { accept: 'application/atom+xml' },
    maxBytes: 2_000_000,
    timeoutMs: 25_000,
    signal,
  });
  // arXiv answers an id that it cannot parse with 400.
  if (answer.status === 400) return [];
  if (answer.status !== 200)
    throw new Problem(fetchFailed, `arXiv returned status ${answer.status}.`, {
      members: { target_status: answer.status },
    });
  try {
    const { entry: entries } = atomFeed.parse(atomParser.parse(Buffer.from(answer.bytes))).feed;
    // arXiv answers an unknown id with an error entry, or with an entry without authors.
    return entries.filter((one) => /arxiv\.org\/abs\//.test(one.id) && one.author.length > 0).map(fromArxiv);
  } catch (error) {
    throw new Problem(fetchFailed, 'arXiv returned something other than a feed.', { cause: error });
  }
}

function fromArxiv({
  id,
  title,
  summary,
  published,
  author,
  doi,
  journal_ref: venue,
}: z.output<typeof arxivEntry>): Work {
  const arxiv = id.replace(/^.*\/abs\//, '');
  const date = published === undefined ? undefined : new Date(published);
  return {
    source: 'arxiv',
    type: 'preprint',
    title: toPlainText(title),
    authors: author.map(({ name }) => splitName(toPlainText(name))),
    ...(date === undefined || Number.isNaN(date.getTime())
      ? {}
      : { year: date.getUTCFullYear(), month: date.getUTCMonth() + 1 }),
    ...omitEmpty({ venue: toPlainText(venue ?? ''), abstract: toPlainText(summary ?? '').slice(0, 5_000) }),
    doi: doi ?? `10.48550/arXiv.${arxiv.replace(/v\d+$/, '')}`,
    arxiv,
    url: `https://arxiv.org/abs/${arxiv}`,
  };
}

/** The feed has full names only. The last word is the family name, with its particles such as van or de. */
function splitName(name: string): { given?: string; family: string } {
  const { given, family } =
    /^(?<given>.+?)\s+(?<family>(?:(?:van|von|der|den|de|del|della|di|da|la|le|ten|ter)\s+)*\S+)$/i.exec(name)
      ?.groups ?? {};
  return family === undefined ? { family: name } : { family, ...omitEmpty({ given }) };
}

/** Removes markup and collapses white space. */
export function toPlainText(text: string): string {
  return text
    .replace(/<[^>]{0,500}>/g, ' ')
    .replace(/&lt;/g, '<')
    .replace(/&gt;/g, '>')
    .replace(/&amp;/g, '&')
    .replace(/\s+/g, ' ')
    .trim();
}

/** Drops fields without a value. */
export function omitEmpty<Fields extends Record<string, unknown>>(
  fields: Fields,
): { [Name in keyof Fields]?: NonNullable<Fields[Name]> } {
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== undefined && value !== null && value !== ''),
  ) as { [Name in keyof Fields]?: NonNullable<Fields[Name]> };
}
