// The sessions that callers have with the MCP servers of apps, between their calls and at every limit.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { afterEach, beforeEach, test } from 'vitest';
import { z } from 'zod';
import { startServer, type PublicServer } from '../../../../api/http/server.ts';
import type { App } from '../../../../api/apps/hosted-apps.ts';
import { appToolResult, appTools } from '../../../../api/apps/index.ts';
import type { IdleState } from '../../../../crds/status.ts';
import { AppClient, type AppResponse } from '../../../../api/apps/calls/app-client.ts';
import { McpSessions } from '../../../../api/apps/operations/mcp-sessions.ts';
import { baseUrl, silent } from '../../../support/api/sample.ts';
import {
  addAgentPaths,
  type AppsSample,
  type AppsSampleOptions,
  sampleAppsServer,
} from '../../../support/apps/sample.ts';
import { StatefulApp } from '../../../support/mcp/stateful-app.ts';

/** Sessions that were ended after their tools were listed. */
const discoveries = 1;
const limits = { idleMs: 60_000, sweepMs: 60_000, perCaller: 2, perApp: 3 };
let sample: AppsSample;
let hosted: App;
let server: PublicServer;
let app: StatefulApp;

beforeEach(async () => {
  app = new StatefulApp();
  await start();
});
afterEach(stop);

async function start(
  changed: Partial<typeof limits> = {},
  operationDiscovery: AppsSampleOptions['operationDiscovery'] = { everyMs: 20, staleMs: 60_000, limitMs: 30_000 },
  state: IdleState = 'Awake',
): Promise<void> {
  sample = await sampleAppsServer({ mcpSessions: { ...limits, ...changed }, operationDiscovery });
  server = await startServer({ port: 0, host: '127.0.0.1', listener: sample.app, log: silent });
  hosted = await sample.host('notes', app.listener, (one) => addPlan(addAgentPaths(one), state));
  await until(() => sample.apps.findOperations('notes') !== undefined);
  assert.deepEqual(sample.apps.findOperations('notes')?.names, ['notes__count', 'notes__wait']);
}

/** A server over stdio that asks for variables. */
function addPlan(one: App, state: IdleState): App {
  const environment = ['API_KEY', 'REGION', 'NODE_OPTIONS'].map((name) => ({ name, secret: true, required: false }));
  const mcp = {
    file: 'server.py',
    transport: 'stdio',
    command: 'python server.py',
    path: '/mcp',
    bridged: true,
  } as const;
  const plan = { strategy: 'python', reason: '', mcp: { ...mcp, environment } } as const;
  const idle =
    state === 'Awake' ? {} : { idle: { state, since: new Date().toISOString(), number: 1, afterSeconds: 300 } };
  return { ...one, status: { ...one.status, plan, ...idle } };
}

async function stop(): Promise<void> {
  await server.drain({ graceMs: 0, limitMs: 1_000, endStreams: () => undefined });
  await sample.stop();
}

async function until(isTrue: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isTrue())) await sleep(5);
}

const readSessions = {
  name: 'test-sessions',
  text: 'select s::text as row from mcp_sessions s',
  row: z.object({ row: z.string() }),
};

async function readRows(): Promise<string[]> {
  return (await sample.models.ledger.get().database.query(readSessions, [])).map(({ row }) => row);
}

interface CallOptions {
  readonly session?: string;
  readonly address?: string;
  readonly name?: string;
  readonly environment?: string;
}

interface Answer {
  readonly text: string;
  readonly cost: number;
  readonly problem: string;
}

const answered = z.looseObject({
  result: z.looseObject({
    structuredContent: z.looseObject({
      result: z.looseObject({ text: z.string().default('') }).prefault({}),
      cost_usd: z.number().default(0),
      problem: z.looseObject({ type: z.string().default(''), detail: z.string().default('') }).prefault({}),
    }),
  }),
});

/** Calls a tool by POST, as a client without a library does. */
async function call(
  { session, address, name = 'notes__count', environment }: CallOptions = {},
  signal: AbortSignal | null = null,
): Promise<Answer> {
  const response = await fetch(`http://127.0.0.1:${server.port}/mcp/notes`, {
    method: 'POST',
    signal,
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2025-06-18',
      ...(session === undefined ? {} : { 'mcp-session-id': session }),
      ...(address === undefined ? {} : { 'x-forwarded-for': address }),
      ...(environment === undefined ? {} : { 'moorage-mcp-environment': environment }),
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: {} } }),
  });
  const text = (await response.text()).replace(/^[^{]*data: /s, '');
  const { result: value, cost_usd: cost, problem } = answered.parse(JSON.parse(text)).result.structuredContent;
  return { text: value.text, cost, problem: `${problem.type} ${problem.detail}`.trim() };
}

