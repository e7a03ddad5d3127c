// The Crossref API client.
import { z } from 'zod';
import { Problem } from '../../../../lib/problem.ts';
import { fetchFailed } from '../../fetch/problems.ts';
import { known, plainText, type Source, type Work } from './work.ts';

const text = z.string().nullish();
const date = z.looseObject({ 'date-parts': z.array(z.array(z.number().nullable())).nullish() }).nullish();
const author = z.looseObject({ given: text, family: text, name: text });
const item = z.looseObject({
  DOI: z.string(),
  URL: text,
  type: text,
  title: z.array(z.string()).nullish(),
  'container-title': z.array(z.string()).nullish(),
  author: z.array(author).nullish(),
  issued: date,
  volume: text,
  issue: text,
  page: text,
  publisher: text,
  abstract: text,
});
const one = z.looseObject({ message: item });
const many = z.looseObject({ message: z.looseObject({ items: z.array(item) }) });

/** One work by DOI (none where it is unknown), or those that fit a query best. */
export async function crossrefWorks(
  { fetcher, base, signal }: Source,
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
      ? [workOf(one.parse(body).message)]
      : many.parse(body).message.items.slice(0, wanted.count).map(workOf);
  } catch (error) {
    throw new Problem(fetchFailed, 'Crossref returned something other than works.', { cause: error });
  }
}

function workOf({
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
}: z.output<typeof item>): Work {
  const [year, month] = issued?.['date-parts']?.[0] ?? [];
  return {
    source: 'crossref',
    type: type ?? 'other',
    title: first(title),
    authors: (author ?? []).map(authorOf).filter(({ family }) => family !== ''),
    ...known({
      year,
      month,
      venue: first(venue),
      volume,
      issue,
      pages,
      publisher,
      abstract: plainText(abstract ?? '').slice(0, 5_000),
    }),
    doi,
    url: url ?? `https://doi.org/${doi}`,
  };
}

function authorOf({ given, family, name }: z.output<typeof author>): Work['authors'][number] {
  return { family: family ?? name ?? '', ...known({ given }) };
}

function first(texts: readonly string[] | null | undefined): string {
  return plainText(texts?.[0] ?? '');
}
