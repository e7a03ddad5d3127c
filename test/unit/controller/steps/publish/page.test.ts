// A look at a page through a gateway: what loads, what does not, and what has no server behind it.
import assert from 'node:assert/strict';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test, type TestContext } from 'vitest';
import { listAssets, listCalls, inspectPage } from '../../../../../controller/steps/publish/page.ts';

type Route = (request: IncomingMessage, response: ServerResponse) => void;

const html =
  (body: string): Route =>
  (_request, response) =>
    response.writeHead(200, { 'content-type': 'text/html' }).end(body);
const file =
  (type: string, body = ''): Route =>
  (_request, response) =>
    response.writeHead(200, { 'content-type': type }).end(body);
const script = (body = ''): Route => file('text/javascript', body);

/** A gateway with one app behind it. `*` answers what nothing else does; else 404. */
async function gateway(t: TestContext, routes: Readonly<Record<string, Route>>): Promise<string> {
  const server = createServer((request, response) => {
    const route = request.headers.host?.startsWith('app.test') === true ? routes[request.url ?? ''] : undefined;
    const answer = route ?? routes['*'];
    if (answer === undefined) response.writeHead(404, { 'content-type': 'application/json' }).end('{}');
    else answer(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const page = '<link rel="stylesheet" href="/a.css"><script src="b.js" type="module"></script><img src="/c.png">';

test('accepts a page that loads all of its files, and does not request those of other hosts', async (t) => {
  const base = await gateway(t, {
    '/': html(`${page}<script src="https://cdn.test/x.js"></script><script nomodule src="/old.js"></script>`),
    '/a.css': file('text/css'),
    '/b.js': script(),
    '/c.png': file('image/png'),
  });
  assert.deepEqual(await inspectPage({ url: base }, 'app.test'), { status: 200, assets: 3, faults: [] });
});

test('reports a missing file, even if a page is served at its path', async (t) => {
  const missing = await gateway(t, { '/': html(page), '/a.css': file('text/css'), '/c.png': file('image/png') });
  assert.deepEqual((await inspectPage({ url: missing }, 'app.test')).faults, [
    'cannot load 1 of the 3 files of its page: /b.js (404)',
  ]);
  const fallback = await gateway(t, { '*': html(page) });
  assert.match(
    (await inspectPage({ url: fallback }, 'app.test')).faults[0] ?? '',
    /^cannot load 3 of the 3 .*\(a page comes/,
  );
});

test('reports files without their server: the page calls an API, and pages respond', async (t) => {
  const calls = script('fetch("/api/v1/memos");axios.get(`/api/v1/user`);');
  const fileServer: Route = (request, response) => {
    response.setHeader('last-modified', 'Sun, 22 Nov 2026 10:00:00 GMT');
    html(page)(request, response);
  };
  const half = await gateway(t, {
    '/b.js': calls,
    '/a.css': file('text/css'),
    '/c.png': file('image/png'),
    '*': fileServer,
  });
  assert.deepEqual((await inspectPage({ url: half }, 'app.test')).faults, [
    'has no server behind its page: the page calls /api/v1/memos, /api/v1/user, and a page answers',
  ]);
  const whole = await gateway(t, {
    '/': html('<script src="/b.js"></script>'),
    '/b.js': calls,
    '/api/v1/memos': (_request, response) => response.writeHead(405).end(),
  });
  assert.deepEqual((await inspectPage({ url: whole }, 'app.test')).faults, []);
});

test("does not report a missing server because of the prefixes of a server-rendered page's paths", async (t) => {
  const notFound: Route = (_request, response) => response.writeHead(404, { 'content-type': 'text/html' }).end('no');
  const next = await gateway(t, {
    '/': html('<script src="/b.js"></script>'),
    '/b.js': script('const base = "/api/openai"; fetch(`${base}/v1/models`)'),
    '*': notFound,
  });
  assert.deepEqual((await inspectPage({ url: next }, 'app.test')).faults, []);
});

test('reports errors at /, follows redirects within the app, and ignores responses that are not pages', async (t) => {
  const broken = await gateway(t, { '/': (_request, response) => response.writeHead(500).end('oh') });
  assert.deepEqual(await inspectPage({ url: broken }, 'app.test'), {
    status: 500,
    assets: 0,
    faults: ['responds with 500 at /'],
  });
  const moved = await gateway(t, {
    '/': (_request, response) => response.writeHead(302, { location: '/login' }).end(),
    '/login': html('<script src="gone.js"></script>'),
  });
  assert.match((await inspectPage({ url: moved }, 'app.test')).faults[0] ?? '', /\/gone\.js \(404\)/);
  const away = await gateway(t, {
    '/': (_request, response) => response.writeHead(302, { location: 'https://elsewhere.test/' }).end(),
  });
  assert.deepEqual(await inspectPage({ url: away }, 'app.test'), { status: 302, assets: 0, faults: [] });
  const api = await gateway(t, { '/': file('application/json', '{}') });
  assert.deepEqual(await inspectPage({ url: api }, 'app.test'), { status: 200, assets: 0, faults: [] });
  assert.match(
    (await inspectPage({ url: 'http://127.0.0.1:1' }, 'app.test')).faults[0] ?? '',
    /^does not show its page: /,
  );
});

test('inspects the path that responds instead of /, and no endless stream', async (t) => {
  const base = await gateway(t, {
    '/docs': html('<script src="/gone.js"></script>'),
    '/mcp': (_request, response) => response.writeHead(406).end(),
    '/sse': (_request, response) => response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1'),
  });
  const { status, faults } = await inspectPage({ url: base }, 'app.test', '/docs');
  assert.deepEqual([status, faults], [200, ['cannot load 1 of the 1 files of its page: /gone.js (404)']]);
  for (const path of ['/mcp', '/sse'])
    assert.deepEqual((await inspectPage({ url: base }, 'app.test', path)).faults, [], path);
});

test('checks a limited number of assets and calls, and keeps its report short', async (t) => {
  const many = Array.from({ length: 100 }, (_, index) => `<script src="/${'x'.repeat(200)}${index}.js"></script>`);
  const base = await gateway(t, { '/': html(many.join('')) });
  const { assets, faults } = await inspectPage({ url: base }, 'app.test');
  assert.equal(assets, 30);
  assert.ok((faults[0] ?? '').length < 300);
  assert.equal(listCalls(Array.from({ length: 50 }, (_, index) => `"/api/${index}"`).join()).length, 5);
});

test('resolves addresses like a browser', () => {
  const paths = (text: string): string[] => listAssets(text, new URL('https://app.test/sub/')).map(({ path }) => path);
  assert.deepEqual(paths('<base href="/deep/"><script src="a.js?v=1"></script>'), ['/deep/a.js?v=1']);
  assert.deepEqual(paths('<script src="data:text/javascript,1"></script><img src="" ><img src="http://[">'), []);
  assert.deepEqual(paths('<img loading="lazy" src="/later.png"><script src="../up.js"></script>'), ['/up.js']);
});