async function readUses(): Promise<string> {
  const text = await sample.registry.getSingleMetricAsString('moorage_app_calls_total');
  return text
    .split('\n')
    .filter((line) => line.includes('via="mcp"'))
    .join('; ');
}

test('keeps the session of a caller with an app between calls', async () => {
  const [first, second] = [await call(), await call()];
  assert.equal(second.text, first.text.replace(/ 1$/, ' 2'));
  assert.deepEqual([app.sessions.size, app.count('GET')], [1, 0]);
});

test('gives each caller, and each session of a client, a session of its own', async () => {
  const answers = [await call(), await call({ session: 'a' }), await call({ session: 'b', address: '203.0.113.7' })];
  assert.deepEqual(
    answers.map(({ text }) => text.split(' ')[1]),
    ['1', '1', '1'],
  );
  assert.equal(app.sessions.size, 3);
  assert.match((await call({ session: 'a' })).text, / 2$/);
  // The same id of another caller names another session.
  assert.match((await call({ session: 'a', address: '203.0.113.7' })).text, / 1$/);
});

test('ends the session of the app when the client ends its own, and no other', async () => {
  await call();
  await call({ session: 'a' });
  const end = (headers: Record<string, string>): Promise<Response> =>
    fetch(`http://127.0.0.1:${server.port}/mcp/notes`, { method: 'DELETE', headers });
  assert.equal((await end({ 'mcp-session-id': 'a', 'x-forwarded-for': '203.0.113.7' })).status, 204);
  assert.equal(app.sessions.size, 2);
  assert.equal((await end({ 'mcp-session-id': 'a' })).status, 204);
  assert.equal(app.sessions.size, 1);
  assert.match((await call()).text, / 2$/);
});

test('ends a session without calls, and keeps those in use when it stops', async () => {
  await stop();
  app = new StatefulApp();
  await start({ idleMs: 1, sweepMs: 1 });
  await call();
  await until(() => app.sessions.size === 0);
  const waiting = call({ name: 'notes__wait' });
  await until(() => app.waiting.length === 1);
  await sleep(50);
  assert.equal(app.sessions.size, 1);
  for (const answer of app.waiting) answer();
  await waiting;
  await until(() => app.sessions.size === 0);
  await stop();
  app = new StatefulApp();
  await start();
  await call();
  await stop();
  assert.equal(app.sessions.size, 1);
  await start();
});

test('ends a session whose start failed', async () => {
  app.refused = 'notifications/initialized';
  assert.match((await call()).problem, /app-unreachable .* status 500/);
  await until(() => app.sessions.size === 0);
  app.refused = undefined;
  assert.match((await call()).text, / 1$/);
});

test('waits only for the end of the own session', async () => {
  const own = createServer(app.listener).listen(0, '127.0.0.1');
  await once(own, 'listening');
  const origin = `http://127.0.0.1:${(own.address() as AddressInfo).port}`;
  const target = {
    id: 'notes',
    slug: 'notes',
    title: '',
    uid: 'uid',
    commit: 'commit',
    origin,
    publicOrigin: origin,
    author: '',
  };
  const live = { ...target, agentPaths: { openapi: '/openapi.json', mcp: '/mcp' } };
  const held = new Set<string | undefined>();
  let isHeld = false;
  class HoldingClient extends AppClient {
    override async send(...given: Parameters<AppClient['send']>): Promise<AppResponse> {
      const [, { method, headers }] = given;
      if (method !== 'DELETE' || !held.has(headers['mcp-session-id'])) return super.send(...given);
      isHeld = true;
      return new Promise(() => undefined);
    }
  }
  const appClient = new HoldingClient();
  const { ledger } = sample.models;
  const sessions = new McpSessions({ ledger, directory: { listLive: () => [live] }, appClient, limits });
  const endpoint = { appClient, target: live, path: '/mcp', id: 'id', limitMs: 60_000, maxBytes: 1_000_000 };
  const callIn = (session: string): Promise<unknown> => {
    const owner = { caller: 'caller', session };
    const { signal } = new AbortController();
    return sessions.call({ endpoint, owner, name: 'count', args: {}, id: 'id', signal });
  };
  await callIn('a');
  held.add([...app.sessions.keys()].at(-1));
  await callIn('b');
  // At the limit, the oldest ends.
  await callIn('c');
  await until(() => isHeld);
  const before = app.sessions.size;
  await sessions.end({ caller: 'caller', session: 'b' });
  assert.equal(app.sessions.size, before - 1);
  await appClient.close();
  own.close();
});

test('sends no end of a session to an app that is asleep', async () => {
  await stop();
  app = new StatefulApp();
  await start({ idleMs: 500, sweepMs: 1 });
  await call();
  const { metadata } = hosted;
  sample.store.set({ ...addPlan(hosted, 'Asleep'), metadata: { ...metadata, resourceVersion: '2' } });
  await until(async () => (await readRows()).length === 0);
  await sleep(50);
  assert.deepEqual([app.sessions.size, app.count('DELETE')], [1, discoveries]);
});

