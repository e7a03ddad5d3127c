// What apps print, through a real API server and a real PostgreSQL: one replica collects, another takes over from it when it
// is killed, and no line is lost or stored twice. The end of a container is recorded with its last lines.
import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { rememberSecret } from '../../../api/apps/logs/fingerprints.ts';
import { openDatabase } from '../../../api/billing/index.ts';
import { createAuthorKey, hashAuthorKey } from '../../../lib/ownership-file.ts';
import { setStatus, startAppsServer } from '../../support/api/apps-server.ts';
import {
  applyText,
  namespaces,
  ownershipSecret,
  startKubelet,
  type ScriptedKubelet,
} from '../../support/api/replica.ts';
import type { ApiServer } from '../../support/kubernetes/api-server.ts';
import { waitUntil } from '../../support/kubernetes/until.ts';
import { sharePostgres, type SharedPostgres } from '../../support/ledger/postgres.ts';

const root = new URL('../../..', import.meta.url).pathname;
const key = createAuthorKey();
let server: ApiServer;
let kubelet: ScriptedKubelet;
let postgres: SharedPostgres;
let databaseUrl: string;
const replicas = new Set<LogReplica>();

interface LogReplica {
  readonly url: string;
  readonly process: ChildProcess;
  /** Containers that it follows. */
  followed: number;
}

beforeAll(async () => {
  server = await startAppsServer();
  kubelet = await startKubelet(server);
  postgres = await sharePostgres();
  databaseUrl = await postgres.createDatabase('app_logs');
  await applyText(server, 'apiVersion: v1\nkind: Node\nmetadata: {name: scripted}\n');
  await patchStatus('node', 'scripted', {
    addresses: [{ type: 'InternalIP', address: '127.0.0.1' }],
    daemonEndpoints: { kubeletEndpoint: { Port: kubelet.port } },
  });
});
afterAll(async () => {
  for (const { process } of replicas) process.kill('SIGKILL');
  await kubelet.stop();
  await postgres.stop();
  await server.stop();
});

async function patchStatus(kind: string, name: string, status: object): Promise<void> {
  const place = kind === 'node' ? [] : ['-n', namespaces.apps];
  const patch = JSON.stringify({ status });
  await server.kubectl('patch', kind, name, ...place, '--subresource=status', '--type=merge', '-p', patch);
}

async function startReplica(): Promise<LogReplica> {
  const child = spawn('node', ['test/support/api/log-replica.ts', server.kubeconfig, server.server, databaseUrl], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const lines = createInterface({ input: child.stdout });
  const [port] = z.tuple([z.string()]).parse(await once(lines, 'line'));
  const replica: LogReplica = { url: `http://127.0.0.1:${port}`, process: child, followed: 0 };
  lines.on('line', (line) => {
    replica.followed = Number(line.split(' ')[1]);
  });
  replicas.add(replica);
  return replica;
}

async function kill(replica: LogReplica): Promise<void> {
  replica.process.kill('SIGKILL');
  await once(replica.process, 'exit');
  replicas.delete(replica);
}

async function createApp(name: string): Promise<void> {
  await applyText(
    server,
    `
apiVersion: moorage.dev/v1alpha1
kind: HostedApp
metadata: {name: ${name}, namespace: ${namespaces.apps}}
spec: {source: {repo: "https://git.test/octo/${name}"}}
`,
  );
  await setStatus(server, name, { authorKeys: [hashAuthorKey(key, `git.test/octo/${name}`)] });
}

async function createPod(app: string, pod: string, containers: readonly string[]): Promise<void> {
  await applyText(
    server,
    `
apiVersion: v1
kind: Pod
metadata:
  name: ${pod}
  namespace: ${namespaces.apps}
  labels: {moorage.dev/app: ${app}, app.kubernetes.io/component: app}
spec:
  nodeName: scripted
  containers: [${containers.map((name) => `{name: ${name}, image: x}`).join(', ')}]
`,
  );
}

const at = '2026-01-01T00:00:00Z';

/** Has the kubelet report a run of the only container of a pod, and how the one before ended. */
async function reportRun(pod: string, run: number, ended?: object): Promise<void> {
  await patchStatus('pod', pod, {
    phase: 'Running',
    containerStatuses: [
      {
        ...{ name: 'app', image: 'x', imageID: 'x', ready: true, restartCount: run - 1 },
        containerID: `containerd://${pod}-${run}`,
        state: { running: { startedAt: at } },
        ...(ended === undefined
          ? {}
          : { lastState: { terminated: { containerID: `containerd://${pod}-${run - 1}`, startedAt: at, ...ended } } }),
      },
    ],
  });
}

async function ask(replica: LogReplica, path: string, accept = 'application/json', authorKey = key): Promise<Response> {
  return fetch(`${replica.url}/api/apps/${path}`, { headers: { authorization: `Bearer ${authorKey}`, accept } });
}

const logAnswer = z.object({ lines: z.array(z.object({ component: z.string(), pod: z.string(), line: z.string() })) });

async function readTexts(replica: LogReplica, app: string, query = 'tail=5000'): Promise<string[]> {
  const { lines } = logAnswer.parse(await (await ask(replica, `${app}/logs?${query}`)).json());
  return lines.map(({ line }) => line);
}

/** Reads a followed log until it has so many lines. */
async function follow(response: Response, count: number): Promise<string[]> {
  const seen: string[] = [];
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of response.body ?? []) {
    const lines = (rest + decoder.decode(chunk as Uint8Array, { stream: true })).split('\n');
    rest = lines.pop() ?? '';
    seen.push(...lines.map((line) => line.split(' ').slice(2).join(' ')));
    if (seen.length >= count) break;
  }
  return seen;
}

