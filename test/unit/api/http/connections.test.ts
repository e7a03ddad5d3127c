// Connections: streams in both directions, callers who disconnect, bodies that are too long, and keep-alive.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, test } from 'vitest';
import type { PublicServer } from '../../../../api/http/server.ts';
import type { ProtocolMount } from '../../../../api/http/endpoint.ts';
import { createApp, findEndpoint, open, receive, serve, stop } from '../../../support/api/http-app.ts';

const servers: PublicServer[] = [];
afterAll(async () => {
  await Promise.all(servers.map(stop));
});

async function started(...[endpoints, protocols]: Parameters<typeof createApp>): Promise<PublicServer> {
  const server = await serve(createApp(endpoints, protocols));
  servers.push(server);
  return server;
}

const protocol = (answer: ProtocolMount['handle']): ProtocolMount => ({ path: '/stream', handle: answer });
const kib = new Uint8Array(1_024).fill(97);

test('aborts the signal and ends the stream when the caller disconnects', async () => {
  const [aborted, cancelled] = [Promise.withResolvers<undefined>(), Promise.withResolvers<undefined>()];
  const server = await started(
    [],
    [
      protocol((_request, { signal }) => {
        signal.addEventListener('abort', () => {
          aborted.resolve(undefined);
        });
        const body = new ReadableStream({
          start(controller) {
            controller.enqueue(kib);
          },
          cancel() {
            cancelled.resolve(undefined);
          },
        });
        return Promise.resolve(new Response(body));
      }),
    ],
  );
  const socket = await open(server, 'GET /stream HTTP/1.1\r\nhost: a\r\n\r\n');
  await receive(socket, /aaa/);
  socket.destroy();
  await Promise.all([aborted.promise, cancelled.promise]);
});

test('aborts the signal when the caller disconnects before the response', async () => {
  const aborted = Promise.withResolvers<undefined>();
  const begun = Promise.withResolvers<undefined>();
  const server = await started([
    findEndpoint('GET', '/slow', async (_given, { signal }) => {
      signal.addEventListener('abort', () => {
        aborted.resolve(undefined);
      });
      begun.resolve(undefined);
      await aborted.promise;
      return 'nobody reads this';
    }),
  ]);
  const socket = await open(server, 'GET /slow HTTP/1.1\r\nhost: a\r\n\r\n');
  await begun.promise;
  socket.destroy();
  await aborted.promise;
});

test('holds the source back while the caller does not read', async () => {
  let pulled = 0;
  const body = new ReadableStream({
    pull(controller) {
      pulled += 64;
      controller.enqueue(new Uint8Array(65_536));
    },
  });
  const server = await started([], [protocol(() => Promise.resolve(new Response(body)))]);
  const socket = await open(server, 'GET /stream HTTP/1.1\r\nhost: a\r\n\r\n');
  socket.pause();
  let last = -1;
  while (last !== pulled) {
    last = pulled;
    await sleep(200);
  }
  assert.ok(pulled > 0 && pulled < 32 * 1_024, `${pulled} KiB were read ahead`);
  socket.destroy();
});

test('holds the caller back while the handler does not read, and streams the body as it arrives', async () => {
  const [first, go] = [Promise.withResolvers<number>(), Promise.withResolvers<undefined>()];
  const server = await started(
    [],
    [
      protocol(async (request) => {
        assert.ok(request.body !== null);
        const reader = request.body.getReader();
        const { value } = (await reader.read()) as { value: Uint8Array };
        let length = value.length;
        first.resolve(length);
        await go.promise;
        for (;;) {
          const { done, value: more } = (await reader.read()) as { done: boolean; value: Uint8Array };
          if (done) return new Response(String(length));
          length += more.length;
        }
      }),
    ],
  );
  const total = 64 * 1_048_576;
  const socket = await open(
    server,
    `POST /stream HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: ${total}\r\n\r\n`,
  );
  socket.write(kib);
  assert.equal(await first.promise, 1_024);
  let sent = 1_024;
  const chunk = new Uint8Array(1_048_576);
  while (socket.write(chunk)) sent += chunk.length;
  sent += chunk.length;
  await sleep(200);
  assert.ok(socket.writableLength > 0, 'the caller waits');
  go.resolve(undefined);
  while (sent < total) {
    const next = chunk.subarray(0, Math.min(chunk.length, total - sent));
    sent += next.length;
    if (!socket.write(next)) await once(socket, 'drain');
  }
  assert.match(await receive(socket), new RegExp(String(total)));
});

