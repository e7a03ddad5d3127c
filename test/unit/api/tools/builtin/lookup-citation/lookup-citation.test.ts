// lookup_citation against answers that are written by hand in the shapes of Crossref's REST API and arXiv's Atom feed.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { z } from 'zod';
import {
  createLookupCitationTool,
  parseArxivId,
  parseDoi,
} from '../../../../../../api/tools/builtin/lookup-citation/lookup-citation.ts';
import { work } from '../../../../../../api/tools/builtin/lookup-citation/works.ts';
import type { ToolDependencies } from '../../../../../../api/tools/tool.ts';
import { Problem } from '../../../../../../lib/problem.ts';
import { runTool } from '../../../../../support/tools/context.ts';
import { page, startWeb, type Web } from '../../../../../support/tools/fetch/web.ts';
import { urlServices } from '../../../../../support/tools/url-services.ts';

const dna = {
  DOI: '10.1038/171737a0',
  URL: 'https://doi.org/10.1038/171737a0',
  type: 'journal-article',
  title: ['Molecular Structure of Nucleic Acids: A Structure for <i>Deoxyribose</i> &amp; Acid'],
  'container-title': ['Nature'],
  author: [
    { given: 'J. D.', family: 'WATSON', sequence: 'first', affiliation: [] },
    { given: 'F. H. C.', family: 'CRICK' },
    { name: 'A 100% Laboratory' },
  ],
  issued: { 'date-parts': [[1953, 4]] },
  volume: '171',
  issue: '4356',
  page: '737-738',
  publisher: 'Springer',
  score: 1,
};
const bare = { DOI: '10.5555/12345678', title: [], issued: { 'date-parts': [[null]] }, author: null };
const feed = (entries: string): string =>
  `<?xml version="1.0" encoding="UTF-8"?><feed xmlns="http://www.w3.org/2005/Atom"><title type="html">ArXiv Query</title><opensearch:totalResults xmlns:opensearch="http://a9.com/-/spec/opensearch/1.1/">1</opensearch:totalResults>${entries}</feed>`;
const attention =
  '<entry><id>http://arxiv.org/abs/1706.03762v7</id><updated>2023-08-02T00:41:18Z</updated><published>2017-06-12T17:57:34Z</published><title>Attention Is All\n  You Need</title><summary> The dominant sequence &lt;b&gt; models &amp; more. </summary><author><name>Ashish Vaswani</name></author><author><name>Ludwig van der Meer</name></author><author><name>Plato</name></author><arxiv:comment xmlns:arxiv="http://arxiv.org/schemas/atom">15 pages</arxiv:comment><link href="http://arxiv.org/abs/1706.03762v7" rel="alternate" type="text/html"/></entry>';
const faulty =
  '<entry><id>http://arxiv.org/api/errors#incorrect_id_format_for_9999.99999</id><title>Error</title><summary>incorrect id format</summary><author><name>arXiv api core</name></author></entry>';
const laughs = `<?xml version="1.0"?><!DOCTYPE f [<!ENTITY a "ha">${'bcdefghij'
  .split('')
  .map((name, index) => `<!ENTITY ${name} "${`&${'abcdefghi'[index] ?? ''};`.repeat(10)}">`)
  .join(
    '',
  )}]><feed xmlns="http://www.w3.org/2005/Atom">${attention.replace('Attention Is All\n  You Need', '&j;')}</feed>`;
const shape = z.object({ citations: z.array(work.extend({ bibtex: z.string() })) });

