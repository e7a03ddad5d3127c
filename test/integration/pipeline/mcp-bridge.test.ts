// The bridge in front of MCP servers, with the official client: everything that a session says passes, and no process is left.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { randomUUID } from 'node:crypto';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { beforeAll, test } from 'vitest';
import { listen } from '../../support/free-port.ts';
import {
  compileBridge,
  type ConnectedClient,
  createClient,
  listProcesses,
  type RunningBridge,
  sessionServer,
  spawnBridge,
  startBridge,
  waitFor,
} from '../../support/mcp/bridge.ts';

let program: string;
beforeAll(async () => {
  program = await compileBridge();
});

async function callText(
  { client }: ConnectedClient,
  name: string,
  fields: Record<string, unknown> = {},
): Promise<string> {
  const { content } = await client.callTool({ name, arguments: fields });
  const [first] = content;
  assert.ok(first?.type === 'text');
  return first.text;
}

const post = (bridge: RunningBridge, body: unknown, headers: Record<string, string> = {}): Promise<Response> =>
  fetch(`${bridge.origin}/mcp`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });

const initialize = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'raw', version: '1' } },
};

test('lists and calls tools, each session in a process of its own', async () => {
  await using bridge = await startBridge(program);
  const [one, other] = [await bridge.connect(), await bridge.connect()];
  const { tools } = await one.client.listTools();
  assert.ok(tools.some(({ name, description }) => name === 'echo' && description === 'Repeats.'));
  assert.deepEqual(one.client.getServerVersion(), { name: 'stdio-sample', version: '1.2.3' });
  assert.equal(await callText(one, 'echo', { text: 'line\nbreak "quoted" ü \u2028' }), 'line\nbreak "quoted" ü \u2028');
  assert.notEqual(await callText(one, 'pid'), await callText(other, 'pid'));
});

test('passes progress and logs of the server on', async () => {
  await using bridge = await startBridge(program);
  const connected = await bridge.connect();
  const seen: (number | undefined)[] = [];
  const logs: unknown[] = [];
  connected.client.setNotificationHandler('notifications/message', ({ params }) => {
    logs.push(params.data);
  });
  await connected.client.callTool(
    { name: 'progress', arguments: { steps: 3 } },
    {
      onprogress: ({ progress }) => {
        seen.push(progress);
      },
    },
  );
  await callText(connected, 'log', { text: 'from the server' });
  await waitFor(() => logs.length === 1);
  assert.deepEqual([seen, logs], [[1, 2, 3], ['from the server']]);
});

test('passes requests of the server to the client on, and their responses back', async () => {
  await using bridge = await startBridge(program);
  const client = createClient({ capabilities: { sampling: {}, elicitation: { form: {} } } });
  client.setRequestHandler('sampling/createMessage', ({ params }) => ({
    role: 'assistant',
    model: 'm',
    content: { type: 'text', text: `${JSON.stringify(params.messages[0]?.content)}!` },
  }));
  client.setRequestHandler('elicitation/create', ({ params }) => ({
    action: 'accept',
    content: { name: params.message },
  }));
  const connected = await bridge.connect(client);
  assert.match(await callText(connected, 'sample'), /hello.*!/);
  assert.match(await callText(connected, 'elicit'), /accept.*Your name\?/);
  const both = await Promise.all([callText(connected, 'sample'), callText(connected, 'elicit')]);
  assert.match(both.join(' '), /hello.*accept/);
});

test('passes a cancellation on', async () => {
  await using bridge = await startBridge(program);
  const { client } = await bridge.connect();
  const cancel = new AbortController();
  const call = client.callTool({ name: 'wait', arguments: {} }, { signal: cancel.signal });
  await waitFor(() => bridge.log().includes(': waiting'));
  cancel.abort();
  await assert.rejects(call);
  await waitFor(() => bridge.log().includes(': cancelled'));
});