function listNumbers(from: number, to: number): string[] {
  return Array.from({ length: to - from }, (_, index) => `line ${from + index}`);
}

test('one replica collects, another takes over when it is killed, and each line is stored and followed once', async () => {
  await createApp('chat');
  await createPod('chat', 'chat-1', ['app']);
  await reportRun('chat-1', 1);
  let printed = 0;
  const print = async (count: number): Promise<void> => {
    for (const end = printed + count; printed < end; printed += 1) {
      kubelet.print('chat-1/app', `line ${printed}`);
      await sleep(2);
    }
  };
  await print(10);
  const [one, two] = [await startReplica(), await startReplica()];
  await waitUntil(() => one.followed + two.followed === 1);
  const [collector, other] = one.followed === 1 ? [one, two] : [two, one];
  await waitUntil(async () => (await readTexts(other, 'chat')).length >= 10);

  const followed = follow(await ask(other, 'chat/logs?follow=true&tail=5000', 'text/plain'), 900);
  await print(200);
  assert.equal(other.followed, 0, 'one replica alone collects');
  const printing = print(500);
  await sleep(200);
  await kill(collector);
  await printing;
  await print(190);
  assert.deepEqual(await followed, listNumbers(0, 900));
  assert.deepEqual(await readTexts(other, 'chat'), listNumbers(0, 900));

  // The container restarts while no replica runs: the end of its first run is only in its previous log.
  await kill(other);
  await print(20);
  kubelet.exit('chat-1/app');
  await print(20);
  await reportRun('chat-1', 2, { exitCode: 137, reason: 'OOMKilled', finishedAt: new Date().toISOString() });
  const third = await startReplica();
  await waitUntil(async () => (await readTexts(third, 'chat')).length >= 940);
  assert.deepEqual(await readTexts(third, 'chat'), listNumbers(0, 940));
  await kill(third);
});

test('attack: a collector that was paused while another took over stores nothing twice', async () => {
  await createApp('paused');
  await createPod('paused', 'paused-1', ['app']);
  await reportRun('paused-1', 1);
  kubelet.print('paused-1/app', 'line 0');
  const [one, two] = [await startReplica(), await startReplica()];
  await waitUntil(() => one.followed + two.followed > 0);
  const [paused, other] = one.followed > 0 ? [one, two] : [two, one];
  await waitUntil(async () => (await readTexts(other, 'paused')).length === 1);
  paused.process.kill('SIGSTOP');
  // Its connection has these lines before it knows that it is not the collector any more.
  for (const line of listNumbers(1, 50)) kubelet.print('paused-1/app', line);
  await waitUntil(async () => (await readTexts(other, 'paused')).length === 50);
  paused.process.kill('SIGCONT');
  for (const line of listNumbers(50, 100)) kubelet.print('paused-1/app', line);
  await waitUntil(async () => (await readTexts(other, 'paused')).length >= 100);
  await waitUntil(() => paused.followed === 0);
  assert.deepEqual(await readTexts(other, 'paused'), listNumbers(0, 100));
  await kill(paused);
  await kill(other);
});

