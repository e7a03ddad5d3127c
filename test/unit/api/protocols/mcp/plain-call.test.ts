// Calls that are answered without the library's server: the answer is the one that the library gives, for each of them
// as for those that only the library answers.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { parsePlainCall } from '../../../../../api/protocols/mcp/messages.ts';
import { migratedDatabase } from '../../../../support/ledger/snapshot.ts';
import { sampleToolApp, type ToolSample } from '../../../../support/tools/sample.ts';

let sample: ToolSample;
beforeAll(async () => {
  sample = await sampleToolApp({ environment: { DATABASE_URL: migratedDatabase } });
});
afterAll(() => sample.stop());

const meta = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
};
const common = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };

interface SentCall {
  readonly headers: Record<string, string>;
  readonly body: { readonly id: string | number; readonly params: Record<string, unknown> } & Record<string, unknown>;
}

const body = (params: Record<string, unknown>): SentCall['body'] => ({
  jsonrpc: '2.0',
  id: 'a-7',
  method: 'tools/call',
  params,
});
const eras = {
  '2026-07-28': (params: Record<string, unknown>): SentCall => ({
    headers: {
      ...common,
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'tools/call',
      'mcp-name': String(params['name']),
    },
    body: body({ ...params, _meta: meta }),
  }),
  '2025-11-25': (params: Record<string, unknown>): SentCall => ({
    headers: { ...common, 'mcp-protocol-version': '2025-11-25' },
    body: body(params),
  }),
  '2025-03-26': (params: Record<string, unknown>): SentCall => ({
    headers: { ...common, 'mcp-protocol-version': '2025-03-26' },
    body: body(params),
  }),
};

/** The same message with something in its envelope that only the library reads. */
function forTheLibrary({ headers, body: { params, ...rest } }: SentCall): SentCall {
  const envelope = { ...(params['_meta'] as object | undefined), 'test/more': 1 };
  return { headers, body: { ...rest, id: rest['id'], params: { ...params, _meta: envelope } } };
}

/** What came back, without what differs from call to call. */
async function answerTo({ headers, body: sent }: SentCall): Promise<unknown> {
  const response = await sample.request('/mcp', { method: 'POST', headers, body: JSON.stringify(sent) });
  const text = await response.text();
  const id = response.headers.get('x-request-id') ?? assert.fail('no id');
  const json = text
    .slice(text.indexOf('{'))
    .trim()
    .replaceAll(id, 'ID')
    .replaceAll(/(latency_ms\\?"):\d+/g, '$1:0')
    .replaceAll(/\/artifacts\/[\w-]+/g, '/artifacts/FILE')
    .replaceAll(/(expires_at\\?":\\?")[^"\\]+/g, '$1TIME');
  return { status: response.status, answer: JSON.parse(json) as unknown };
}

const calls: Readonly<Record<string, Record<string, unknown>>> = {
  'a result': { name: 'echo', arguments: { text: 'hello', times: 3 } },
  'no arguments': { name: 'echo' },
  'a wrong argument': { name: 'echo', arguments: { text: 1, more: true } },
  'a file': { name: 'draw', arguments: { format: 'svg' } },
  'a tool that fails': { name: 'fail', arguments: {} },
  'a tool that is off': { name: 'off', arguments: {} },
  'a tool that does not exist': { name: 'ecko', arguments: {} },
};

for (const [era, send] of Object.entries(eras))
  for (const [what, params] of Object.entries(calls))
    test(`${era}, ${what}: as the library answers it`, async () => {
      const sent = send(params);
      const others = forTheLibrary(sent);
      assert.notEqual(parsePlainCall(new Headers(sent.headers), sent.body), undefined);
      assert.equal(parsePlainCall(new Headers(others.headers), others.body), undefined);
      assert.deepEqual(await answerTo(sent), await answerTo(others));
    });

const modern = eras['2026-07-28']({ name: 'echo', arguments: { text: 'hello' } });
const earlier = eras['2025-11-25']({ name: 'echo', arguments: { text: 'hello' } });
const without = (headers: Record<string, string>, name: string): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).filter(([one]) => one !== name));
const left: Readonly<Record<string, SentCall>> = {
  'a header that names another tool': { ...modern, headers: { ...modern.headers, 'mcp-name': 'draw' } },
  'a header that names another method': { ...modern, headers: { ...modern.headers, 'mcp-method': 'tools/list' } },
  'another version in the header than in the envelope': {
    ...modern,
    headers: { ...modern.headers, 'mcp-protocol-version': '2025-11-25' },
  },
  'the newer version without an envelope': { ...earlier, headers: modern.headers },
  'an unknown version': { ...earlier, headers: { ...earlier.headers, 'mcp-protocol-version': '2024-01-01' } },
  'no version': { ...earlier, headers: without(earlier.headers, 'mcp-protocol-version') },
  'a client that takes no streams': { ...earlier, headers: { ...earlier.headers, accept: 'application/json' } },
  'a wish for progress': {
    ...earlier,
    body: { ...earlier.body, params: { ...earlier.body.params, _meta: { progressToken: 1 } } },
  },
  'a task': { ...earlier, body: { ...earlier.body, params: { ...earlier.body.params, task: { ttl: 1 } } } },
  'a notification': { ...earlier, body: { ...earlier.body, id: undefined as unknown as string } },
  'another method': { ...earlier, body: { ...earlier.body, method: 'tools/list' } },
  'arguments that are no object': { ...earlier, body: body({ name: 'echo', arguments: [1] }) },
};

for (const [what, { headers, body: sent }] of Object.entries(left))
  test(`left to the library: ${what}`, () => {
    assert.equal(parsePlainCall(new Headers(headers), JSON.parse(JSON.stringify(sent))), undefined);
  });

test('a batch is left to the library', () => {
  assert.equal(parsePlainCall(new Headers(earlier.headers), [earlier.body]), undefined);
});
