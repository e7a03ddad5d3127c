// What is concluded from an answer of the gateway, and from none.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createTcpServer, type AddressInfo } from 'node:net';
import { test } from 'vitest';
import { probe } from '../../../../../controller/steps/publish/probe.ts';
import type { ProbeResult } from '../../../../../controller/reconcile/snapshot.ts';

async function probed(answer: RequestListener): Promise<ProbeResult> {
  const gateway = createServer(answer).listen(0, '127.0.0.1');
  await once(gateway, 'listening');
  try {
    return await probe({ url: `http://127.0.0.1:${(gateway.address() as AddressInfo).port}` }, 'app.test', {
      timeoutMs: 300,
    });
  } finally {
    gateway.closeAllConnections();
    gateway.close();
  }
}

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