const crashAnswer = z.object({
  crashes: z.array(
    z.object({
      component: z.string(),
      exit_code: z.int(),
      reason: z.string(),
      restarts: z.int(),
      lines: z.array(z.object({ line: z.string() })),
    }),
  ),
});

test('records the end of a container with its exit code and its last 200 lines, with secrets masked', async () => {
  await createApp('crash');
  const { uid } = z
    .object({ metadata: z.object({ uid: z.string() }) })
    .parse(JSON.parse(await server.kubectl('get', 'hostedapp', 'crash', '-n', namespaces.apps, '-o', 'json'))).metadata;
  const database = await openDatabase(databaseUrl);
  await rememberSecret(database, uid, 'API_KEY', 'a value that only the author knows', ownershipSecret);
  await database.close();
  const replica = await startReplica();
  await createPod('crash', 'crash-1', ['app']);
  await reportRun('crash-1', 1);
  for (const line of listNumbers(0, 300)) kubelet.print('crash-1/app', line);
  kubelet.print('crash-1/app', 'the key is a value that only the author knows.');
  kubelet.exit('crash-1/app');
  kubelet.print('crash-1/app', 'started again');
  await reportRun('crash-1', 2, {
    exitCode: 137,
    signal: 9,
    reason: 'OOMKilled',
    finishedAt: new Date().toISOString(),
  });

  const list = async (): Promise<z.output<typeof crashAnswer>['crashes']> =>
    crashAnswer.parse(await (await ask(replica, 'crash/crashes')).json()).crashes;
  await waitUntil(async () => (await list()).length === 1);
  const [crash] = await list();
  const expected = [...listNumbers(101, 300), 'the key is [secret].'];
  assert.deepEqual(
    { ...crash, lines: crash?.lines.map(({ line }) => line) },
    { component: 'app', exit_code: 137, reason: 'OOMKilled', restarts: 0, lines: expected },
  );
  await waitUntil(async () => (await readTexts(replica, 'crash')).length === 302);
  assert.deepEqual(await readTexts(replica, 'crash'), [
    ...listNumbers(0, 300),
    'the key is [secret].',
    'started again',
  ]);
  const text = await (await ask(replica, 'crash/logs?previous=true&tail=2', 'text/plain')).text();
  assert.match(
    text,
    /^# app ended at \S+ with exit code 137, signal 9 \(OOMKilled\)[.] Before that:\n\S+ app line 299\n\S+ app the key is \[secret\][.]\n$/,
  );

  assert.equal((await ask(replica, 'crash/logs', 'application/json', createAuthorKey())).status, 404);
  await kill(replica);
});

test('ends the follower of a container whose pod is gone, and leaves pods of other kinds alone', async () => {
  await createApp('parts');
  await createPod('parts', 'parts-1', ['web', 'worker']);
  await applyText(
    server,
    `
apiVersion: v1
kind: Pod
metadata:
  name: parts-db
  namespace: ${namespaces.apps}
  labels: {moorage.dev/app: parts, app.kubernetes.io/component: service}
spec: {nodeName: scripted, containers: [{name: db, image: x}]}
`,
  );
  kubelet.print('parts-1/web', 'from web');
  kubelet.print('parts-1/worker', 'from worker');
  kubelet.print('parts-db/db', 'from the database');
  const replica = await startReplica();
  await waitUntil(async () => (await readTexts(replica, 'parts')).length === 2);
  assert.deepEqual(await readTexts(replica, 'parts', 'component=worker'), ['from worker']);
  const before = replica.followed;
  await server.kubectl('delete', 'pod', 'parts-1', '-n', namespaces.apps, '--force', '--grace-period=0');
  kubelet.exit('parts-1/web');
  kubelet.exit('parts-1/worker');
  await waitUntil(() => replica.followed === before - 2);
  assert.equal((await readTexts(replica, 'parts')).length, 2, 'its lines stay');
  await kill(replica);
});
