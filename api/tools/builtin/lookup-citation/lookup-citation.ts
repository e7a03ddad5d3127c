// The tool lookup_citation: finds a scholarly work by DOI, arXiv id or text, with its BibTeX entry.
import { z } from 'zod';
import { Problem } from '../../../../lib/problem.ts';
import { createValidationProblem } from '../../../http/index.ts';
import { requireOne } from '../../inputs/field-rules.ts';
import { arxivWorks } from './arxiv.ts';
import { bibtex } from './bibtex.ts';
import { crossrefWorks } from './crossref.ts';
import { arxivIdIn, doiIn } from './identifiers.ts';
import { work, type Source, type Work } from './work.ts';
import { unprocessable } from '../../problems.ts';
import type { ToolDependencies } from '../../engine/tool-dependencies.ts';
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

/** Where the works are looked up. */
export interface CitationSources {
  readonly crossref: string;
  readonly arxiv: string;
}

const publicSources: CitationSources = { crossref: 'https://api.crossref.org', arxiv: 'https://export.arxiv.org' };

export function lookupCitationTool({ fetcher }: ToolDependencies, sources: CitationSources = publicSources): Tool {
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
      const crossref: Source = { fetcher, base: sources.crossref, signal };
      const archive: Source = { fetcher, base: sources.arxiv, signal };
      const works = await find(crossref, archive, { doi, arxiv, query, count });
      return { result: { citations: works.map((one) => ({ ...one, bibtex: bibtex(one) })) } };
    },
  });
}

interface CitationQuery {
  readonly doi: string | undefined;
  readonly arxiv: string | undefined;
  readonly query: string | undefined;
  readonly count: number;
}

async function find(crossref: Source, archive: Source, { doi, arxiv, query, count }: CitationQuery): Promise<Work[]> {
  if (query !== undefined) return crossrefWorks(crossref, { query, count });
  const id = doi === undefined ? arxivId(arxiv ?? '') : doiOf(doi);
  // arXiv registers its DOIs elsewhere; Crossref does not know them.
  const archived = doi === undefined ? id : arxivIdIn(id);
  const works =
    archived === undefined ? await crossrefWorks(crossref, { doi: id }) : await arxivWorks(archive, archived);
  if (works.length === 0)
    throw new Problem(unprocessable, `${archived === undefined ? 'Crossref' : 'arXiv'} has no work with the id ${id}.`);
  return works;
}

function doiOf(text: string): string {
  const doi = doiIn(text);
  if (doi === undefined)
    throw createValidationProblem([
      { in: 'query', field: 'doi', message: 'is not a DOI', fix: 'Send a DOI such as 10.1038/171737a0.' },
    ]);
  return doi;
}

function arxivId(text: string): string {
  const id = arxivIdIn(text);
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
