// Following a build: stages, lines of each container in order, the end; resuming, leaving, and logs that are gone.
import assert from 'node:assert/strict';
import { createServer, Agent } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createParser } from 'eventsource-parser';
import { test, type TestContext } from 'vitest';
import type { App } from '../../../../../api/apps/hosted-apps.ts';
import { type OpenedLog, type OpenLog, createLogOpener } from '../../../../../api/apps/submit/follow-log.ts';
import type { HostedAppStatus } from '../../../../../crds/hosted-app.ts';
import type { WritableStore } from '../../../../../lib/kubernetes/index.ts';
import { sampleApp, sampleApps, sampleServer, sampleServices } from '../../../../support/api/sample.ts';
import { send } from '../../../../support/api/send.ts';

const since = '2026-01-01T00:00:05Z';
const commit = 'a'.repeat(40);
const path = '/api/submit-status/octo/chat/log';
const pipeline = { job: 'chat-1', pod: 'chat-1-x' };
const rejection = { rule: 'build/failed', message: 'The build failed', fix: 'Fix it.' };
const live: HostedAppStatus = {
  phase: 'Live',
  since,
  url: 'https://chat.moorage.test',
  served: { image: 'i', commit, since },
  pipeline,
};

/** Containers whose logs the test writes: text is an ended log, a function is called each time it is opened. */
type Script = Record<string, string | ((opened: number, signal: AbortSignal) => OpenedLog)>;

function scripted(script: Script): { openLog: OpenLog; opened: string[] } {
  const opened: string[] = [];
  const openLog: OpenLog = (pod, container, signal) => {
    const key = `${pod}/${container}`;
    opened.push(key);
    const entry = script[key];
    if (entry === undefined) return Promise.resolve({ state: 'gone' });
    return Promise.resolve(
      typeof entry === 'string'
        ? { state: 'open', bytes: bytesOf(entry) }
        : entry(opened.filter((name) => name === key).length, signal),
    );
  };
  return { openLog, opened };
}

async function* bytesOf(text: string, fault?: Error): AsyncGenerator<Uint8Array> {
  yield await Promise.resolve(Buffer.from(text));
  if (fault !== undefined) throw fault;
}

interface Event {
  event: string;
  id: string | undefined;
  data: { status?: string; stage?: string; line?: string };
}

/** Reads events one by one. */
async function* read(body: ReadableStream<Uint8Array>): AsyncGenerator<Event> {
  const events: Event[] = [];
  const parser = createParser({
    onEvent: ({ event = '', id, data }) => {
      events.push({ event, id, data: JSON.parse(data) as Event['data'] });
    },
  });
  const decoder = new TextDecoder();
  for await (const chunk of body) {
    parser.feed(decoder.decode(chunk, { stream: true }));
    yield* events.splice(0);
  }
}

function setUp(
  status: HostedAppStatus | undefined,
  script: Script,
  keepaliveMs = 60_000,
): {
  get: (headers?: Record<string, string>) => Promise<Response>;
  store: WritableStore<App>;
  set: (status: HostedAppStatus) => void;
  opened: string[];
  ending: AbortController;
} {
  const { store, apps } = sampleApps(sampleApp('chat', undefined, status));
  const { openLog, opened } = scripted(script);
  const { app, ending } = sampleServer(sampleServices({ apps, openLog, keepaliveMs, logRetryMs: 1, logStreams: 1 }));
  let version = 1;
  const set = (next: HostedAppStatus): void => {
    const changed = sampleApp('chat', undefined, next);
    version += 1;
    store.set({ ...changed, metadata: { ...changed.metadata, resourceVersion: String(version) } });
  };
  return { get: async (headers = {}) => send(app, path, { headers }), store, set, opened, ending };
}

async function all(response: Response): Promise<Event[]> {
  assert.ok(response.body !== null);
  const events: Event[] = [];
  for await (const event of read(response.body)) events.push(event);
  return events;
}

const short = ({ event, id, data }: Event): string =>
  event === 'log' ? `${id ?? ''} ${data.line ?? ''}` : `${event} ${data.status ?? ''}`.trim();

test('replays a finished build in the order of its containers', async () => {
  const { get } = setUp(live, {
    'chat-1-x/clone': 'cloned\n',
    'chat-1-x/review': 'fine\n',
    'chat-1-x/build': 'one\ntwo\n',
  });
  const response = await get();
  assert.equal(response.headers.get('content-type'), 'text/event-stream');
  assert.deepEqual((await all(response)).map(short), [
    'stage live',
    'chat-1-x/clone/1 cloned',
    'chat-1-x/review/1 fine',
    'chat-1-x/build/1 one',
    'chat-1-x/build/2 two',
    'end live',
  ]);
});