test('initializes an app without sessions once, and stores nothing', async () => {
  app.isSessionless = true;
  const before = app.count('initialize');
  for (const session of ['a', 'b', 'c', 'd']) assert.equal((await call({ session })).problem, '');
  assert.deepEqual([app.count('initialize') - before, await readRows()], [1, []]);
});

test('stores hashes, and no id or value of a caller', async () => {
  await call({ session: 'session-of-the-caller', environment: '{"API_KEY":"value-of-the-caller"}' });
  const [row = '', ...others] = await readRows();
  assert.deepEqual(others, []);
  assert.match(row, /uid-notes.*2025-06-18/);
  assert.doesNotMatch(row, /of-the-caller|127\.0\.0\.1|API_KEY/);
});

test('reports an app that ends the connection of a call, and does not wait for its answer', async () => {
  const waiting = call({ name: 'notes__wait' });
  await until(() => app.cut.length === 1);
  for (const end of app.cut) end();
  const { text, cost } = await waiting;
  assert.deepEqual([text, cost], ['The app ended the connection before it answered.', 0]);
});

test('starts another session once if the app has lost it, and counts one use', async () => {
  await call();
  app.sessions.clear();
  const answer = await call();
  assert.match(answer.text, / 1$/);
  assert.equal(answer.cost, 0.0001);
  assert.equal(await readUses(), 'moorage_app_calls_total{via="mcp",outcome="answered"} 2');
  // Never with a session that has just begun.
  const listener = app.sessions.set.bind(app.sessions);
  app.sessions.set = (id, count) => (count === 0 ? app.sessions : listener(id, count));
  app.sessions.clear();
  const before = app.count('initialize');
  const failed = await call({ address: '203.0.113.7' });
  assert.match(failed.problem, /app-unreachable The MCP endpoint \/mcp of notes answered with status 404\./);
  assert.deepEqual([failed.cost, app.count('initialize') - before], [0, 1]);
});

test('charges for calls of tools only, and not for initialize and lists', async () => {
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: 'legacy' } });
  await client.connect(new StreamableHTTPClientTransport(new URL(`http://127.0.0.1:${server.port}/mcp/notes`)));
  await client.listTools();
  await client.listTools();
  assert.equal(await readUses(), '');
  await client.callTool({ name: 'notes__count', arguments: {} });
  assert.equal(await readUses(), 'moorage_app_calls_total{via="mcp",outcome="answered"} 1');
  await client.close();
});

test('passes progress to a client that asks for it if it increases, in the units of the app', async () => {
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: 'legacy' } });
  await client.connect(new StreamableHTTPClientTransport(new URL(`http://127.0.0.1:${server.port}/mcp/notes`)));
  const seen: unknown[] = [];
  const options = { onprogress: (progress: unknown) => seen.push(progress) };
  await client.callTool({ name: 'notes__count', arguments: {} }, options);
  assert.deepEqual(seen, [{ progress: 3, total: 7, message: 'half' }]);
  await client.close();
});

test('passes on that a caller has canceled, and keeps the session', async () => {
  await call();
  const caller = new AbortController();
  const waiting = call({ name: 'notes__wait' }, caller.signal).catch((error: unknown) => error);
  await until(() => app.waiting.length === 1);
  caller.abort();
  assert.ok((await waiting) instanceof Error);
  await until(() => app.canceled.length === 1);
  assert.match((await call()).text, / 2$/);
});

test('ends the session that has been idle the longest at a limit, and refuses if all are in use', async () => {
  await call({ session: 'a' });
  await call({ session: 'b' });
  await call({ session: 'a' });
  await call({ session: 'c' });
  assert.match((await call({ session: 'a' })).text, / 3$/);
  // Two sessions of the same caller wait for the app.
  const waiting = ['a', 'c'].map((session) => call({ session, name: 'notes__wait' }));
  await until(() => app.waiting.length === 2);
  assert.match((await call({ session: 'd' })).problem, /too-many-calls You have 2 sessions with notes in use/);
  const other = call({ session: 'a', address: '203.0.113.7', name: 'notes__wait' });
  await until(() => app.waiting.length === 3);
  assert.match(
    (await call({ address: '203.0.113.8' })).problem,
    /tool-busy notes has reached its limit of 3 sessions, and all of them are in use/,
  );
  for (const answer of app.waiting) answer();
  await Promise.all([...waiting, other]);
  assert.equal((await call({ address: '203.0.113.8' })).problem, '');
});

