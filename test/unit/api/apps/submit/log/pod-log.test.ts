// The log of a container: open once there is something to read, and not before.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Agent } from 'node:http';
import { test, type TestContext } from 'vitest';
import { podLogs, type OpenedLog } from '../../../../../../api/apps/submit/log/pod-log.ts';

/** Opens a log of a server that answers each request with this status. */
async function opened(t: TestContext, status: number, body = ''): Promise<OpenedLog> {
  const agent = new Agent({ keepAlive: true });
  const server = createServer((_request, response) => {
    response.writeHead(status).end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.onTestFinished(() => {
    agent.destroy();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const connection = {
    server: `http://127.0.0.1:${port}`,
    namespace: undefined,
    credentials: () => Promise.resolve({ headers: {}, agent }),
    close: () => undefined,
  };
  return podLogs(connection, 'moorage-builds')('pod', 'clone', AbortSignal.timeout(5_000));
}

test('204, which the API server answers before the pod is on a node, is no empty log', async (t) => {
  assert.deepEqual(await opened(t, 204), { state: 'waiting' });
});

test('400, 429 and 500 pass, and 404 does not', async (t) => {
  for (const status of [400, 429, 500]) assert.deepEqual(await opened(t, status), { state: 'waiting' });
  assert.deepEqual(await opened(t, 404), { state: 'gone' });
});

test('what the container wrote is read', async (t) => {
  const log = await opened(t, 200, 'one\ntwo\n');
  assert.equal(log.state, 'open');
  const chunks: Uint8Array[] = [];
  for await (const chunk of log.bytes) chunks.push(chunk);
  assert.equal(Buffer.concat(chunks).toString(), 'one\ntwo\n');
});