test('follows a build from before it has a pod until its end', async () => {
  const { get, set } = setUp(undefined, {
    'chat-1-x/clone': 'cloned\n',
    'chat-1-x/review': 'fine\n',
    'chat-1-x/build': (opened) => (opened < 3 ? { state: 'waiting' } : { state: 'open', bytes: bytesOf('built\n') }),
  });
  const response = await get();
  assert.ok(response.body !== null);
  const seen: string[] = [];
  for await (const event of read(response.body)) {
    seen.push(short(event));
    if (event.data.stage === 'pending') set({ phase: 'Queued', since, pipeline: { job: 'chat-1', position: 1 } });
    if (event.data.stage === 'queued') set({ phase: 'Building', since, pipeline });
    if (event.data.line === 'built') set({ phase: 'Deploying', since, pipeline });
    if (event.data.stage === 'deploying') set(live);
  }
  assert.deepEqual(seen, [
    'stage in_pipeline',
    'stage in_pipeline',
    'stage in_pipeline',
    'chat-1-x/clone/1 cloned',
    'chat-1-x/review/1 fine',
    'chat-1-x/build/1 built',
    'stage in_pipeline',
    'stage live',
    'end live',
  ]);
});

test('ends the stream when the review rejects, because the build never starts', async () => {
  const { get } = setUp(
    { phase: 'Rejected', rejection, pipeline },
    { 'chat-1-x/clone': 'c\n', 'chat-1-x/review': 'no licence\n', 'chat-1-x/build': () => ({ state: 'waiting' }) },
  );
  assert.deepEqual((await all(await get())).map(short), [
    'stage rejected',
    'chat-1-x/clone/1 c',
    'chat-1-x/review/1 no licence',
    'end rejected',
  ]);
});

test('follows a pod that replaces another', async () => {
  const { get, set } = setUp(
    { phase: 'Cloning', since, pipeline },
    { 'chat-1-x/clone': 'first\n', 'chat-1-y/clone': 'second\n', 'chat-1-y/review': '', 'chat-1-y/build': '' },
  );
  const response = await get();
  assert.ok(response.body !== null);
  const seen: string[] = [];
  for await (const event of read(response.body)) {
    seen.push(short(event));
    if (event.data.line === 'first') set({ phase: 'Cloning', since, pipeline: { job: 'chat-1', pod: 'chat-1-y' } });
    if (event.data.line === 'second') set(live);
  }
  assert.ok(seen.includes('chat-1-x/clone/1 first'));
  assert.ok(seen.includes('chat-1-y/clone/1 second'));
  assert.equal(seen.at(-1), 'end live');
});

test('reports a log that is gone', async () => {
  assert.deepEqual((await all(await setUp(live, {}).get())).map(short), ['stage live', 'gone', 'end live']);
  assert.deepEqual((await all(await setUp({ phase: 'Rejected', rejection }, {}).get())).map(short), [
    'stage rejected',
    'gone',
    'end rejected',
  ]);
});

test('neither loses nor repeats a line when a connection breaks', async () => {
  const fault = new Error('reset');
  const { get } = setUp(live, {
    'chat-1-x/clone': (opened) => ({
      state: 'open',
      bytes: opened === 1 ? bytesOf('1\n2\n', fault) : bytesOf('1\n2\n3\n'),
    }),
    'chat-1-x/review': '',
    'chat-1-x/build': '',
  });
  assert.deepEqual((await all(await get())).map(short), [
    'stage live',
    'chat-1-x/clone/1 1',
    'chat-1-x/clone/2 2',
    'chat-1-x/clone/3 3',
    'end live',
  ]);
});

test('resumes after Last-Event-ID, and ignores an invalid one', async () => {
  const script = { 'chat-1-x/clone': 'c\n', 'chat-1-x/review': 'r1\nr2\n', 'chat-1-x/build': 'b\n' };
  const { get } = setUp(live, script);
  assert.deepEqual((await all(await get({ 'last-event-id': 'chat-1-x/review/1' }))).map(short), [
    'stage live',
    'chat-1-x/review/2 r2',
    'chat-1-x/build/1 b',
    'end live',
  ]);
  assert.equal((await all(await get({ 'last-event-id': 'chat-1-x/kitchen/1' }))).length, 6);
  assert.equal((await all(await get({ 'last-event-id': 'other-pod/build/9' }))).length, 6);
});