test('keeps standard error and other output from callers, in the log under the short id of the session', async () => {
  await using bridge = await startBridge(program);
  const connected = await bridge.connect();
  assert.equal(await callText(connected, 'noise'), 'quiet again');
  await waitFor(() => bridge.log().includes('secret on standard error'));
  const short = connected.transport.sessionId?.slice(0, 6) ?? '';
  assert.match(bridge.log(), new RegExp(String.raw`\[${short}\]: secret on standard error`));
  assert.match(bridge.log(), new RegExp(String.raw`\[${short}\]: no protocol`));
});

test('gives the server its variables, but neither PORT nor those of the bridge', async () => {
  await using bridge = await startBridge(program, { variables: { API_KEY: 'k', MCP_BRIDGE_SESSIONS: '3' } });
  const connected = await bridge.connect();
  const values = await Promise.all(
    ['API_KEY', 'PORT', 'MCP_BRIDGE_SESSIONS'].map((name) => callText(connected, 'variable', { name })),
  );
  assert.deepEqual(values, ['k', '(not set)', '(not set)']);
});

test("sets variables of a client for its session's process alone, and takes no others", async () => {
  await using bridge = await startBridge(program, {
    options: ['--transport', 'stdio', '--session-variable', 'API_KEY'],
    variables: { API_KEY: 'of the author' },
  });
  const header = 'Moorage-Mcp-Environment';
  const open = async (value: string): Promise<ConnectedClient> => {
    const transport = new StreamableHTTPClientTransport(new URL('/mcp', bridge.origin), {
      requestInit: { headers: { [header]: value } },
    });
    const client = createClient();
    await client.connect(transport);
    return { client, transport };
  };
  const [own, plain] = [await open('{"API_KEY":"of the \\u00fcser"}'), await bridge.connect()];
  assert.deepEqual(await Promise.all([own, plain].map((each) => callText(each, 'variable', { name: 'API_KEY' }))), [
    'of the üser',
    'of the author',
  ]);
  for (const [value, text] of [
    ['{"NODE_OPTIONS":"secret"}', /takes no variable \\"NODE_OPTIONS\\"\. It takes: API_KEY/],
    ['secret', /must be a JSON object/],
    ['{"API_KEY":"a\\u0000secret"}', /zero byte/],
  ] as const) {
    const response = await fetch(new URL('/mcp', bridge.origin), {
      method: 'POST',
      headers: { 'content-type': 'application/json', [header]: value },
      body: '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}',
    });
    assert.equal(response.status, 400);
    assert.match(await response.text(), text);
  }
  assert.doesNotMatch(bridge.log(), /secret|of the/);
});

test('ends every process of a session at DELETE, also those that left its group or ignore SIGTERM', async () => {
  const mark = randomUUID();
  await using bridge = await startBridge(program, { variables: { MARK: mark } });
  const own = bridge.process.pid ?? 0;
  const connected = await bridge.connect();
  const started = await callText(connected, 'leave');
  await callText(connected, 'ignore');
  assert.equal(listProcesses(mark).length, 4, started);
  await connected.transport.terminateSession();
  assert.deepEqual(listProcesses(mark), [own]);
});

test('ends a session whose client has gone, and one that is not used', async () => {
  const mark = randomUUID();
  await using bridge = await startBridge(program, {
    variables: { MARK: mark, MCP_BRIDGE_GONE_SECONDS: '1', MCP_BRIDGE_IDLE_SECONDS: '2' },
  });
  const [first, second] = [await post(bridge, initialize), await post(bridge, initialize)];
  await Promise.all([first.text(), second.text()]);
  const leave = new AbortController();
  await fetch(`${bridge.origin}/mcp`, {
    headers: { accept: 'text/event-stream', 'mcp-session-id': first.headers.get('mcp-session-id') ?? '' },
    signal: leave.signal,
  });
  leave.abort();
  await waitFor(() => bridge.log().includes('session ended: its client has gone'));
  await waitFor(() => bridge.log().includes('session ended: it was not used'));
  await waitFor(() => listProcesses(mark).length === 1);
});

