// Logs through a real API server: attached to a running build, ended with it, gone with its pod; the upstream ends with
// the reader.
import assert from 'node:assert/strict';
import { createParser } from 'eventsource-parser';
import { afterAll, beforeAll, test } from 'vitest';
import type { ApiServer } from '../../support/kubernetes/api-server.ts';
import { setStatus, since, startAppsServer } from '../../support/api/apps-server.ts';
import {
  applyText,
  namespaces,
  startKubelet,
  startReplica,
  type Replica,
  type ScriptedKubelet,
} from '../../support/api/replica.ts';

let server: ApiServer;
let kubelet: ScriptedKubelet;
let api: Replica;

beforeAll(async () => {
  server = await startAppsServer();
  kubelet = await startKubelet(server);
  await applyText(server, 'apiVersion: v1\nkind: Node\nmetadata: {name: scripted}\n');
  const status = {
    status: {
      addresses: [{ type: 'InternalIP', address: '127.0.0.1' }],
      daemonEndpoints: { kubeletEndpoint: { Port: kubelet.port } },
    },
  };
  await server.kubectl(
    'patch',
    'node',
    'scripted',
    '--subresource=status',
    '--type=merge',
    '-p',
    JSON.stringify(status),
  );
  api = await startReplica(server);
});
afterAll(async () => {
  await api.stop();
  await kubelet.stop();
  await server.stop();
});

async function makePod(name: string): Promise<void> {
  await applyText(
    server,
    `
apiVersion: v1
kind: Pod
metadata: {name: ${name}, namespace: ${namespaces.builds}}
spec:
  nodeName: scripted
  initContainers: [{name: clone, image: x}]
  containers: [{name: review, image: x}, {name: build, image: x}]
`,
  );
}

const commit = 'a'.repeat(40);

interface Event {
  event: string;
  data: { status?: string; stage?: string; line?: string };
}

async function* events(response: Response): AsyncGenerator<Event> {
  const ready: Event[] = [];
  const parser = createParser({
    onEvent: ({ event = '', data }) => {
      ready.push({ event, data: JSON.parse(data) as Event['data'] });
    },
  });
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) {
    parser.feed(decoder.decode(chunk as Uint8Array, { stream: true }));
    yield* ready.splice(0);
  }
}

/** Waits for the kubelet to be asked for a log. */
async function opened(key: string): Promise<NonNullable<ReturnType<ScriptedKubelet['open']['get']>>> {
  for (;;) {
    const response = kubelet.open.get(key);
    if (response !== undefined) return response;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

test('follows a running build line by line to its end', async () => {
  await api.submit('octo/chat');
  const response = await fetch(`${api.url}/api/submit-status/octo/chat/log`);
  await makePod('chat-1');
  await setStatus(server, 'chat', {
    phase: 'Cloning',
    since,
    source: { commit },
    pipeline: { job: 'chat-1', pod: 'chat-1' },
  });
  const clone = await opened('chat-1/clone');
  clone.write('fetching\n');
  const seen: string[] = [];
  for await (const { event, data } of events(response)) {
    seen.push(
      event === 'log' ? `${data.stage ?? ''}: ${data.line ?? ''}` : `${event} ${data.stage ?? data.status ?? ''}`,
    );
    if (data.line === 'fetching') {
      kubelet.ended.set('chat-1/review', 'reviewed\n');
      clone.end('fetched\n');
    }
    if (data.line === 'reviewed') kubelet.ended.set('chat-1/build', 'built\n');
    if (data.line === 'built') {
      await setStatus(server, 'chat', {
        phase: 'Live',
        url: 'https://chat.test',
        served: { image: 'i', commit, since },
      });
    }
  }
  assert.deepEqual(seen, [
    'stage pending',
    'stage cloning',
    'clone: fetching',
    'clone: fetched',
    'review: reviewed',
    'build: built',
    'stage live',
    'end live',
  ]);
});

test('ends the log request at the kubelet when the reader disconnects', async () => {
  await api.submit('octo/leave');
  await makePod('leave-1');
  await setStatus(server, 'leave', { phase: 'Cloning', since, pipeline: { job: 'leave-1', pod: 'leave-1' } });
  const leaving = new AbortController();
  await fetch(`${api.url}/api/submit-status/octo/leave/log`, { signal: leaving.signal });
  const upstream = await opened('leave-1/clone');
  const closed = new Promise((resolve) => {
    upstream.on('close', resolve);
  });
  leaving.abort();
  await closed;
  assert.equal(kubelet.open.has('leave-1/clone'), false);
});

test('reports that the log of a deleted pod is gone', async () => {
  await api.submit('octo/gone');
  await setStatus(server, 'gone', {
    phase: 'Rejected',
    since,
    pipeline: { job: 'gone-1', pod: 'gone-1' },
    rejection: { rule: 'build/failed', message: 'It failed', fix: 'Fix it' },
  });
  // The status reaches the cache by the watch.
  for (;;)
    if (
      ((await (await fetch(`${api.url}/api/submit-status/octo/gone`)).json()) as { status: string }).status ===
      'rejected'
    )
      break;
  const text = await (
    await fetch(`${api.url}/api/submit-status/octo/gone/log`, { headers: { accept: 'text/plain' } })
  ).text();
  assert.equal(
    text,
    '# It failed. Fix it.\n# The log of this build is no longer available: its pod was deleted.\n# rejected\n',
  );
});
