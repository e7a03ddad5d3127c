// Routing: methods, spellings of paths, queries, and headers that would reveal the server.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { z } from 'zod';
import { createBufferedResponse } from '../../../../api/http/response.ts';
import { defineEndpoint } from '../../../../api/http/endpoint.ts';
import { sampleApp, sampleApps, sampleServer, sampleServices } from '../../../support/api/sample.ts';
import { createApp, findEndpoint, open, receive, serve, stop } from '../../../support/api/http-app.ts';
import { send } from '../../../support/api/send.ts';

const problem = z.looseObject({
  type: z.string(),
  detail: z.string(),
  errors: z.array(z.looseObject({ in: z.string(), field: z.string() })).optional(),
});

test('runs the HEAD function for HEAD, and never a GET handler that has an effect', async () => {
  const ran: string[] = [];
  const app = createApp([
    {
      ...findEndpoint('GET', '/charged', () => ran.push('GET')),
      head: () => {
        ran.push('HEAD');
        return Promise.resolve(new Response(null, { headers: { 'x-reported': 'yes' } }));
      },
    },
  ]);
  const answer = await send(app, '/charged', { method: 'HEAD' });
  assert.deepEqual([answer.status, answer.headers.get('x-reported'), await answer.text()], [200, 'yes', '']);
  assert.deepEqual(ran, ['HEAD']);
});

test('opens no log and takes no slot for HEAD of a log', async () => {
  let opened = 0;
  const { app } = sampleServer(
    sampleServices({
      apps: sampleApps(sampleApp('chat', undefined, { phase: 'Cloning', since: '2026-01-01T00:00:05Z' })).apps,
      logStreams: 1,
      openLog: () => {
        opened += 1;
        return Promise.resolve({ state: 'waiting' });
      },
    }),
  );
  const path = '/api/submit-status/octo/chat/log';
  for (let tries = 0; tries < 5; tries += 1) {
    const answer = await send(app, path, { method: 'HEAD' });
    assert.deepEqual([answer.status, answer.headers.get('content-type')], [200, 'text/event-stream']);
  }
  assert.equal(opened, 0);
  assert.equal((await send(app, '/api/submit-status/octo/none/log', { method: 'HEAD' })).status, 404);
  const stream = await send(app, path);
  assert.equal(stream.status, 200, 'the only slot is free');
  await stream.body?.cancel();
});

test('attack: runs no GET for HEAD unless its definition says that it only reads', () => {
  const definition = {
    method: 'GET',
    path: '/events',
    operation: 'events',
    tag: 'test',
    summary: '.',
    description: '.',
    output: z.string(),
    outputDescription: '.',
    handler: () => Promise.resolve(''),
  } as const;
  assert.throws(() => defineEndpoint(definition), /needs `head`/);
  defineEndpoint({ ...definition, head: 'as GET' });
  assert.throws(
    () => defineEndpoint({ ...definition, head: 'as GET', produces: ['text/event-stream'] }),
    /needs a function as `head`/,
  );
});

test('releases what a handler holds when the response is sent, fails or cannot begin', async () => {
  const over: string[] = [];
  const answers: Record<string, () => Response> = {
    '/sent': () => new Response('text'),
    '/buffered': () => createBufferedResponse('text'),
    '/refused': () => {
      throw new Error('a fault');
    },
    '/failing': () => new Response(new ReadableStream({ pull: () => Promise.reject(new Error('a fault')) })),
    '/impossible': () => Object.defineProperty(new Response('text'), 'status', { value: 42 }),
  };
  const app = createApp(
    Object.entries(answers).map(([path, answer]) =>
      findEndpoint('GET', path, (_, context) => {
        context.onFinished(() => over.push(path));
        return answer();
      }),
    ),
  );
  for (const path of Object.keys(answers))
    for (const method of ['GET', 'HEAD'])
      await send(app, path, { method, signal: AbortSignal.timeout(3_000) })
        .then((answer) => answer.text())
        .catch(() => undefined);
  assert.deepEqual(
    over,
    Object.keys(answers).flatMap((path) => [path, path]),
  );
});

test('matches paths by case and ignores a trailing slash', async () => {
  const app = createApp([findEndpoint('GET', '/api/Things', () => 'here')]);
  const statuses = ['/api/Things', '/api/Things/', '/api/things', '/API/Things'].map(async (path) => {
    return (await send(app, path)).status;
  });
  assert.deepEqual(await Promise.all(statuses), [200, 200, 404, 404]);
});