test('answers waiting requests if the process ends, and asks the client for a new session', async () => {
  await using bridge = await startBridge(program);
  const connected = await bridge.connect();
  await assert.rejects(
    callText(connected, 'exit', { code: 3 }),
    /ended before it answered: its process ended with exit code 3/,
  );
  await assert.rejects(callText(connected, 'pid'), /404|not found/i);
  assert.equal(await callText(await bridge.connect(), 'echo', { text: 'again' }), 'again');
});

test('continues a stream where the client lost it', async () => {
  await using bridge = await startBridge(program);
  const first = await post(bridge, initialize);
  const session = { 'mcp-session-id': first.headers.get('mcp-session-id') ?? '' };
  await first.text();
  await (await post(bridge, { jsonrpc: '2.0', method: 'notifications/initialized' }, session)).text();
  const call = {
    jsonrpc: '2.0',
    id: 7,
    method: 'tools/call',
    params: { name: 'progress', arguments: { steps: 2 }, _meta: { progressToken: 'p' } },
  };
  const whole = await (await post(bridge, call, session)).text();
  const [id] = /(?<=^id: ).*/m.exec(whole) ?? [];
  assert.ok(id !== undefined);
  const rest = await fetch(`${bridge.origin}/mcp`, {
    headers: { ...session, accept: 'text/event-stream', 'last-event-id': id },
  });
  const events = (await rest.text()).match(/^data: .*/gm) ?? [];
  assert.deepEqual(events, (whole.match(/^data: .*/gm) ?? []).slice(1));
});

test('answers with JSON if the client takes no events, and takes batches', async () => {
  await using bridge = await startBridge(program);
  const first = await post(bridge, initialize, { accept: 'application/json' });
  assert.equal(first.headers.get('content-type'), 'application/json');
  const session = { 'mcp-session-id': first.headers.get('mcp-session-id') ?? '', accept: 'application/json' };
  assert.equal(((await first.json()) as { id: number }).id, 1);
  const ping = (id: number): unknown => ({ jsonrpc: '2.0', id, method: 'ping' });
  const batch = (await (await post(bridge, [ping(2), ping(3)], session)).json()) as { id: number }[];
  assert.deepEqual(batch.map(({ id }) => id).sort(), [2, 3]);
});

test.each([
  ['without a session', { jsonrpc: '2.0', id: 1, method: 'tools/list' }, {}, 400],
  ['in an unknown session', { jsonrpc: '2.0', id: 1, method: 'tools/list' }, { 'mcp-session-id': 'none' }, 404],
  ['that is no JSON', '{', {}, 400],
  ['of another type', '{}', { 'content-type': 'text/plain' }, 415],
  ['that is too large', `"${'x'.repeat(3000)}"`, {}, 413],
])('refuses a message %s', async (_, body, headers, status) => {
  await using bridge = await startBridge(program, { variables: { MCP_BRIDGE_MESSAGE_BYTES: '2000' } });
  const response = await post(bridge, body, headers);
  assert.equal(response.status, status);
  assert.equal(((await response.json()) as { jsonrpc: string }).jsonrpc, '2.0');
});

test('ends a session whose server sends too large a message', async () => {
  await using bridge = await startBridge(program, { variables: { MCP_BRIDGE_MESSAGE_BYTES: '20000' } });
  await assert.rejects(callText(await bridge.connect(), 'large', { bytes: 30_000 }), /more than 20000 bytes/);
});

test('refuses sessions beyond the limit with 503', async () => {
  await using bridge = await startBridge(program, { variables: { MCP_BRIDGE_SESSIONS: '1' } });
  const { transport } = await bridge.connect();
  const refused = await post(bridge, initialize);
  assert.deepEqual([refused.status, refused.headers.get('retry-after')], [503, '30']);
  await transport.terminateSession();
  assert.equal((await post(bridge, initialize)).status, 200);
});