test('cuts the response off when its source fails, so that it cannot pass for complete', async () => {
  const body = new ReadableStream({
    pull(controller) {
      controller.enqueue(kib);
      controller.error(new Error('broken'));
    },
  });
  const server = await started([], [protocol(() => Promise.resolve(new Response(body)))]);
  const socket = await open(server, 'GET /stream HTTP/1.1\r\nhost: a\r\n\r\n');
  const text = await receive(socket).catch(() => 'reset');
  assert.doesNotMatch(text, /\r\n0\r\n\r\n$/);
});

test('answers Expect: 100-continue before the body is sent', async () => {
  const server = await started([findEndpoint('POST', '/json', () => 'done')]);
  const socket = await open(
    server,
    'POST /json HTTP/1.1\r\nhost: a\r\nconnection: close\r\nexpect: 100-continue\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n',
  );
  assert.match(await receive(socket, /\r\n\r\n/), /^HTTP\/1\.1 100 Continue/);
  socket.write('{}');
  assert.match(await receive(socket), /^HTTP\/1\.1 200 OK[^]*"done"$/);
});

test('skips trailers of a body, and still answers a caller who has closed their sending side', async () => {
  const server = await started([findEndpoint('POST', '/json', () => 'done')]);
  const socket = await open(
    server,
    'POST /json HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\ntrailer: x-sum\r\n\r\n2\r\n{}\r\n0\r\nx-sum: 1\r\n\r\n',
  );
  socket.end();
  assert.match(await receive(socket), /^HTTP\/1\.1 200 OK[^]*"done"$/);
});

test('rejects a body that is too long while it is being sent, and does not read it for ever', async () => {
  const server = await started([findEndpoint('POST', '/json', () => 'done')]);
  for (const length of ['content-length: 999999999', 'transfer-encoding: chunked']) {
    const socket = await open(
      server,
      `POST /json HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n${length}\r\n\r\n`,
    );
    socket.on('error', () => undefined);
    const endless = setInterval(() => {
      socket.write(length.startsWith('content') ? kib : `400\r\n${'a'.repeat(1_024)}\r\n`.repeat(64));
    }, 5);
    assert.match(await receive(socket, /\r\n\r\n.*\}/), /^HTTP\/1\.1 413 /);
    if (!socket.closed && !socket.readableEnded) await receive(socket).catch(() => '');
    clearInterval(endless);
    socket.destroy();
  }
});

test('leaves nothing of an unread body on a kept-alive connection', async () => {
  const server = await started([], [protocol(() => Promise.resolve(new Response('ignored', { status: 400 })))]);
  const warnings: Error[] = [];
  const warn = (warning: Error): void => {
    warnings.push(warning);
  };
  process.on('warning', warn);
  const socket = await open(server, '');
  for (let sent = 0; sent < 15; sent += 1) {
    socket.write('POST /stream HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\n');
    await receive(socket, /ignored/);
    socket.write('12345');
  }
  await sleep(20);
  process.off('warning', warn);
  assert.deepEqual(warnings, []);
  socket.destroy();
});

test('delivers the response although the handler abandoned the body half way', async () => {
  const server = await started(
    [],
    [
      protocol(async (request) => {
        const reader = request.body?.getReader();
        await reader?.read();
        await reader?.cancel();
        return new Response('enough', { status: 413 });
      }),
    ],
  );
  const socket = await open(server, 'POST /stream HTTP/1.1\r\nhost: a\r\ncontent-length: 999999999\r\n\r\n');
  socket.on('error', () => undefined);
  const endless = setInterval(() => {
    socket.write(kib);
  }, 5);
  assert.match(await receive(socket, /enough/), /^HTTP\/1\.1 413 /);
  if (!socket.closed && !socket.readableEnded) await receive(socket).catch(() => '');
  clearInterval(endless);
  socket.destroy();
});

test('keeps a connection for the next request, and closes it once the server drains', async () => {
  const server = await serve(createApp([findEndpoint('GET', '/', () => 'here')]));
  const get = 'GET / HTTP/1.1\r\nhost: a\r\n\r\n';
  const socket = await open(server, get);
  assert.match(await receive(socket, /"here"/), /connection: keep-alive/i);
  socket.write(get);
  await receive(socket, /"here"/);
  const drained = server.drain({ graceMs: 200, limitMs: 1_000, endStreams: () => undefined });
  socket.write(get);
  assert.match(await receive(socket), /connection: close[^]*"here"$/i);
  await drained;
});
