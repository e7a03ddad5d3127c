// Requests that the HTTP parser cannot read, over a real socket.
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { startServer, type PublicServer } from '../../../../api/http/server.ts';
import { silent } from '../../../support/api/sample.ts';
import { sampleToolApp, type ToolSample } from '../../../support/tools/sample.ts';

let sample: ToolSample;
let server: PublicServer;
beforeAll(async () => {
  sample = await sampleToolApp();
  server = await startServer({
    port: 0,
    host: '127.0.0.1',
    listener: sample.app,
    log: silent,
    baseUrl: 'https://moorage.test',
  });
});
afterAll(async () => {
  await server.drain({ graceMs: 0, limitMs: 100, endStreams: () => undefined });
  await sample.stop();
});

const problem = z.looseObject({
  type: z.string(),
  status: z.int(),
  detail: z.string(),
  instance: z.string(),
  request_id: z.string(),
  limit_bytes: z.int().optional(),
});

const send = (path: string, init?: RequestInit): Promise<Response> =>
  fetch(`http://127.0.0.1:${server.port}${path}`, init);

test('accepts a URL of many thousand characters', async () => {
  const text = 'x'.repeat(60_000);
  const answer = await send(`/t/echo?text=${text}`);
  assert.equal(answer.status, 200);
  assert.equal(((await answer.json()) as { result: { echoed: string } }).result.echoed, text);
});

test('rejects a longer URL with a problem that recommends POST', async () => {
  for (const length of [66_000, 1_000_000]) {
    const answer = await send(`/t/echo?text=${'x'.repeat(length)}`);
    assert.deepEqual([answer.status, answer.headers.get('content-type')], [431, 'application/problem+json']);
    const { type, detail, limit_bytes: limit, request_id: id } = problem.parse(await answer.json());
    assert.deepEqual(
      [type, limit, answer.headers.get('x-request-id')],
      ['https://moorage.test/problems/request-too-long', 65_536, id],
    );
    assert.match(detail, /body of a POST/);
  }
  assert.equal((await send('/problems/request-too-long')).status, 200);
});

test('rejects long headers too, and keeps serving', async () => {
  assert.equal((await send('/t/echo?text=a', { headers: { 'x-long': 'x'.repeat(70_000) } })).status, 431);
  assert.equal((await send('/t/echo?text=a')).status, 200);
});

test('rejects what is not HTTP with a problem', async () => {
  const socket = connect(server.port, '127.0.0.1');
  socket.write('HELO there\r\n\r\n');
  const chunks: Buffer[] = [];
  for await (const chunk of socket) chunks.push(chunk as Buffer);
  const [head = '', body = ''] = Buffer.concat(chunks).toString().split('\r\n\r\n');
  assert.match(head, /^HTTP\/1\.1 400 Bad Request\r\ncontent-type: application\/problem\+json/);
  assert.match(problem.parse(JSON.parse(body)).type, /malformed-request$/);
});