test('shows a page with the tools, and ends with a reason if the server does not start', async () => {
  await using bridge = await startBridge(program);
  const page = await (await fetch(bridge.origin)).text();
  assert.match(page, /stdio-sample[\s\S]*<code>echo<\/code>/);
  const failing = [
    [
      ['sh', '-c', 'echo "API_KEY is required" >&2; exit 4'],
      /\]: API_KEY is required[\s\S]*does not answer initialize over stdio: its process ended with exit code 4/,
    ],
    [['no-such-program'], /"no-such-program" was not found/],
    [['sleep', '100'], /silent for 1s/],
  ] as const;
  for (const [command, reason] of failing) {
    await using failed = await spawnBridge(program, { command, variables: { MCP_BRIDGE_START_SECONDS: '1' } });
    await once(failed.process, 'close');
    assert.equal(failed.process.exitCode, 1);
    assert.match(failed.log(), reason);
  }
});

test('leaves no process behind after 50 sessions whose processes are killed', async () => {
  const mark = randomUUID();
  await using bridge = await startBridge(program, {
    command: sessionServer,
    variables: { MARK: mark, MCP_BRIDGE_SESSIONS: '100' },
  });
  const own = bridge.process.pid ?? 0;
  const visit = async (round: number): Promise<void> => {
    const connected = await bridge.connect();
    if (round % 5 === 0) await callText(connected, 'leave');
    const pid = Number(await callText(connected, 'pid'));
    if (round % 2 === 0) process.kill(pid, 'SIGKILL');
    else await connected.transport.terminateSession();
    await connected.client.close();
  };
  for (let round = 0; round < 50; round += 5) await Promise.all([0, 1, 2, 3, 4].map((more) => visit(round + more)));
  await waitFor(() => listProcesses(mark).length === 1);
  assert.deepEqual(listProcesses(mark), [own]);
});

test('leaves no process behind if it is killed itself', async () => {
  const mark = randomUUID();
  await using bridge = await startBridge(program, { variables: { MARK: mark } });
  // They would not end because their input does.
  for (let count = 0; count < 3; count += 1) await callText(await bridge.connect(), 'ignore');
  assert.equal(listProcesses(mark).length, 4);
  bridge.process.kill('SIGKILL');
  await waitFor(() => listProcesses(mark).length === 0);
});

test('adapts a server that speaks SSE', async () => {
  const events = await startEventServer();
  await using bridge = await startBridge(program, {
    options: ['--transport', 'sse', '--upstream-port', String(events.port), '--upstream-path', '/sse'],
    command: ['sleep', '1000'],
  });
  const response = await post(bridge, { ...initialize, id: 'first' }, { accept: 'application/json' });
  assert.deepEqual(await response.json(), { jsonrpc: '2.0', id: 'first', result: { echoed: 'initialize' } });
  events.close();
});

test('passes requests on to a server that only listens on loopback', async () => {
  const server = createServer((request, response) => {
    request.resume();
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ host: request.headers.host, url: request.url }));
  });
  const port = await listen(server);
  await using bridge = await startBridge(program, {
    options: ['--transport', 'http', '--upstream-port', String(port), '--upstream-path', '/api/mcp'],
    command: ['sleep', '1000'],
  });
  assert.deepEqual(await (await post(bridge, initialize)).json(), { host: `localhost:${port}`, url: '/api/mcp' });
  server.close();
});

/** Speaks the transport of the specification's first version: messages come by POST, responses in one stream. */
async function startEventServer(): Promise<{ readonly port: number; readonly close: () => void }> {
  const streams = new Map<string, (text: string) => void>();
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '', 'http://localhost');
    if (request.method === 'GET') {
      const id = randomUUID();
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      streams.set(id, (text) => response.write(text));
      response.write(`event: endpoint\ndata: /messages?id=${id}\n\n`);
      return;
    }
    void request
      .setEncoding('utf8')
      .toArray()
      .then((chunks: string[]) => {
        const { id, method } = JSON.parse(chunks.join('')) as { id?: unknown; method: string };
        const answer = JSON.stringify({ jsonrpc: '2.0', id, result: { echoed: method } });
        if (id !== undefined) streams.get(url.searchParams.get('id') ?? '')?.(`event: message\ndata: ${answer}\n\n`);
        response.writeHead(202).end();
      });
  });
  const port = await listen(server);
  return {
    port,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
