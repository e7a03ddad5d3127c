// /mcp with the official client, in the current revision and in those of 2025.
import assert from 'node:assert/strict';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { defineTool } from '../../../../../api/tools/tool.ts';
import { migratedDatabase } from '../../../../support/ledger/snapshot.ts';
import { toToolAccount } from '../../../../../api/billing/ledger/accounts.ts';
import { startServer, type PublicServer } from '../../../../../api/http/server.ts';
import { silent } from '../../../../support/api/sample.ts';
import { sampleToolApp, type ToolSample } from '../../../../support/tools/sample.ts';

let sample: ToolSample;
let server: PublicServer;
let url: URL;

beforeAll(async () => {
  sample = await sampleToolApp({ environment: { DATABASE_URL: migratedDatabase } });
  server = await startServer({ port: 0, host: '127.0.0.1', listener: sample.app, log: silent });
  url = new URL(`http://127.0.0.1:${server.port}/mcp`);
});
afterAll(async () => {
  await server.drain({ graceMs: 0, limitMs: 1_000, endStreams: () => undefined });
  await sample.stop();
});

type Era = 'auto' | 'legacy';

async function connected(era: Era, headers: Record<string, string> = {}): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: era } });
  await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers } }));
  return client;
}

for (const era of ['auto', 'legacy'] as const) {
  test(`${era}: tools are listed in their order, with schemas and what may be assumed of them`, async () => {
    const client = await connected(era);
    assert.equal(client.getNegotiatedProtocolVersion(), era === 'auto' ? '2026-07-28' : '2025-11-25');
    const { tools } = await client.listTools();
    assert.deepEqual(
      tools.map(({ name }) => name),
      ['echo', 'draw', 'fail', 'one_of', 'search_tools', 'call_tool', 'off', 'asks'],
    );
    assert.deepEqual(tools[0]?.annotations, {
      readOnlyHint: true,
      destructiveHint: false,
      idempotentHint: true,
      openWorldHint: false,
    });
    assert.deepEqual(tools[0].inputSchema.required, ['text']);
    assert.match(tools[6]?.description ?? '', /Not available here\. .*tools\.gotenberg\.enabled/);
    await client.close();
  });

  test(`${era}: a result is structured, and the same as text [spec tools.mcp]`, async () => {
    const client = await connected(era);
    await client.listTools();
    const answer = await client.callTool({ name: 'echo', arguments: { query: 'hi', times: 2, s: 'mine' } });
    const structured = answer.structuredContent as { result: { echoed: string; session: string }; cost_usd: number };
    assert.deepEqual([structured.result.echoed, structured.result.session, structured.cost_usd], ['hihi', 'mine', 0]);
    assert.deepEqual(answer.content, [{ type: 'text', text: JSON.stringify(structured) }]);
    await client.close();
  });

  test(`${era}: a file is a link, and inside when it is small`, async () => {
    const client = await connected(era);
    const kinds = async (fields: Record<string, unknown>): Promise<string[]> =>
      (await client.callTool({ name: 'draw', arguments: fields })).content.map(({ type }) => type);
    assert.deepEqual(await kinds({ format: 'png' }), ['text', 'resource_link', 'image']);
    assert.deepEqual(await kinds({ format: 'svg' }), ['text', 'resource_link', 'resource']);
    assert.deepEqual(await kinds({ format: 'png', bytes: 100_000 }), ['text', 'resource_link']);
    assert.deepEqual(await kinds({ format: 'png', bytes: 100_000, raw: true }), ['text', 'resource_link', 'image']);
    await client.close();
  });

  test(`${era}: what a link names can be read, as a resource or by any HTTP client, and is not charged for again`, async () => {
    const client = await connected(era);
    const earned = (): Promise<unknown> => sample.models.ledger.get().ledger.balance(toToolAccount('draw'));
    for (const [format, mimeType, field] of [
      ['png', 'image/png', 'blob'],
      ['svg', 'image/svg+xml', 'text'],
    ] as const) {
      const [, link] = (await client.callTool({ name: 'draw', arguments: { format, bytes: 3 } })).content;
      assert.ok(link?.type === 'resource_link');
      const before = await earned();
      const { contents } = await client.readResource({ uri: link.uri });
      assert.deepEqual(contents, [{ uri: link.uri, mimeType, [field]: field === 'blob' ? 'QUFB' : 'AAA' }]);
      assert.equal(await (await sample.request(link.uri.replace('https://moorage.test', ''))).text(), 'AAA');
      assert.equal(await earned(), before);
    }
    assert.deepEqual((await client.listResources()).resources, []);
    assert.deepEqual(
      (await client.listResourceTemplates()).resourceTemplates.map(({ uriTemplate }) => uriTemplate),
      ['https://moorage.test/t/artifacts/{id}'],
    );
    for (const uri of [
      'https://moorage.test/t/artifacts/AAAAAAAAAAAAAAAAAAAAAA',
      'file:///etc/passwd',
      'https://moorage.test/t/draw',
    ])
      await assert.rejects(client.readResource({ uri }), /expired/);
    await client.close();
  });

  test(`${era}: a problem is a result that says what to fix; an unknown tool an error that names the nearest`, async () => {
    const client = await connected(era);
    await client.listTools();
    for (const [name, fields, detail] of [
      ['echo', {}, /^Argument "text" is missing/],
      ['fail', { how: 'unprocessable' }, /line 3/],
      ['off', {}, /tools\.gotenberg/],
      ['fail', { how: 'throw' }, /on our side/],
    ] as const) {
      const answer = await client.callTool({ name, arguments: fields });
      assert.equal(answer.isError, true);
      assert.match((answer.structuredContent as { problem: { detail: string } }).problem.detail, detail);
      assert.doesNotMatch(JSON.stringify(answer), /hunter2/);
    }
    await assert.rejects(client.callTool({ name: 'ecko', arguments: {} }), /Did you mean echo/);
    await client.close();
  });

  test(`${era}: who asks for progress hears it rise`, async () => {
    const client = await connected(era);
    const heard: number[] = [];
    await client.callTool(
      { name: 'one_of', arguments: { url: 'x' } },
      {
        onprogress: ({ progress }) => {
          heard.push(progress);
        },
      },
    );
    assert.deepEqual(heard, [0.5, 1]);
    await client.close();
  });

  test(`${era}: a key that cannot be checked is refused, in words`, async () => {
    const client = await connected(era, { authorization: 'Bearer sk-12345678' });
    const answer = await client.callTool({ name: 'echo', arguments: { text: 'x' } });
    assert.match(JSON.stringify(answer.structuredContent), /models-unconfigured/);
    await client.close();
  });
}