test('writes plain text for a terminal', async () => {
  const { get } = setUp(live, {
    'chat-1-x/clone': 'cloned\n',
    'chat-1-x/review': '',
    'chat-1-x/build': '\u001b[31mred\u001b[0m\n',
  });
  const response = await get({ accept: 'text/plain' });
  assert.equal(
    await response.text(),
    '# The app is live at https://chat.moorage.test.\n# clone\ncloned\n# build\nred\n# live\n',
  );
});

test('ends the upstream log and frees the slot when the reader leaves', async () => {
  const gone = Promise.withResolvers<string>();
  const hanging = (_opened: number, signal: AbortSignal): OpenedLog => ({
    state: 'open',
    bytes: (async function* () {
      yield Buffer.from('first\n');
      await new Promise((resolve) => {
        signal.addEventListener('abort', resolve);
      });
      gone.resolve('cancelled');
    })(),
  });
  const { get } = setUp({ phase: 'Cloning', since, pipeline }, { 'chat-1-x/clone': hanging });
  const response = await get();
  const full = await get();
  assert.equal(full.status, 503);
  assert.equal(full.headers.get('retry-after'), '10');
  assert.ok(response.body !== null);
  for await (const event of read(response.body)) if (event.event === 'log') break;
  assert.equal(await gone.promise, 'cancelled');
  const next = await get();
  assert.equal(next.status, 200);
  await next.body?.cancel();
});

test('keeps a silent stream alive, and ends it without an end event when the process ends', async () => {
  const { get, ending } = setUp({ phase: 'Queued', since, pipeline: { job: 'chat-1', position: 1 } }, {}, 5);
  const response = await get();
  let text = '';
  for await (const chunk of response.body ?? []) {
    text += Buffer.from(chunk as Uint8Array).toString();
    if (text.includes(': keepalive\n\n: keepalive\n\n')) ending.abort();
  }
  assert.match(text, /^event: stage\n/);
  assert.doesNotMatch(text, /event: end/);
});

test('ends the stream when the app is removed', async () => {
  const { get, store } = setUp({ phase: 'Queued', since }, {});
  const response = await get();
  assert.ok(response.body !== null);
  const seen: string[] = [];
  for await (const event of read(response.body)) {
    seen.push(short(event));
    if (event.event === 'stage') store.replace([]);
  }
  assert.deepEqual(seen, ['stage in_pipeline', 'end removed']);
});

test('keeps a hostile line within its event', async () => {
  const { get } = setUp(live, {
    'chat-1-x/clone': 'event: end\ndata: {"status":"live"}\r\rid: x\n',
    'chat-1-x/review': '',
    'chat-1-x/build': '',
  });
  assert.deepEqual(
    (await all(await get())).map(({ event }) => event),
    ['stage', 'log', 'log', 'log', 'end'],
  );
});

test('limits one caller to a quarter of the streams', async () => {
  const { apps } = sampleApps(sampleApp('chat', undefined, { phase: 'Cloning', since, pipeline }));
  const waiting = (): OpenedLog => ({ state: 'waiting' });
  const { openLog } = scripted({ 'chat-1-x/clone': waiting });
  const { app, ending } = sampleServer(sampleServices({ apps, openLog, logRetryMs: 20, logStreams: 8 }));
  const ask = async (): Promise<Response> => send(app, path);
  const held = [await ask(), await ask()];
  const third = await ask();
  assert.equal(third.status, 503);
  assert.match(await third.text(), /too-many-streams.*You have 2 log streams open/);
  await held[0]?.body?.cancel();
  const again = await ask();
  assert.equal(again.status, 200, 'a slot that was left is free again');
  ending.abort();
});

// The log of a container: open once there is something to read, and not before.

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
    readCredentials: () => Promise.resolve({ headers: {}, agent }),
    close: () => undefined,
  };
  return createLogOpener(connection, 'moorage-builds')('pod', 'clone', AbortSignal.timeout(5_000));
}

test('does not read 204, the response before the pod is on a node, as an empty log', async (t) => {
  assert.deepEqual(await opened(t, 204), { state: 'waiting' });
});

test('waits after 400, 429 and 500, but not after 404', async (t) => {
  for (const status of [400, 429, 500]) assert.deepEqual(await opened(t, status), { state: 'waiting' });
  assert.deepEqual(await opened(t, 404), { state: 'gone' });
});

test('reads what the container wrote', async (t) => {
  const log = await opened(t, 200, 'one\ntwo\n');
  assert.equal(log.state, 'open');
  const chunks: Uint8Array[] = [];
  for await (const chunk of log.bytes) chunks.push(chunk);
  assert.equal(Buffer.concat(chunks).toString(), 'one\ntwo\n');
});
