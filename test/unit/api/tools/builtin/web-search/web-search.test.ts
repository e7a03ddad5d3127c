// web_search against a scripted SearXNG: what it makes of each kind of answer.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, it, test } from 'vitest';
import { createWebSearchTool, toSearchLanguage } from '../../../../../../api/tools/builtin/web-search/web-search.ts';
import type { ToolDependencies } from '../../../../../../api/tools/tool.ts';
import { Problem } from '../../../../../../lib/problem.ts';
import { runTool } from '../../../../../support/tools/context.ts';
import { page, startWeb, type Web } from '../../../../../support/tools/fetch/web.ts';
import { urlServices } from '../../../../../support/tools/url-services.ts';
import { readPart } from '../../../../../../api/http/index.ts';
import { createServices } from '../../../../../support/tools/call.ts';

const hit = (url: string, more: Record<string, unknown> = {}): Record<string, unknown> => ({
  url,
  title: `About\n ${url}`,
  content: '  some   words ',
  engine: 'one',
  engines: ['one', 'two'],
  score: 2.5,
  category: 'general',
  parsed_url: ['https', 'x', '/', '', '', ''],
  template: 'default.html',
  publishedDate: null,
  ...more,
});
const answers: Readonly<Record<string, unknown>> = {
  usual: {
    query: 'usual',
    number_of_results: 0,
    answers: [],
    corrections: [],
    infoboxes: [],
    suggestions: ['usually'],
    unresponsive_engines: [
      ['three', 'timeout'],
      ['four', 'Suspended: CAPTCHA', 1],
    ],
    results: [
      hit('https://a.example/'),
      hit('https://a.example/'),
      hit('javascript:alert(1)'),
      hit('https://b.example/', { content: null, engines: undefined, publishedDate: '2026-01-02T00:00:00' }),
      hit('https://c.example/'),
    ],
  },
  nothing: { query: 'nothing', results: [], unresponsive_engines: [], suggestions: [] },
  failing: {
    query: 'failing',
    results: [],
    unresponsive_engines: [
      ['one', 'timeout'],
      ['two', 'access denied'],
    ],
  },
};

/** As SearXNG 2026.8 writes them: of its Wikipedia engine, of answer types, and of an engine that hands on markup. */
const special = {
  query: 'special',
  results: [
    hit('https://m.example/', {
      title: 'The <b>bold</b> &amp;amp; the \ud83d\ude00\ud83d',
      content: `Use the &lt;div&gt; element\u0007 <em class="x">now</em><br>${'\u{1F600}'.repeat(600)}`,
    }),
    { url: 'https://odd.example/', title: 7 },
    hit('https://s.example/a b'),
  ],
  answers: [
    {
      url: 'https://answers.example/q',
      engine: 'ddg',
      template: 'answer/legacy.html',
      answer: '42&nbsp;km',
      parsed_url: null,
    },
    { url: null, engine: 'answerer: avg', template: 'answer/legacy.html', answer: '[en] avg(1, 2, 3) = 2 ' },
    {
      url: 'https://dict.example/hello',
      engine: 'dict',
      translations: [{ text: 'Hallo', examples: [] }, { text: 'Servus' }],
    },
    'of an older version',
  ],
  infoboxes: [
    {
      infobox: 'Ada <i>Lovelace</i>',
      id: 'https://en.wikipedia.org/wiki/Ada_Lovelace',
      content: 'English mathematician',
      urls: [{ title: 'Wikipedia', url: 'https://en.wikipedia.org/wiki/Ada_Lovelace' }],
      attributes: [
        { label: 'Born:', value: '10 December 1815' },
        { label: 'Picture', image: { src: 'x' } },
      ],
      engine: 'wikipedia',
      engines: ['wikipedia', 'wikidata'],
      url: null,
    },
    { infobox: 'No address', id: 'javascript:alert(1)', content: null, urls: [], attributes: [], engine: 'one' },
  ],
  unresponsive_engines: [],
  suggestions: ['<b>ada</b>'],
};