test('pages of other origins, foreign hosts and long bodies are refused', async () => {
  const send = (
    headers: Record<string, string>,
    body = '{"jsonrpc":"2.0","id":1,"method":"ping"}',
  ): Promise<Response> =>
    sample.request('http://moorage.test/mcp', {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        host: 'moorage.test',
        ...headers,
      },
      body,
    });
  assert.equal((await send({})).status, 200);
  assert.equal((await send({ origin: 'https://moorage.test' })).status, 200);
  assert.equal((await send({ origin: 'https://evil.example' })).status, 403);
  assert.equal((await send({ host: 'evil.example' })).status, 403);
  assert.equal(
    (await send({}, `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"${'x'.repeat(4_600_000)}"}}`)).status,
    413,
  );
});

for (const revision of ['2025-03-26', '2025-06-18', '2025-11-25']) {
  test(`${revision}: a client of this revision initializes, lists and calls`, async () => {
    const send = async (method: string, params: Record<string, unknown>): Promise<Record<string, unknown>> => {
      const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
      const answer = await fetch(url, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          ...(method === 'initialize' || revision === '2025-03-26' ? {} : { 'mcp-protocol-version': revision }),
        },
        body,
      });
      const text = await answer.text();
      assert.equal(answer.status, 200, text);
      return (JSON.parse(text.replace(/^[^{]*data: /s, '')) as { result: Record<string, unknown> }).result;
    };
    const { protocolVersion, capabilities } = await send('initialize', {
      protocolVersion: revision,
      capabilities: {},
      clientInfo: { name: 'test', version: '1' },
    });
    assert.deepEqual([protocolVersion, Object.keys(capabilities as object)], [revision, ['tools', 'resources']]);
    assert.equal(((await send('tools/list', {}))['tools'] as unknown[]).length, 8);
    assert.match(
      JSON.stringify(await send('tools/call', { name: 'echo', arguments: { text: 'ahoy' } })),
      /"echoed":"ahoy"/,
    );
  });
}

