// The tool lookup_citation: finds a scholarly work by DOI, arXiv id or text, with its BibTeX entry.
import { z } from 'zod';
import type { CSL, CSLType } from '@citation-js/core';
import { Problem } from '../../../../lib/problem.ts';
import { createValidationProblem } from '../../../http/index.ts';
import { requireOne } from '../../inputs/fields.ts';
import { fetchArxivWorks, fetchCrossrefWorks, work, type CitationSource, type Work, omitEmpty } from './works.ts';
import { unprocessable } from '../../problems.ts';
import type { ToolDependencies } from '../../tool.ts';
import { defineTool, type Tool } from '../../tool.ts';

const input = z.strictObject({
  doi: z.string().trim().min(1).max(300).optional().describe('DOI, such as 10.1038/171737a0, or its doi.org URL.'),
  arxiv: z
    .string()
    .trim()
    .min(1)
    .max(100)
    .optional()
    .describe('arXiv id, such as 1706.03762 or math/0309136, or its arxiv.org URL.'),
  query: z.string().trim().min(1).max(500).optional().describe('Title, authors or other words, when no id is known.'),
  count: z.int().min(1).max(10).default(5).describe('Maximum number of works for a query, 1 to 10. Default: 5.'),
});

const output = z.object({
  citations: z
    .array(work.extend({ bibtex: z.string().describe('BibTeX entry.') }))
    .describe('Works, best match first; exactly one for doi or arxiv.'),
});

/** Base URLs of the APIs that are searched. */
export interface CitationSourceUrls {
  readonly crossref: string;
  readonly arxiv: string;
}

const publicSources: CitationSourceUrls = { crossref: 'https://api.crossref.org', arxiv: 'https://export.arxiv.org' };

export function createLookupCitationTool(
  { fetcher }: ToolDependencies,
  sources: CitationSourceUrls = publicSources,
): Tool {
  return defineTool({
    name: 'lookup_citation',
    title: 'Look up a citation',
    description:
      'Looks up scholarly works and returns authors, year, venue, identifiers, URL, abstract where available, and BibTeX. Send exactly one of doi, arxiv and query. Asks Crossref for DOIs and queries, and arXiv for arXiv ids and arXiv DOIs. A query returns up to 10 works.',
    input,
    aliases: { q: 'query', title: 'query', arxiv_id: 'arxiv', limit: 'count' },
    output,
    example: { doi: '10.1038/171737a0' },
    price: '0.0002',
    openWorld: true,
    run: async ({ doi, arxiv, query, count }, { signal }) => {
      requireOne(['doi', 'arxiv', 'query'], { doi, arxiv, query });
      const crossref: CitationSource = { fetcher, base: sources.crossref, signal };
      const archive: CitationSource = { fetcher, base: sources.arxiv, signal };
      const works = await findWorks(crossref, archive, { doi, arxiv, query, count });
      const citations = await Promise.all(works.map(async (one) => ({ ...one, bibtex: await formatBibtex(one) })));
      return { result: { citations } };
    },
  });
}

interface CitationQuery {
  readonly doi: string | undefined;
  readonly arxiv: string | undefined;
  readonly query: string | undefined;
  readonly count: number;
}

async function findWorks(
  crossref: CitationSource,
  archive: CitationSource,
  { doi, arxiv, query, count }: CitationQuery,
): Promise<Work[]> {
  if (query !== undefined) return fetchCrossrefWorks(crossref, { query, count });
  const id = doi === undefined ? requireArxivId(arxiv ?? '') : requireDoi(doi);
  // arXiv registers its DOIs with another agency; Crossref does not know them.
  const archived = doi === undefined ? id : parseArxivId(id);
  const works =
    archived === undefined ? await fetchCrossrefWorks(crossref, { doi: id }) : await fetchArxivWorks(archive, archived);
  if (works.length === 0)
    throw new Problem(unprocessable, `${archived === undefined ? 'Crossref' : 'arXiv'} has no work with the id ${id}.`);
  return works;
}

function requireDoi(text: string): string {
  const doi = parseDoi(text);
  if (doi === undefined)
    throw createValidationProblem([
      { in: 'query', field: 'doi', message: 'is not a DOI', fix: 'Send a DOI such as 10.1038/171737a0.' },
    ]);
  return doi;
}

function requireArxivId(text: string): string {
  const id = parseArxivId(text);
  if (id === undefined)
    throw createValidationProblem([
      {
        in: 'query',
        field: 'arxiv',
        message: 'is not an arXiv id',
        fix: 'Send an id such as 1706.03762 or math/0309136.',
      },
    ]);
  return id;
}

/** Parses a DOI, bare or as a URL. */
export function parseDoi(text: string): string | undefined {
  const bare = text.trim().replace(/^(?:https?:\/\/(?:dx\.)?doi\.org\/|doi:\s*)/i, '');
  return /^10\.\d{4,9}\/[^\s?#]+$/.exec(bare)?.[0];
}

/** Parses an arXiv id of either form, bare or as a URL. */
export function parseArxivId(text: string): string | undefined {
  const bare = text
    .trim()
    .replace(/^(?:https?:\/\/(?:www\.|export\.)?arxiv\.org\/(?:abs|pdf|html)\/|arxiv:\s*|10\.48550\/arxiv\.)/i, '')
    .replace(/\.pdf$/i, '');
  return /^(?:\d{4}\.\d{4,5}|[a-z-]+(?:\.[A-Z]{2})?\/\d{7})(?:v\d{1,3})?$/.exec(bare)?.[0];
}

/** CSL types by Crossref type. */
const cslTypes: Readonly<Record<string, CSLType>> = {
  'journal-article': 'article-journal',
  'proceedings-article': 'paper-conference',
  'book-chapter': 'chapter',
  'book-section': 'chapter',
  'book-part': 'chapter',
  book: 'book',
  monograph: 'book',
  'edited-book': 'book',
  'reference-book': 'book',
  dissertation: 'thesis',
  report: 'report',
  dataset: 'dataset',
  'posted-content': 'article',
  preprint: 'article',
  standard: 'standard',
};

/**
 * The library knows the rules for names, for capitals and for characters that TeX would read as commands. It is imported
 * when it is first needed, because most processes cite nothing.
 */
async function formatBibtex({
  doi,
  url,
  type,
  title,
  authors,
  venue,
  volume,
  issue,
  pages,
  publisher,
  arxiv,
  ...date
}: Work): Promise<string> {
  const [{ plugins }] = await Promise.all([import('@citation-js/core'), import('@citation-js/plugin-bibtex')]);
  const data: CSL = {
    id: doi ?? url,
    type: cslTypes[type] ?? 'document',
    title,
    author: authors.map(({ family, given }) =>
      given === undefined ? { family: escapeTex(family) } : { family, given },
    ),
    ...toIssued(date),
    ...omitEmpty({
      'container-title': venue,
      volume,
      issue,
      page: pages,
      publisher,
      DOI: doi,
      note: arxiv === undefined ? undefined : `arXiv:${arxiv}`,
    }),
    URL: url,
  };
  return String(plugins.output.format('bibtex', [data])).trim();
}

/** Escapes a name without a given part, which the library writes unchanged. */
function escapeTex(name: string): string {
  return name.replace(/[\\{}^~]/g, ' ').replace(/[&%#_$]/g, '\\$&');
}

function toIssued({ year, month }: Pick<Work, 'year' | 'month'>): Pick<CSL, 'issued'> {
  if (year === undefined) return {};
  return { issued: { 'date-parts': [month === undefined ? [year] : [year, month]] } };
}