describe('web_search', () => {
  let searxng: Web;
  let services: ToolDependencies;
  const search = async (query: string, more: Record<string, unknown> = {}): ReturnType<typeof runTool> =>
    runTool(createWebSearchTool(services), { query, ...more });
  const fails = async (query: string, slug: string, words: RegExp, from: ToolDependencies = services): Promise<void> =>
    assert.rejects(runTool(createWebSearchTool(from), { query }), (error) => {
      assert.ok(error instanceof Problem, String(error));
      assert.equal(error.type.slug, slug);
      assert.match(error.message, words);
      return true;
    });

  beforeAll(async () => {
    searxng = await startWeb({
      '/search': (request, response) => {
        const query = new URL(request.url ?? '', 'http://x').searchParams.get('q') ?? '';
        if (query === 'forbidden') response.writeHead(403).end('<h1>Forbidden</h1>');
        else if (query === 'strict') response.writeHead(400).end('{"error": "Invalid value x for parameter y"}');
        else if (query === 'broken') response.writeHead(500).end();
        else
          response
            .writeHead(200, {
              'content-type': 'application/json',
              'server-timing': `total;dur=62, render;dur=0${query.startsWith('honest') ? ', total_0_wiki pages;dur=41.5, load_0_wiki pages;dur=40' : ''}`,
            })
            .end(
              query === 'html'
                ? '<html>'
                : JSON.stringify(query === 'special' ? special : (answers[query] ?? answers['failing'])),
            );
      },
    });
    services = urlServices([], { searxng: searxng.url });
  });
  afterAll(async () => {
    await searxng.close();
    await services.workers.close();
  });

  it('returns each page once and names the engines that failed [spec tools.web-search]', async () => {
    const { result } = await search('usual', { count: 2, language: 'en', time_range: 'week', page: 2 });
    assert.deepEqual(result, {
      query: 'usual',
      results: [
        {
          kind: 'page',
          title: 'About https://a.example/',
          url: 'https://a.example/',
          snippet: 'some words',
          engines: ['one', 'two'],
        },
        {
          kind: 'page',
          title: 'About https://b.example/',
          url: 'https://b.example/',
          snippet: '',
          engines: ['one'],
          published: '2026-01-02T00:00:00',
        },
      ],
      failed_engines: [
        { engine: 'three', reason: 'timeout' },
        { engine: 'four', reason: 'Suspended: CAPTCHA' },
      ],
      suggestions: ['usually'],
    });
    assert.equal(
      searxng.asked.at(-1),
      'GET /search?q=usual&format=json&pageno=2&language=en&categories=general&safesearch=1&time_range=week',
    );
  });

  it('distinguishes an empty result from engines that all failed', async () => {
    assert.deepEqual((await search('nothing')).result['results'], []);
    await fails('failing', 'tool-failed', /one \(timeout\), two \(access denied\)/);
  });

  it('returns no results if some engine found none, and names the engines that failed', async () => {
    const { result } = await search('honest');
    assert.deepEqual(result['results'], []);
    assert.deepEqual(result['failed_engines'], [
      { engine: 'one', reason: 'timeout' },
      { engine: 'two', reason: 'access denied' },
    ]);
  });

  it('returns answers and infoboxes as results, and all text as plain text', async () => {
    const { result } = await search('special');
    const [first, ...rest] = result['results'] as Record<string, unknown>[];
    assert.deepEqual(first, {
      kind: 'answer',
      title: 'ddg',
      url: 'https://answers.example/q',
      snippet: '42 km',
      engines: ['ddg'],
    });
    assert.deepEqual(rest.slice(0, 4), [
      { kind: 'answer', title: 'answerer: avg', snippet: '[en] avg(1, 2, 3) = 2', engines: ['answerer: avg'] },
      { kind: 'answer', title: 'dict', url: 'https://dict.example/hello', snippet: 'Hallo; Servus', engines: ['dict'] },
      {
        kind: 'infobox',
        title: 'Ada Lovelace',
        url: 'https://en.wikipedia.org/wiki/Ada_Lovelace',
        snippet: 'English mathematician Born: 10 December 1815',
        engines: ['wikipedia', 'wikidata'],
      },
      { kind: 'infobox', title: 'No address', snippet: '', engines: ['one'] },
    ]);
    const [marked = {}, spaced = {}] = rest.slice(4);
    assert.equal(marked['title'], 'The bold & the \u{1F600}');
    assert.match(String(marked['snippet']), /^Use the <div> element now \u{1F600}+$/u);
    assert.ok(String(marked['snippet']).length <= 1_000 && String(marked['snippet']).length > 980);
    assert.equal(spaced['url'], 'https://s.example/a%20b');
    assert.equal(rest.length, 6);
    assert.deepEqual(result['suggestions'], ['ada']);
  });

  it('explains failures of SearXNG', async () => {
    await fails('forbidden', 'tool-failed', /search\.formats/);
    await fails('broken', 'tool-failed', /status 500/);
    await fails('strict', 'unprocessable', /Invalid value x for parameter y/);
    await fails('html', 'tool-failed', /something other than results/);
    await fails('x', 'tool-failed', /cannot be reached/, urlServices([], { searxng: 'http://127.0.0.1:1' }));
  });

  it('names the setting that enables it', async () =>
    fails('x', 'service-off', /tools\.searxng\.enabled/, urlServices([])));

  it('limits the size of a response', async () => {
    const endless = await startWeb({ '/search': page('application/json', Buffer.alloc(5_000_000, ' ')) });
    try {
      await fails('x', 'tool-failed', /more than/, urlServices([], { searxng: endless.url }));
    } finally {
      await endless.close();
    }
  });
});