/** A message of 2025, as its text. */
async function send(
  message: Record<string, unknown>,
  headers: Record<string, string> = {},
  at = url,
): Promise<{ status: number; session: string | null; text: string }> {
  const response = await fetch(at, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2025-11-25',
      ...headers,
    },
    body: JSON.stringify({ jsonrpc: '2.0', ...message }),
  });
  return { status: response.status, session: response.headers.get('mcp-session-id'), text: await response.text() };
}

test('a message without what it needs is refused in a sentence that names the field', async () => {
  for (const [message, words] of [
    [{ method: 'tools/call', params: { arguments: {} } }, /params\.name is missing\. Send the name of a tool/],
    [{ method: 'tools/call', params: { name: 7 } }, /params\.name must be a string/],
    [{ method: 'tools/call' }, /params\.name is missing/],
    [{ method: 'tools/call', params: { name: 'echo', arguments: [1] } }, /params\.arguments must be an object/],
    [{ method: 'resources/read', params: {} }, /params\.uri is missing/],
  ] as const) {
    const { text } = await send({ id: 1, ...message });
    assert.match(text, words);
    assert.match(text, /-32602/);
    assert.doesNotMatch(text, /invalid_type|expected|\[\\n/);
  }
});

test('a client that accepts anything gets an answer', async () => {
  for (const accept of ['*/*', 'text/html, */*;q=0.1'])
    assert.match((await send({ id: 1, method: 'tools/list' }, { accept })).text, /search_tools/, accept);
  assert.equal((await send({ id: 1, method: 'tools/list' }, { accept: 'text/html' })).status, 406);
});

test('a session says whose requests are canceled: nobody else ends them', async () => {
  const begun = Promise.withResolvers<AbortSignal>();
  const slow = defineTool({
    name: 'slow',
    title: 'Slow',
    description: 'Of the tests.',
    price: '0',
    openWorld: false,
    input: z.strictObject({}),
    output: z.object({ ok: z.boolean() }),
    example: {},
    async run(_input, { signal }) {
      begun.resolve(signal);
      await sleep(20_000, undefined, { signal });
      return { result: { ok: true } };
    },
  });
  const own = await sampleToolApp({ tools: [slow], environment: { DATABASE_URL: migratedDatabase } });
  const serving = await startServer({ port: 0, host: '127.0.0.1', listener: own.app, log: silent });
  const at = new URL(`http://127.0.0.1:${serving.port}/mcp`);
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } };
  const initialize = async (): Promise<string> =>
    (await send({ id: 0, method: 'initialize', params }, {}, at)).session ?? assert.fail('no session');
  const [mine, other] = [await initialize(), await initialize()];
  assert.ok(mine.length >= 32 && other !== mine);
  const call = send({ id: 7, method: 'tools/call', params: { name: 'slow' } }, { 'mcp-session-id': mine }, at);
  const signal = await begun.promise;
  const cancel = (headers: Record<string, string>, requestId: number | string): Promise<unknown> =>
    send({ method: 'notifications/cancelled', params: { requestId } }, headers, at);
  await cancel({}, 7);
  await cancel({ 'mcp-session-id': other }, 7);
  await cancel({ 'mcp-session-id': mine }, 8);
  await cancel({ 'mcp-session-id': mine }, '7');
  assert.equal(signal.aborted, false);
  await cancel({ 'mcp-session-id': mine }, 7);
  assert.equal(signal.aborted, true);
  assert.match((await call).text, /canceled/);
  await serving.drain({ graceMs: 0, limitMs: 1_000, endStreams: () => undefined });
  await own.stop();
});
