// A server over stdio behind the bridge, called through /mcp/{slug} as callers do, at several replicas of the API on one
// database: state, own values and the end of its processes.
import assert from 'node:assert/strict';
import { request as sendRequest, type RequestListener } from 'node:http';
import { pipeline } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { startServer } from '../../../../api/http/server.ts';
import type { App } from '../../../../api/apps/hosted-apps.ts';
import { silent } from '../../../support/api/sample.ts';
import { addAgentPaths, type AppsSampleOptions, sampleAppsServer } from '../../../support/apps/sample.ts';
import { sharePostgres, type SharedPostgres } from '../../../support/ledger/postgres.ts';
import { compileBridge, listProcesses, type RunningBridge, startBridge, waitFor } from '../../../support/mcp/bridge.ts';

/** Stands for the Service of the app. */
function createProxy(origin: string): RequestListener {
  return (request, response) => {
    const { method, headers, url } = request;
    const onward = sendRequest(new URL(url ?? '/', origin), { method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      pipeline(answer, response, () => undefined);
    });
    pipeline(request, onward, () => undefined);
  };
}

function addPlan(app: App): App {
  const environment = [{ name: 'API_KEY', secret: true, required: false }];
  const mcp = { file: 'a.js', transport: 'stdio', command: 'node a.js', path: '/mcp', bridged: true } as const;
  return { ...app, status: { ...app.status, plan: { strategy: 'node', reason: '', mcp: { ...mcp, environment } } } };
}

const shape = z.looseObject({ result: z.looseObject({ text: z.string() }) });

interface Replica extends AsyncDisposable {
  /** Connects a client, which has a session of its own. */
  connect(headers?: Record<string, string>): Promise<[Client, StreamableHTTPClientTransport]>;
  /** Calls a tool without a client. Without an id of a session, all such calls share one. */
  call(name: string, fields?: Record<string, unknown>, session?: string): Promise<string>;
  /** Ends the client's session with this id. */
  end(session: string): Promise<number>;
  /** Takes no more requests, and does nothing else that a process does that is stopped. */
  drop(): void;
}

async function startReplica(
  bridge: RunningBridge,
  databaseUrl: string,
  mcpSessions: AppsSampleOptions['mcpSessions'] = {},
): Promise<Replica> {
  const sample = await sampleAppsServer({ environment: { DATABASE_URL: databaseUrl }, mcpSessions });
  const server = await startServer({ port: 0, host: '127.0.0.1', listener: sample.app, log: silent });
  const url = new URL(`http://127.0.0.1:${server.port}/mcp/sampler`);
  await sample.host('sampler', createProxy(bridge.origin), (app) => addPlan(addAgentPaths(app)));
  await waitFor(() => sample.apps.findOperations('sampler') !== undefined);
  let isDropped = false;
  const send = (method: string, session: string | undefined, body: string | null): Promise<Response> => {
    assert.ok(!isDropped);
    const own = session === undefined ? {} : { 'mcp-session-id': session };
    const accept = 'application/json, text/event-stream';
    const headers = { 'content-type': 'application/json', accept, 'mcp-protocol-version': '2025-06-18', ...own };
    return fetch(url, { method, headers, body });
  };
  return {
    async connect(headers = {}) {
      const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: 'legacy' } });
      const transport = new StreamableHTTPClientTransport(url, { requestInit: { headers } });
      await client.connect(transport);
      return [client, transport];
    },
    async call(name, fields = {}, session) {
      const params = { name: `sampler__${name}`, arguments: fields };
      const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params });
      const text = await (await send('POST', session, body)).text();
      const answer: unknown = JSON.parse(text.replace(/^[^{]*data: /s, ''));
      return z.looseObject({ result: z.looseObject({ structuredContent: shape }) }).parse(answer).result
        .structuredContent.result.text;
    },
    async end(session) {
      return (await send('DELETE', session, null)).status;
    },
    drop() {
      isDropped = true;
    },
    async [Symbol.asyncDispose]() {
      await server.drain({ graceMs: 0, limitMs: 1_000, endStreams: () => undefined });
      await sample.stop();
    },
  };
}

let postgres: SharedPostgres;
beforeAll(async () => {
  postgres = await sharePostgres();
});
afterAll(async () => {
  await postgres.stop();
});

let count = 0;

interface Replicas extends AsyncDisposable {
  readonly one: Replica;
  readonly other: Replica;
  readonly start: () => Promise<Replica>;
  /** Lists the processes of sessions. */
  readonly list: () => number[];
}

/** Starts the bridge and two replicas on one database. */
async function startReplicas(mcpSessions: AppsSampleOptions['mcpSessions'] = {}): Promise<Replicas> {
  count += 1;
  const mark = `BRIDGED_APP_MARK=${count}`;
  const stack = new AsyncDisposableStack();
  const bridge = stack.use(
    await startBridge(await compileBridge(), {
      options: ['--transport', 'stdio', '--session-variable', 'API_KEY'],
      variables: { BRIDGED_APP_MARK: String(count) },
    }),
  );
  const url = await postgres.createDatabase(`bridged-app-${count}`);
  const start = async (): Promise<Replica> => stack.use(await startReplica(bridge, url, mcpSessions));
  const list = (): number[] => listProcesses(mark).filter((pid) => pid !== bridge.process.pid);
  const [one, other] = [await start(), await start()];
  // Those of discovery.
  await waitFor(() => list().length === 0);
  return {
    ...{ one, other, start, list },
    async [Symbol.asyncDispose]() {
      await stack.disposeAsync();
      assert.doesNotMatch(bridge.log(), /of the caller/);
    },
  };
}

