// /mcp with the official client, in the current revision and in those of 2025.
import assert from 'node:assert/strict';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { afterAll, beforeAll, test } from 'vitest';
import { migratedDatabase } from '../../../support/ledger/snapshot.ts';
import { toolAccount } from '../../../../api/billing/ledger/accounts.ts';
import { startServer, type PublicServer } from '../../../../api/http/server.ts';
import { silent } from '../../../support/api/sample.ts';
import { sampleToolApp, type ToolSample } from '../../../support/tools/sample.ts';

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
      ['echo', 'draw', 'fail', 'one_of', 'off', 'asks'],
    );
    assert.deepEqual(tools[0]?.annotations, {
      title: 'Echo',
      readOnlyHint: true,
      destructiveHint: false,
      idempotentHint: true,
      openWorldHint: false,
    });
    assert.deepEqual(tools[0].inputSchema.required, ['text']);
    assert.match(tools[4]?.description ?? '', /Not available here\. .*tools\.gotenberg\.enabled/);
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
    const earned = (): Promise<unknown> => sample.models.ledger.get().ledger.balance(toolAccount('draw'));
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
    assert.equal(((await send('tools/list', {}))['tools'] as unknown[]).length, 6);
    assert.match(
      JSON.stringify(await send('tools/call', { name: 'echo', arguments: { text: 'ahoy' } })),
      /"echoed":"ahoy"/,
    );
  });
}
