// web_search against a scripted SearXNG: what it makes of each kind of answer.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { webSearchTool } from '../../../../../../api/tools/builtin/web-search/web-search.ts';
import type { ToolDependencies } from '../../../../../../api/tools/engine/tool-dependencies.ts';
import { Problem } from '../../../../../../lib/problem.ts';
import { runTool } from '../../../../../support/tools/context.ts';
import { page, startWeb, type Web } from '../../../../../support/tools/fetch/web.ts';
import { urlServices } from '../../../../../support/tools/url-services.ts';

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

describe('web_search', () => {
  let searxng: Web;
  let services: ToolDependencies;
  const search = async (query: string, more: Record<string, unknown> = {}): ReturnType<typeof runTool> =>
    runTool(webSearchTool(services), { query, ...more });
  const fails = async (query: string, slug: string, words: RegExp, from: ToolDependencies = services): Promise<void> =>
    assert.rejects(runTool(webSearchTool(from), { query }), (error) => {
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
        else if (query === 'broken') response.writeHead(500).end();
        else
          response
            .writeHead(200, { 'content-type': 'application/json' })
            .end(query === 'html' ? '<html>' : JSON.stringify(answers[query]));
      },
    });
    services = urlServices([], { searxng: searxng.url });
  });
  afterAll(async () => {
    await searxng.close();
    await services.workers.close();
  });

  it('answers with each page once, and says who failed [spec tools.web-search]', async () => {
    const { result } = await search('usual', { count: 2, language: 'en', time_range: 'week', page: 2 });
    assert.deepEqual(result, {
      query: 'usual',
      results: [
        {
          title: 'About https://a.example/',
          url: 'https://a.example/',
          snippet: 'some words',
          engines: ['one', 'two'],
        },
        {
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

  it('distinguishes nothing found from nobody asked', async () => {
    assert.deepEqual((await search('nothing')).result['results'], []);
    await fails('failing', 'tool-failed', /one \(timeout\), two \(access denied\)/);
  });

  it('says what is wrong with SearXNG', async () => {
    await fails('forbidden', 'tool-failed', /search\.formats/);
    await fails('broken', 'tool-failed', /status 500/);
    await fails('html', 'tool-failed', /something other than results/);
    await fails('x', 'tool-failed', /cannot be reached/, urlServices([], { searxng: 'http://127.0.0.1:1' }));
  });

  it('says which value switches it on', async () =>
    fails('x', 'service-off', /tools\.searxng\.enabled/, urlServices([])));

  it('takes no answer without end', async () => {
    const endless = await startWeb({ '/search': page('application/json', Buffer.alloc(5_000_000, ' ')) });
    try {
      await fails('x', 'tool-failed', /more than/, urlServices([], { searxng: endless.url }));
    } finally {
      await endless.close();
    }
  });
});
