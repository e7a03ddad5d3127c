// What is concluded from an answer of the gateway, and from none.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createTcpServer, type AddressInfo } from 'node:net';
import { test } from 'vitest';
import { probe } from '../../../../../controller/steps/publish/probe.ts';
import type { ProbeResult } from '../../../../../controller/reconcile/snapshot.ts';

async function probed(answer: RequestListener, paths: readonly string[] = []): Promise<ProbeResult> {
  const gateway = createServer(answer).listen(0, '127.0.0.1');
  await once(gateway, 'listening');
  try {
    return await probe({ url: `http://127.0.0.1:${(gateway.address() as AddressInfo).port}` }, 'app.test', {
      timeoutMs: 300,
      paths,
    });
  } finally {
    gateway.closeAllConnections();
    gateway.close();
  }
}

/** An app that answers these paths, and nothing else. */
function answering(paths: Readonly<Record<string, number | string>>): RequestListener {
  return (request, response) => {
    const answer = paths[(request.url ?? '').split('?')[0] ?? ''] ?? 404;
    if (typeof answer === 'string') response.writeHead(302, { location: answer }).end();
    else response.writeHead(answer, { 'content-type': 'application/json' }).end('{}');
  };
}

test('finds the API description or the named page of an app without a page at /', async () => {
  const api = await probed(answering({ '/openapi.json': 200, '/docs': 200 }));
  assert.deepEqual([api.responds, api.status, api.instead], [true, 404, '/docs']);
  assert.equal((await probed(answering({ '/panel': 200, '/docs': 200 }), ['/panel'])).instead, '/panel');
  assert.equal((await probed(answering({ '/graphql': 400 }))).instead, '/graphql');
  assert.equal((await probed(answering({ '/predict': 405 }), ['/predict'])).instead, '/predict');
  assert.equal((await probed(answering({ '/predict': 404, '/redoc': 401 }), ['/predict'])).instead, undefined);
  const none = await probed(answering({ '/anything': 200, '/docs': 500, '/redoc': '/' }));
  assert.deepEqual([none.responds, none.instead], [true, undefined]);
});

test('finds pages that the error page at / links to', async () => {
  const { instead } = await probed((request, response) => {
    const isPage = request.url === '/chat';
    const body =
      '<h1>Not found</h1><a href="https://elsewhere.test/">out</a><a href="/">home</a><a href="chat">chat</a>';
    response.writeHead(isPage ? 200 : 404, { 'content-type': 'text/html' }).end(body);
  });
  assert.equal(instead, '/chat');
});

test('tries other pages only where there is none at /', async () => {
  const requested: string[] = [];
  await probed((request, response) => {
    requested.push(request.url ?? '');
    response.writeHead(500).end();
  });
  assert.deepEqual(requested, ['/']);
});

test('follows redirects within the app to the page that decides', async () => {
  const { status, path } = await probed(answering({ '/': '/install.php', '/install.php': 500 }));
  assert.deepEqual([status, path], [500, '/install.php']);
  assert.equal((await probed(answering({ '/': 'https://login.test/authorize' }))).status, 302);
  assert.equal((await probed(answering({ '/': '/' }))).status, 302, 'a loop may end with a cookie');
});

test('reads the text of an error page, without scripts and styles', async () => {
  const html =
    '<html><head><title>t</title><style>a{}</style></head><body><h1>OperationalError at /</h1><pre>no such table:\n x</pre><script>1</script></body></html>';
  const { text } = await probed((_, response) => response.writeHead(500, { 'content-type': 'text/html' }).end(html));
  assert.equal(text, 'OperationalError at /\nno such table:\nx');
  const refused = await probed((_, response) => response.writeHead(403).end('Invalid Host header'));
  assert.equal(refused.text, 'Invalid Host header');
  const long = await probed((_, response) => response.writeHead(500).end('x'.repeat(100_000)));
  assert.equal(long.text?.length, 2_000);
});

test("counts an app's own error as a response, but not the gateway's", async () => {
  assert.deepEqual(await probed((_, response) => response.writeHead(500).end()), {
    responds: true,
    isDoubtful: false,
    status: 500,
    detail: 'the response was HTTP 500',
  });
  const { responds, isDoubtful } = await probed((_, response) => response.writeHead(503).end());
  assert.deepEqual({ responds, isDoubtful }, { responds: false, isDoubtful: false });
});

test('retries a bare 404 and a timeout only for a while, because they may come from the app', async () => {
  const bare = { 'content-type': 'text/plain; charset=utf-8', 'content-length': '19' };
  const notFound = await probed((_, response) => response.writeHead(404, bare).end('404 page not found\n'));
  assert.deepEqual(notFound, { responds: false, isDoubtful: true, status: 404, detail: 'the response was HTTP 404' });
  assert.deepEqual(await probed(() => undefined), {
    responds: false,
    isDoubtful: true,
    detail: 'there was no response within 0.3 s',
  });
});

test('treats a missing gateway as certain', async () => {
  const { responds, isDoubtful, detail } = await probe({ url: 'http://127.0.0.1:9' }, 'app.test');
  assert.deepEqual({ responds, isDoubtful }, { responds: false, isDoubtful: false });
  assert.match(detail, /^the request failed: .*ECONNREFUSED/);
});

test('treats a gateway that accepts no connection as certain, however long the wait', async () => {
  // It takes the connection and never answers the handshake, as an address without anybody behind it.
  const silent = createTcpServer(() => undefined).listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const url = `https://127.0.0.1:${(silent.address() as AddressInfo).port}`;
  assert.deepEqual(await probe({ url }, 'app.test', { timeoutMs: 200 }), {
    responds: false,
    isDoubtful: false,
    detail: 'the request failed: no connection within 0.2 s',
  });
  silent.close();
});

test('confirms a failure of a live app before reporting it', async () => {
  let count = 0;
  const gateway = createServer((_, response) => response.writeHead((count += 1) < 3 ? 500 : 200).end());
  await once(gateway.listen(0, '127.0.0.1'), 'listening');
  const ask = (attempts: number): Promise<ProbeResult> =>
    probe({ url: `http://127.0.0.1:${(gateway.address() as AddressInfo).port}` }, 'app.test', { attempts, pause: 1 });
  assert.equal((await ask(2)).status, 500);
  assert.equal(count, 2);
  assert.equal((await ask(3)).status, 200);
  assert.equal(count, 3);
  gateway.closeAllConnections();
  gateway.close();
});