// Queries and languages as SearXNG takes them; what it would not search is refused by name.

const { input } = createWebSearchTool(createServices({}));
const read = (fields: Record<string, unknown>): Record<string, unknown> => readPart('query', input, fields);

for (const [given, code] of [
  ['all', 'all'],
  ['ALL', 'all'],
  ['en', 'en'],
  ['pt-BR', 'pt-BR'],
  ['pt_br', 'pt-BR'],
  ['fil-PH', 'fil-PH'],
  ['zh-Hant', 'zh-TW'],
  ['zh-hans', 'zh-CN'],
  ['zh-Hant-HK', 'zh-HK'],
  ['zh-Hant-TW', 'zh-TW'],
  ['zh', 'zh'],
  ['de-Latn', 'de'],
  ['sr-Cyrl', 'sr'],
  ['German', 'de'],
] as const)
  test(`maps language ${given} to ${code}`, () => {
    assert.equal(read({ query: 'x', language: given })['language'], code);
    // SearXNG's own rule (webutils.py, VALID_LANGUAGE_CODE).
    assert.match(code, /^[a-z]{2,3}(-[a-zA-Z]{2})?$/);
  });

for (const language of ['sr-Latn', 'es-419', 'xx', 'zh-Latn', 'zh-Hant-CN', 'nonsense', 'en-US-posix-x-y', '!!'])
  test(`rejects language ${language} by name`, () => {
    assert.throws(
      () => read({ query: 'x', language }),
      (error) => {
        assert.ok(error instanceof Problem, String(error));
        assert.equal(error.errors[0]?.field, 'language');
        assert.match(error.errors[0].fix, /zh-TW/);
        return true;
      },
    );
    assert.equal(toSearchLanguage(language), undefined);
  });

for (const query of ['!!g cats', 'cats !!', '!! cats', 'cats\t!!wikipedia'])
  test(`rejects ${JSON.stringify(query)}`, () => {
    assert.throws(
      () => read({ query }),
      (error) => {
        assert.ok(error instanceof Problem, String(error));
        assert.match(error.message, /"query" contains !!\w*, which redirects/);
        assert.match(error.errors[0]?.fix ?? '', /!wikipedia/);
        return true;
      },
    );
  });

for (const query of ['!wikipedia cats', 'wow!! really', '"!!" in Kotlin', 'a!!b', ':de katzen'])
  test(`accepts ${JSON.stringify(query)}`, () => {
    assert.equal(read({ query })['query'], query);
  });

test('defaults the language to all', () => {
  assert.equal(read({ query: 'x' })['language'], 'all');
});