test('keeps the process of a caller between calls, sets its values, and ends it with the session', async () => {
  await using replicas = await startReplicas();
  const { one, list } = replicas;
  const call = async (client: Client, name: string, fields: Record<string, unknown> = {}): Promise<string> => {
    const { structuredContent } = await client.callTool({ name: `sampler__${name}`, arguments: fields });
    return shape.parse(structuredContent).result.text;
  };
  const [[plain, first], [own, transport]] = [
    await one.connect(),
    await one.connect({ 'moorage-mcp-environment': '{"API_KEY":"of the caller"}' }),
  ];
  const pids = [await call(plain, 'pid'), await call(plain, 'pid'), await call(own, 'pid'), await call(own, 'pid')];
  assert.deepEqual([pids[0], pids[2]], [pids[1], pids[3]]);
  assert.notEqual(pids[0], pids[2]);
  const variable = { name: 'API_KEY' };
  assert.deepEqual(
    [await call(plain, 'variable', variable), await call(own, 'variable', variable)],
    ['(not set)', 'of the caller'],
  );
  // The process dies, and the next call gets another.
  process.kill(Number(pids[0]), 'SIGKILL');
  await waitFor(() => !list().includes(Number(pids[0])));
  assert.notEqual(await call(plain, 'pid'), pids[0]);
  await transport.terminateSession();
  await waitFor(() => !list().includes(Number(pids[2])));
  await first.terminateSession();
  await waitFor(() => list().length === 0);
});

test('one process answers the calls of a caller at all replicas, also at one that starts later', async () => {
  await using replicas = await startReplicas();
  const { one, other, start, list } = replicas;
  const pid = await one.call('pid');
  assert.deepEqual([await other.call('pid'), await one.call('pid')], [pid, pid]);
  one.drop();
  const later = await start();
  assert.equal(await later.call('pid'), pid);
  await waitFor(() => list().length === 1);
});

test('first calls at the same time leave one process', async () => {
  await using replicas = await startReplicas();
  const { one, other, list } = replicas;
  const pids = await Promise.all([one, other, one, other].map((replica) => replica.call('pid')));
  assert.equal(new Set(pids).size, 1);
  await waitFor(() => list().length === 1);
  assert.equal(await one.call('pid'), pids[0]);
  // The same when the app has forgotten the session.
  process.kill(Number(pids[0]), 'SIGKILL');
  await waitFor(() => list().length === 0);
  const next = await Promise.all([one, other, one, other].map((replica) => replica.call('pid')));
  assert.equal(new Set(next).size, 1);
  assert.notEqual(next[0], pids[0]);
  await waitFor(() => list().length === 1);
});

test('calls of one session at several replicas get their own answers', async () => {
  await using replicas = await startReplicas();
  const { one, other } = replicas;
  await one.call('pid');
  const texts = Array.from({ length: 8 }, (_, index) => `text ${index}`);
  const answers = texts.map((text, index) => (index % 2 === 0 ? one : other).call('echo', { text }));
  assert.deepEqual(await Promise.all(answers), texts);
});

test('a replica ends no session that another one uses, and any of them ends it when it is idle', async () => {
  await using replicas = await startReplicas({ idleMs: 3_000, sweepMs: 50 });
  const { one, other, list } = replicas;
  const pid = await one.call('pid');
  for (const until = performance.now() + 7_000; performance.now() < until;) {
    assert.equal(await other.call('pid'), pid);
    await sleep(200);
  }
  await waitFor(() => list().length === 0);
  assert.notEqual(await one.call('pid'), pid);
});

test('a client ends its session at any replica, also during a call at another', async () => {
  await using replicas = await startReplicas();
  const { one, other, list } = replicas;
  const [pid, kept] = [await one.call('pid', {}, 'a'), await one.call('pid', {}, 'b')];
  const waiting = one.call('wait', {}, 'a').catch((error: unknown) => error);
  await sleep(200);
  assert.equal(await other.end('a'), 204);
  await waiting;
  await waitFor(() => !list().includes(Number(pid)));
  assert.notEqual(await one.call('pid', {}, 'a'), pid);
  assert.equal(await other.call('pid', {}, 'b'), kept);
});

test('the limit of a caller counts the sessions at all replicas', async () => {
  await using replicas = await startReplicas({ perCaller: 2 });
  const { one, other, list } = replicas;
  const pids = [await one.call('pid', {}, 'a'), await other.call('pid', {}, 'b'), await one.call('pid', {}, 'c')];
  await waitFor(() => list().length === 2);
  assert.ok(!list().includes(Number(pids[0])));
  assert.equal(await one.call('pid', {}, 'b'), pids[1]);
});