test('gives the values of a caller to the session that starts with them, and shares it with no other values', async () => {
  const environment = '{"API_KEY":"k\\u00e9y"}';
  await call({ environment });
  assert.deepEqual(
    app.variables.filter((each) => each.startsWith('initialize')),
    [`initialize ${environment}`],
  );
  assert.ok(app.variables.every((each) => !each.startsWith('tools/call')));
  assert.match((await call({ environment })).text, / 2$/);
  const others = [await call(), await call({ environment: '{"API_KEY":"other"}' })];
  assert.deepEqual(
    others.map(({ text }) => text.split(' ')[1]),
    ['1', '1'],
  );
});

test('refuses variables that the server does not ask for, or that are code, without repeating a value', async () => {
  for (const [environment, message] of [
    ['{"OTHER":"hidden"}', /takes? from callers: OTHER\. It takes API_KEY, REGION\./],
    ['{"NODE_OPTIONS":"hidden"}', /takes? from callers: NODE_OPTIONS\./],
    ['{"API_KEY":1}', /must be a JSON object whose values are text/],
    ['hidden', /must be a JSON object whose values are text/],
    [`{"API_KEY":"${'x'.repeat(9_000)}"}`, /must be a JSON object/],
  ] as const) {
    const { problem, cost } = await call({ environment });
    assert.match(problem, /\/invalid-request /);
    assert.match(problem, message);
    assert.doesNotMatch(problem, /hidden|xxx/);
    assert.equal(cost, 0);
  }
  assert.equal(app.sessions.size, 0);
});

test('notices an app that does not answer any more, and that it does again', async () => {
  await stop();
  app = new StatefulApp();
  await start({}, { everyMs: 5, staleMs: 60_000, limitMs: 30_000, checkMs: 1, againMs: 1 });
  await until(() => app.count('tools/list') > 2);
  const fault = (): string | undefined => sample.apps.findOperations('notes')?.fault;
  assert.equal(fault(), undefined);
  app.isDead = true;
  await until(() => fault() !== undefined);
  assert.match(fault() ?? '', /^The MCP endpoint at \/mcp does not answer, in 3 checks or more: /);
  assert.deepEqual(sample.apps.findOperations('notes')?.names, ['notes__count', 'notes__wait']);
  const list = await sample.request('/api/projects/notes/tools');
  const { fault: shown, answered_at: answeredAt } = appTools.parse(await list.json());
  assert.deepEqual([shown, typeof answeredAt], [fault(), 'string']);
  assert.match(await (await sample.request('/agent-capabilities.json')).text(), /does not answer, in 3 checks/);
  app.isDead = false;
  await until(() => fault() === undefined);
});

test('asks an app that is asleep nothing', async () => {
  await stop();
  app = new StatefulApp();
  await start({}, { everyMs: 5, staleMs: 60_000, limitMs: 30_000, checkMs: 1, againMs: 1 }, 'Asleep');
  const before = app.methods.length;
  await sleep(60);
  assert.equal(app.methods.length, before);
});

test('lists the tools of an app with schemas and variables, and calls one by POST in the same session', async () => {
  const list = appTools.parse(await (await sample.request('/api/projects/notes/tools')).json());
  assert.deepEqual(
    [list.mcp_url, list.tools.map(({ name }) => name), list.tools[0]?.input_schema['type'], list.fault],
    [`${baseUrl}/mcp/notes`, ['notes__count', 'notes__wait'], 'object', undefined],
  );
  assert.deepEqual(
    list.variables.map(({ name }) => name),
    ['API_KEY', 'REGION'],
  );
  const post = async (tool: string): Promise<Response> =>
    sample.request(`/api/projects/notes/tools/${tool}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"arguments":{}}',
    });
  await post('notes__count');
  const second = await post('notes__count');
  const result = appToolResult.parse(await second.json());
  assert.match(String(result.result['text']), / 2$/);
  assert.deepEqual([result.tool, result.is_error, result.cost_usd], ['notes__count', false, 0.0001]);
  const unknown = await post('notes__coumt');
  assert.equal(unknown.status, 404);
  assert.match(await unknown.text(), /notes has no operation .*notes__count/);
});

test('shows the tools of an app on its page, with a form that calls them', async () => {
  const get = await (await sample.request('/apps/notes', { headers: { accept: 'text/html' } })).text();
  assert.match(get, /id="tool-notes__count"/);
  assert.match(get, /claude mcp add --transport http notes .*\/mcp\/notes/);
  assert.match(get, /Moorage-Mcp-Environment/);
  const post = async (tool: string): Promise<string> => {
    const response = await sample.request('/apps/notes', {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'text/html' },
      body: new URLSearchParams({ tool }).toString(),
    });
    return response.text();
  };
  assert.match(
    await post('notes__count'),
    /<details id="tool-notes__count" open>[\s\S]*&quot;text&quot;: &quot;\S+ 1&quot;/,
  );
  assert.match(await post('other__tool'), /<h1>/);
});