describe('lookup_citation', () => {
  let web: Web;
  let services: ToolDependencies;
  const look = async (input: Record<string, unknown>): Promise<z.output<typeof shape>['citations']> =>
    shape.parse(
      (await runTool(createLookupCitationTool(services, { crossref: web.url, arxiv: web.url }), input)).result,
    ).citations;
  const fails = async (input: Record<string, unknown>, slug: string, words: RegExp): Promise<void> =>
    assert.rejects(look(input), (error) => {
      assert.ok(error instanceof Problem, String(error));
      assert.equal(error.type.slug, slug, error.message);
      assert.match(error.message, words);
      return true;
    });

  beforeAll(async () => {
    const json = (value: unknown): ReturnType<typeof page> => page('application/json', JSON.stringify(value));
    web = await startWeb({
      '/works/10.1038%2F171737a0': json({ status: 'ok', 'message-type': 'work', message: dna }),
      '/works/10.5555%2F12345678': json({ status: 'ok', message: bare }),
      '/works/10.5555%2Fbroken': page('application/json', '{'),
      '/works/10.5555%2Fbusy': (_request, response) => {
        response.writeHead(503).end();
      },
      '/works': json({ message: { items: [dna, bare] } }),
      '/api/query': (request, response) => {
        const id = new URL(request.url ?? '', web.url).searchParams.get('id_list');
        const answers: Record<string, string> = {
          '1706.03762': feed(attention),
          '9999.99999': feed(faulty),
          '0000.00000': feed(''),
          '1111.11111': laughs,
          '2222.22222': 'no feed',
        };
        response.writeHead(200, { 'content-type': 'application/atom+xml' }).end(answers[id ?? '']);
      },
    });
    services = urlServices([web.host]);
  });
  afterAll(async () => {
    await web.close();
    await services.workers.close();
  });

  it('reads a work from Crossref and writes its BibTeX', async () => {
    const [found] = await look({ doi: 'https://doi.org/10.1038/171737a0' });
    assert.ok(found);
    const { bibtex, ...rest } = found;
    assert.deepEqual(rest, {
      source: 'crossref',
      type: 'journal-article',
      title: 'Molecular Structure of Nucleic Acids: A Structure for Deoxyribose & Acid',
      authors: [
        { given: 'J. D.', family: 'WATSON' },
        { given: 'F. H. C.', family: 'CRICK' },
        { family: 'A 100% Laboratory' },
      ],
      year: 1953,
      month: 4,
      venue: 'Nature',
      volume: '171',
      issue: '4356',
      pages: '737-738',
      publisher: 'Springer',
      doi: '10.1038/171737a0',
      url: 'https://doi.org/10.1038/171737a0',
    });
    assert.match(bibtex, /^@article\{/);
    for (const line of [
      'journal = {Nature}',
      'year = {1953}',
      'volume = {171}',
      'pages = {737--738}',
      'doi = {10.1038/171737a0}',
      'WATSON, J. D. and CRICK, F. H. C.',
    ])
      assert.ok(bibtex.includes(line), `${line}\n${bibtex}`);
    assert.ok(bibtex.includes('100\\%') && bibtex.includes('\\&'), bibtex);
  });

  it('reads a work with almost no fields', async () => {
    const [found] = await look({ doi: '10.5555/12345678' });
    assert.deepEqual([found?.title, found?.authors, found?.year], ['', [], undefined]);
  });

  it('reads a work from arXiv by id, URL or DOI', async () => {
    for (const input of [
      { arxiv: '1706.03762' },
      { arxiv: 'https://arxiv.org/pdf/1706.03762.pdf' },
      { doi: '10.48550/arXiv.1706.03762' },
    ]) {
      const [found] = await look(input);
      assert.ok(found);
      assert.deepEqual(
        [found.title, found.year, found.month, found.arxiv, found.doi],
        ['Attention Is All You Need', 2017, 6, '1706.03762v7', '10.48550/arXiv.1706.03762'],
      );
      assert.deepEqual(found.authors, [
        { given: 'Ashish', family: 'Vaswani' },
        { given: 'Ludwig', family: 'van der Meer' },
        { family: 'Plato' },
      ]);
      assert.match(found.bibtex, /Vaswani, Ashish and \{?van der Meer\}?, Ludwig/);
    }
  });

  it('finds works by a text query', async () => {
    assert.equal((await look({ query: 'structure & acids', count: 1 })).length, 1);
    assert.equal(web.asked.at(-1), 'GET /works?query.bibliographic=structure+%26+acids&rows=1');
  });

  it('reports unknown works, invalid input and broken sources', async () => {
    await fails({ doi: '10.5555/none' }, 'unprocessable', /Crossref has no work with the id 10\.5555\/none/);
    await fails({ arxiv: '9999.99999' }, 'unprocessable', /arXiv has no work/);
    await fails({ arxiv: '0000.00000' }, 'unprocessable', /arXiv has no work/);
    await fails({ arxiv: '2222.22222' }, 'fetch-failed', /something other than a feed/);
    await fails({ doi: '10.5555/broken' }, 'fetch-failed', /something other than works/);
    await fails({ doi: '10.5555/busy' }, 'fetch-failed', /status 503/);
    await fails({ doi: 'nonsense' }, 'invalid-request', /not a DOI/);
    await fails({ arxiv: '../../x' }, 'invalid-request', /not an arXiv id/);
    await fails({}, 'invalid-request', /"doi" is missing, and so are arxiv and query/);
    await fails({ doi: '10.1/x', query: 'y' }, 'invalid-request', /"query" cannot be combined with doi/);
  });

  it('does not expand the entities of a document', async () => {
    const found = await look({ arxiv: '1111.11111' }).catch((error: unknown) => error);
    assert.ok(found instanceof Problem || JSON.stringify(found).length < 10_000);
  });

  it('parses identifiers in the forms that people write', () => {
    for (const text of [
      '10.1038/171737a0',
      'doi:10.1038/171737a0',
      'DOI: 10.1038/171737a0',
      'http://dx.doi.org/10.1038/171737a0',
    ])
      assert.equal(parseDoi(text), '10.1038/171737a0');
    for (const text of ['', '10.1038', '10.1038/', '11.1038/x', '10.1038/a b', '10.1038/a?b'])
      assert.equal(parseDoi(text), undefined);
    for (const text of [
      'math/0309136',
      'arXiv:math/0309136',
      'https://arxiv.org/abs/math/0309136',
      'math/0309136v2',
      'math.GT/0309136',
    ])
      assert.match(parseArxivId(text) ?? '', /^math(?:\.GT)?\/0309136/);
  });
});
