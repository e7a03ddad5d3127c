// The arXiv API client; arXiv answers with an Atom feed.
import { XMLParser } from 'fast-xml-parser';
import { z } from 'zod';
import { Problem } from '../../../../lib/problem.ts';
import { fetchFailed } from '../../fetch/problems.ts';
import { known, plainText, type Source, type Work } from './work.ts';

const entry = z.looseObject({
  id: z.string(),
  title: z.string(),
  summary: z.string().optional(),
  published: z.string().optional(),
  author: z.array(z.looseObject({ name: z.string() })).default([]),
  doi: z.string().optional(),
  journal_ref: z.string().optional(),
});
const feed = z.looseObject({ feed: z.looseObject({ entry: z.array(entry).default([]) }) });

/** Entities stay as they are written: those that a document declares are only ever used to make it grow. */
const parser = new XMLParser({
  removeNSPrefix: true,
  parseTagValue: false,
  processEntities: false,
  isArray: (name) => name === 'entry' || name === 'author',
  textNodeName: 'text',
  ignoreAttributes: true,
});

/** The work with this id; none where it is unknown. */
export async function arxivWorks({ fetcher, base, signal }: Source, id: string): Promise<Work[]> {
  const answer = await fetcher.fetch({
    url: `${base}/api/query?${new URLSearchParams({ id_list: id, max_results: '1' }).toString()}`,
    headers: { accept: 'application/atom+xml' },
    maxBytes: 2_000_000,
    timeoutMs: 25_000,
    signal,
  });
  // What is not an id to it is a bad request.
  if (answer.status === 400) return [];
  if (answer.status !== 200)
    throw new Problem(fetchFailed, `arXiv returned status ${answer.status}.`, {
      members: { target_status: answer.status },
    });
  try {
    const { entry: entries } = feed.parse(parser.parse(Buffer.from(answer.bytes))).feed;
    // An unknown id is answered with an entry that is an error, or one without authors.
    return entries.filter((one) => /arxiv\.org\/abs\//.test(one.id) && one.author.length > 0).map(workOf);
  } catch (error) {
    throw new Problem(fetchFailed, 'arXiv returned something other than a feed.', { cause: error });
  }
}

function workOf({ id, title, summary, published, author, doi, journal_ref: venue }: z.output<typeof entry>): Work {
  const arxiv = id.replace(/^.*\/abs\//, '');
  const date = published === undefined ? undefined : new Date(published);
  return {
    source: 'arxiv',
    type: 'preprint',
    title: plainText(title),
    authors: author.map(({ name }) => nameOf(plainText(name))),
    ...(date === undefined || Number.isNaN(date.getTime())
      ? {}
      : { year: date.getUTCFullYear(), month: date.getUTCMonth() + 1 }),
    ...known({ venue: plainText(venue ?? ''), abstract: plainText(summary ?? '').slice(0, 5_000) }),
    doi: doi ?? `10.48550/arXiv.${arxiv.replace(/v\d+$/, '')}`,
    arxiv,
    url: `https://arxiv.org/abs/${arxiv}`,
  };
}

/** The feed has whole names; the last word is taken as the family's, with what belongs to it. */
function nameOf(name: string): { given?: string; family: string } {
  const { given, family } =
    /^(?<given>.+?)\s+(?<family>(?:(?:van|von|der|den|de|del|della|di|da|la|le|ten|ter)\s+)*\S+)$/i.exec(name)
      ?.groups ?? {};
  return family === undefined ? { family: name } : { family, ...known({ given }) };
}
