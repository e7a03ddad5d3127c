// fetch_page makes text of what the web sends: the article of a page, its links, its encoding; PDF, JSON and text.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, it } from 'vitest';
import type { z } from 'zod';
import { createFetchPageTool, pageOutput } from '../../../api/tools/builtin/fetch-page/fetch-page.ts';
import type { ToolDependencies } from '../../../api/tools/tool.ts';
import type { Tool } from '../../../api/tools/tool.ts';
import { Problem } from '../../../lib/problem.ts';
import { runTool } from '../../support/tools/context.ts';
import { countConnections, type Listener } from '../../support/tools/fetch/listener.ts';
import { page, startWeb, type Web } from '../../support/tools/fetch/web.ts';
import { pdf } from '../../support/tools/pdf.ts';
import { urlServices } from '../../support/tools/url-services.ts';

const paragraph =
  'A mooring holds a vessel where it is, against wind and tide, by lines to something that does not move. ';

describe('fetch_page', () => {
  let web: Web;
  let listener: Listener;
  let services: ToolDependencies;
  let tool: Tool;
  const read = async (path: string, more: Record<string, unknown> = {}): Promise<z.output<typeof pageOutput>> =>
    pageOutput.parse((await runTool(tool, { url: `${web.url}${path}`, ...more })).result);

  beforeAll(async () => {
    listener = await countConnections();
    const article = `<!doctype html><html lang="en"><head><title>Moorings — The Harbour</title><meta name="author" content="Ada Quay"><meta property="og:site_name" content="The Harbour"><meta name="description" content="On moorings."><script>document.title = 'changed'; fetch('http://127.0.0.1:${listener.port}/')</script></head>
      <body><nav><a href="/home">Home</a><a href="/shop">Shop</a></nav><article><h1>Moorings</h1><p>${paragraph.repeat(5)}</p><h2>Lines</h2><p>See <a href="lines.html">about lines</a>, <a href="https://other.example/x?a=1#top">elsewhere</a>, <a href="javascript:alert(1)">not this</a> and <a href="#lines">above</a>. ${paragraph.repeat(3)}</p><pre><code class="language-sh">tie --bowline</code></pre><table><thead><tr><th>Line</th><th>Use</th></tr></thead><tbody><tr><td>Spring</td><td>fore and aft</td></tr></tbody></table><img src="http://127.0.0.1:${listener.port}/pixel.png" alt="A quay"><iframe src="http://127.0.0.1:${listener.port}/"></iframe></article><footer>All rights reserved.</footer></body></html>`;
    const body = (text: string): string =>
      `<html><head><meta http-equiv="Content-Type" content="text/html; charset=windows-1251"><title>${text}</title></head><body><article><p>${text} ${text} ${text}</p></article></body></html>`;
    const cyrillic = Buffer.from([0xcf, 0xf0, 0xe8, 0xf7, 0xe0, 0xeb]);
    web = await startWeb({
      '/docs/moorings.html': page('text/html', article),
      '/moved': (_request, response) => {
        response.writeHead(301, { location: '/docs/moorings.html' }).end();
      },
      '/bodiless': page(
        'text/html',
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Moorings</title><h1>Moorings</h1><h2>Lines</h2><p>A line leads to the quay.</html>',
      ),
      '/based': page(
        'text/html',
        `<html><head><base href="https://based.example/dir/"><title>x</title></head><body><article><p>${paragraph}<a href="page">link</a></p></article></body></html>`,
      ),
      '/1251': page(
        'text/html',
        Buffer.concat([
          Buffer.from(body('').replace('<title></title>', '<title>')),
          cyrillic,
          Buffer.from('</title><body><article><p>'),
          cyrillic,
          Buffer.from(`</p><p>${paragraph}</p></article></body></html>`),
        ]),
      ),
      '/shift-jis': page('text/plain; charset=Shift_JIS', Buffer.from([0x8d, 0x60])),
      '/utf-16': page('text/plain', Buffer.from('\ufeffquay', 'utf16le')),
      '/latin1': page('text/plain', Buffer.from([0x71, 0x75, 0xe4, 0x69])),
      '/unknown-charset': page('text/plain; charset=nonsense', 'Kaí'),
      '/json': page('application/json', '{"a":[1,2]}'),
      '/ld': page('application/ld+json; charset=utf-8', '{broken'),
      '/text': page('text/plain', 'See https://a.example/x, and (https://b.example/y).'),
      '/pdf': page(
        'application/pdf',
        pdf(['One page of text', 'Another one'], { trailer: '/Info << /Title (Knots) >>' }),
      ),
      '/octets.pdf': page('application/octet-stream', pdf(['As octets'])),
      '/octets.html': page(
        'application/octet-stream',
        '<!DOCTYPE html><html><head><title>Octets</title></head><body><p>As octets, which is a page.</p></body></html>',
      ),
      '/octets': page('application/octet-stream', Buffer.from([0, 1, 2, 3])),
      '/image': page('image/png', Buffer.from('89504e47', 'hex')),
      '/empty': page('text/html', ''),
      '/script-only': page(
        'text/html',
        '<html><body><div id="root"></div><script src="/app.js"></script></body></html>',
      ),
      '/deep': page('text/html', '<div>'.repeat(200_000)),
      '/deep-p': page('text/html', '<p><li>'.repeat(100_000)),
      '/wide': page(
        'text/html',
        `<html><body><article>${'<p>word word <a href="/x">y</a></p>'.repeat(5_000)}</article></body></html>`,
      ),
      '/attributes': page(
        'text/html',
        `<html><body><article ${'a="b" '.repeat(200_000)}><p>${paragraph}</p></article></body></html>`,
      ),
      '/evil': page(
        'text/html',
        `<html><body><article><p>${paragraph.repeat(4)}</p><p onclick="x()">click<script>alert(1)</script></p><a href="jav&#x09;ascript:alert(1)">x</a></article></body></html>`,
      ),
    });
    services = urlServices([web.host]);
    tool = createFetchPageTool(services);
  });
  afterAll(async () => {
    await web.close();
    await listener.close();
    await services.workers.close();
  });

  it('finds the article and its metadata', async () => {
    const found = await read('/moved');
    assert.equal(found.url, `${web.url}/docs/moorings.html`);
    assert.equal(found.fetched_as, 'html');
    assert.match(found.title ?? '', /^Moorings/);
    assert.equal(found.byline, 'Ada Quay');
    assert.equal(found.site, 'The Harbour');
    assert.equal(found.description, 'On moorings.');
    assert.equal(found.language, 'en');
    assert.match(found.markdown, /^## Lines$/m);
    assert.match(found.markdown, /```sh\ntie --bowline\n```/);
    assert.match(found.markdown, /\| Spring \| fore and aft \|/);
    assert.doesNotMatch(found.markdown, /Shop|All rights reserved|changed/);
    assert.deepEqual(found.links, [
      { text: 'about lines', url: `${web.url}/docs/lines.html` },
      { text: 'elsewhere', url: 'https://other.example/x?a=1#top' },
    ]);
    assert.ok(found.word_count > 100 && found.word_count < 250, String(found.word_count));
  });

  it('reads a page whose author has left out the body element, as HTML allows', async () => {
    const found = await read('/bodiless');
    assert.deepEqual([found.title, found.language], ['Moorings', 'en']);
    assert.match(found.markdown, /^## Lines\n+A line leads to the quay\.$/m);
  });

  it('keeps the whole page if requested', async () => {
    const found = await read('/docs/moorings.html', { whole_page: true });
    assert.match(found.markdown, /All rights reserved/);
    assert.ok(found.links.some(({ url }) => url === `${web.url}/shop`));
  });

  it('cuts at the requested length, and reports it', async () => {
    const found = await read('/docs/moorings.html', { max_characters: 100 });
    assert.deepEqual([found.markdown.length, found.truncated], [100, true]);
  });

  it('applies the base of a page', async () => {
    assert.equal((await read('/based')).links[0]?.url, 'https://based.example/dir/page');
  });

  it('decodes encodings', async () => {
    assert.match((await read('/1251')).markdown, /Причал/);
    assert.equal((await read('/shift-jis')).markdown, '港');
    assert.equal((await read('/utf-16')).markdown, 'quay');
    assert.equal((await read('/latin1')).markdown, 'quäi');
    assert.equal((await read('/unknown-charset')).markdown, 'Kaí');
  });

  it('reads JSON, text and PDF', async () => {
    assert.deepEqual(await read('/json').then(({ fetched_as, markdown }) => [fetched_as, markdown]), [
      'json',
      '```json\n{\n  "a": [\n    1,\n    2\n  ]\n}\n```',
    ]);
    assert.equal((await read('/ld')).markdown, '```json\n{broken\n```');
    assert.deepEqual(
      (await read('/text')).links.map(({ url }) => url),
      ['https://a.example/x', 'https://b.example/y'],
    );
    const file = await read('/pdf');
    assert.deepEqual(
      [file.fetched_as, file.title, file.markdown],
      ['pdf', 'Knots', '## Page 1\n\nOne page of text\n\n## Page 2\n\nAnother one'],
    );
    assert.equal((await read('/octets.pdf')).fetched_as, 'pdf');
    assert.equal((await read('/octets.html')).fetched_as, 'html');
  });

  it('reports content that is not a page', async () => {
    for (const path of ['/image', '/octets'])
      await assert.rejects(
        read(path),
        (error) =>
          error instanceof Problem && error.type.slug === 'unprocessable' && /convert_image/.test(error.message),
        path,
      );
  });

  it('survives malicious pages', async () => {
    assert.equal((await read('/empty')).markdown, '');
    assert.equal((await read('/script-only')).word_count, 0);
    for (const path of ['/deep', '/deep-p']) await assert.rejects(read(path), /nests more than 250 elements/, path);
    for (const path of ['/wide', '/attributes']) assert.ok((await read(path)).word_count > 15, path);
    const { markdown, links } = await read('/evil');
    assert.doesNotMatch(markdown, /<script|onclick|alert\(1\)<|\(javascript/i);
    assert.deepEqual(links, []);
  });

  it('loads nothing that a page refers to', () => {
    assert.equal(listener.connections(), 0);
  });
});