test('reads braces as parameters, and every other character of a path literally', async () => {
  const app = createApp([
    findEndpoint('GET', '/a/{one}/b/{two}', ({ params }) => params),
    findEndpoint('GET', '/v1/do:it(now)+[1]!', () => 'special'),
  ]);
  assert.deepEqual(await (await send(app, '/a/x%2Fy/b/%C3%A9')).json(), { one: 'x/y', two: 'é' });
  assert.equal(await (await send(app, '/v1/do:it(now)+[1]!')).json(), 'special');
  assert.equal((await send(app, '/v1/doit')).status, 404);
  assert.equal((await send(app, '/a/x/y/b/z')).status, 404);
});

test('routes every spelling of a URL alike', async () => {
  const server = await serve(createApp([findEndpoint('GET', '/t/echo', () => 'here')]));
  const statusOf = async (target: string): Promise<string> => {
    const socket = await open(server, `GET ${target} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n`);
    return (await receive(socket)).slice(9, 12);
  };
  assert.equal(await statusOf('/t/%65ch%6F'), '200');
  assert.equal(await statusOf('/x/../t/./echo'), '200');
  assert.equal(await statusOf('http://elsewhere/t/echo?x=1'), '200');
  assert.equal(await statusOf('/t%2Fecho'), '404');
  assert.equal(await statusOf(String.raw`/t\echo`), '400');
  await stop(server);
});

test('rejects a malformed % in a path with a problem', async () => {
  const server = await serve(createApp([findEndpoint('GET', '/a/{one}', ({ params }) => params)]));
  for (const path of ['/a/%', '/a/%zz', '/a/%E0%A4%A']) {
    const socket = await open(server, `GET ${path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n`);
    const [head = '', body = ''] = (await receive(socket)).split('\r\n\r\n');
    assert.match(head, /^HTTP\/1\.1 400 Bad Request\r\ncontent-type: application\/problem\+json/i);
    const { type, errors } = problem.parse(JSON.parse(body));
    assert.match(type, /invalid-request$/);
    assert.deepEqual(
      errors?.map(({ in: part }) => part),
      ['path'],
    );
  }
  await stop(server);
});

test('passes a protocol its path as it was sent, malformed or not', async () => {
  const app = createApp(
    [],
    [
      {
        path: '/call/{slug}/{path}',
        pattern: '/call/{slug}/*',
        handle: (request) => Promise.resolve(new Response(new URL(request.url).pathname)),
      },
    ],
  );
  const server = await serve(app);
  const socket = await open(server, 'GET /call/a/%41%2f%zz/b?c=%20 HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n');
  assert.match(await receive(socket), /\r\n\/call\/a\/%41%2f%zz\/b\r\n/);
  await stop(server);
});

test('reads the query from the URL as it was sent', async () => {
  const app = createApp([findEndpoint('GET', '/q', ({ query }) => query)]);
  assert.deepEqual(await (await send(app, '/q?a=1&a=2&b=x+y&c=%3F%26&d=%zz&e')).json(), {
    a: ['1', '2'],
    b: 'x y',
    c: '?&',
    d: '%zz',
    e: '',
  });
});

test('rejects other methods and lists the allowed ones', async () => {
  const app = createApp([findEndpoint('GET', '/both', () => ''), findEndpoint('POST', '/both', () => '')]);
  for (const method of ['PUT', 'DELETE', 'PATCH', 'PROPFIND']) {
    const answer = await send(app, '/both', { method });
    assert.deepEqual([answer.status, answer.headers.get('allow')], [405, 'GET, HEAD, POST, OPTIONS']);
    assert.match(problem.parse(await answer.json()).type, /method-not-allowed$/);
  }
  const options = await send(app, '/both', { method: 'OPTIONS' });
  assert.deepEqual([options.status, options.headers.get('allow')], [204, 'GET, HEAD, POST, OPTIONS']);
});

test('sends a content length, but no ETag and no server name', async () => {
  const answer = await send(createApp([findEndpoint('GET', '/', () => 'é')]), '/');
  const { headers } = answer;
  assert.deepEqual(
    ['content-length', 'content-type', 'etag', 'x-powered-by', 'transfer-encoding'].map((name) => headers.get(name)),
    ['4', 'application/json', null, null, null],
  );
});
