// The client: paths, errors with their reason, time limits, connections that die, and writes with preconditions.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { test, type TestContext } from 'vitest';
import {
  APPLIED_HASH_ANNOTATION,
  apply,
  applyIfChanged,
  applyStatus,
  applyStatusIfChanged,
  createClient,
  defineResource,
  deleteObject,
  createStaticConnection,
  type Client,
  type KubeObject,
} from '../../../../../lib/kubernetes/index.ts';
import { buildPath } from '../../../../../lib/kubernetes/client/http-client.ts';
import { FakeApi, send, status } from '../../../../support/kubernetes/fake-api.ts';

interface Thing extends KubeObject {
  spec?: { size: number };
  status?: { phase: string };
}

const KIND = 'apis/example.dev/v1/things';
const things = defineResource<Thing>({
  group: 'example.dev',
  version: 'v1',
  kind: 'Thing',
  plural: 'things',
  namespaced: true,
});
const nodes = defineResource({ group: '', version: 'v1', kind: 'Node', plural: 'nodes', namespaced: false });
const ref = { name: 'a', namespace: 'apps' };

async function server(t: TestContext): Promise<{ api: FakeApi; client: Client }> {
  const api = new FakeApi();
  const client = await api.start();
  t.onTestFinished(() => api.stop());
  return { api, client };
}

const manifest = (size: number) => ({
  apiVersion: 'example.dev/v1',
  kind: 'Thing',
  metadata: { ...ref },
  spec: { size },
});

test('paths name group, version, namespace, object and subresource, escaped', () => {
  assert.equal(buildPath(things), '/apis/example.dev/v1/things');
  assert.equal(buildPath(things, { namespace: 'n' }), '/apis/example.dev/v1/namespaces/n/things');
  assert.equal(
    buildPath(things, { namespace: 'n', name: 'a', subresource: 'status' }),
    '/apis/example.dev/v1/namespaces/n/things/a/status',
  );
  assert.equal(
    buildPath(nodes, { namespace: 'ignored', name: 'a/b' }, { fieldManager: 'x y', force: true, limit: undefined }),
    '/api/v1/nodes/a%2Fb?fieldManager=x+y&force=true',
  );
});

test('returns undefined for a missing object, and rejects a namespaced kind without a namespace', async (t) => {
  const { api, client } = await server(t);
  assert.equal(await client.get(things, ref), undefined);
  api.put(KIND, { metadata: ref });
  assert.equal((await client.get(things, ref))?.kind, 'Thing');
  await assert.rejects(client.get(things, { name: 'a' }), /Thing "a" needs a namespace/);
});

test('an error carries status, reason, message and the wait that the server asks for', async (t) => {
  const { api, client } = await server(t);
  const answers: ((response: Parameters<typeof send>[0]) => void)[] = [
    (response) => {
      send(response, 422, status(422, 'Invalid', 'spec.size: must be positive'));
    },
    (response) => {
      send(response, 429, status(429, 'TooManyRequests', 'slow down'), { 'retry-after': '7' });
    },
    (response) => {
      send(response, 504, { ...status(504, 'Timeout', 'later'), details: { retryAfterSeconds: 9 } });
    },
    (response) => response.writeHead(502, { 'content-type': 'text/html' }).end('<h1>Bad gateway</h1>'),
  ];
  api.faults.push((_request, response) => {
    answers.shift()?.(response);
    return true;
  });
  const refused = (): Promise<unknown> => client.list(things);
  await assert.rejects(refused, {
    name: 'ApiError',
    status: 422,
    reason: 'Invalid',
    message: 'spec.size: must be positive',
    retryAfterSeconds: undefined,
  });
  await assert.rejects(refused, { status: 429, reason: 'TooManyRequests', retryAfterSeconds: 7 });
  await assert.rejects(refused, { status: 504, retryAfterSeconds: 9 });
  await assert.rejects(refused, { status: 502, reason: 'Http502', message: /Bad gateway/ });
});

test('no response in time is Timeout, no server is Unreachable, and an abort rejects with its reason', async (t) => {
  const { api, client } = await server(t);
  api.faults.push(() => true);
  await assert.rejects(client.list(things, { timeoutMs: 20 }), {
    name: 'ApiError',
    status: 0,
    reason: 'Timeout',
    message: /within 20 ms: GET \/apis\/example.dev\/v1\/things/,
  });
  const abort = new AbortController();
  const pending = client.list(things, { signal: abort.signal });
  abort.abort(new Error('enough'));
  await assert.rejects(pending, /enough/);
  await assert.rejects(client.list(things, { signal: abort.signal }), /enough/);
  const nobody = createServer().listen(0, '127.0.0.1');
  await once(nobody, 'listening');
  const address = nobody.address();
  nobody.close();
  await once(nobody, 'close');
  const lost = createClient(
    createStaticConnection(`http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`),
  );
  await assert.rejects(lost.list(things), {
    name: 'ApiError',
    status: 0,
    reason: 'Unreachable',
    message: /cannot be reached.*ECONNREFUSED/,
  });
});

test('retries on a connection that the server has closed, except for a create', async (t) => {
  const { api, client } = await server(t);
  let cut = false;
  api.faults.push((request) => {
    if (!cut) return false;
    cut = false;
    request.socket.destroy();
    return true;
  });
  await client.list(things);
  cut = true;
  await client.list(things);
  cut = true;
  await assert.rejects(client.create(things, manifest(1)), { reason: 'Unreachable' });
});

test('lists every object, page by page', async (t) => {
  const { api, client } = await server(t);
  for (let index = 0; index < 1200; index += 1) api.put(KIND, { metadata: { name: `t${index}`, namespace: 'apps' } });
  let count = 0;
  for await (const thing of client.listAll(things, { namespace: 'apps' })) count += thing.metadata.name === '' ? 0 : 1;
  assert.equal(count, 1200);
  assert.equal(api.requests.length, 3);
});

test('an apply is a forced server-side apply under our field manager; a status goes to its subresource', async (t) => {
  const { api, client } = await server(t);
  const made = await apply(client, things, manifest(1));
  assert.equal(made.spec?.size, 1);
  const { url, type, method } = api.requests[0] ?? {};
  assert.deepEqual(
    [method, type, url?.pathname],
    ['PATCH', 'application/apply-patch+yaml', '/apis/example.dev/v1/namespaces/apps/things/a'],
  );
  assert.deepEqual(Object.fromEntries(url?.searchParams ?? []), { fieldManager: 'moorage', force: 'true' });
  await applyStatus(client, things, ref, { phase: 'Ready' });
  const sent = api.requests[1];
  assert.equal(sent?.url.pathname, '/apis/example.dev/v1/namespaces/apps/things/a/status');
  assert.deepEqual(sent.body, {
    apiVersion: 'example.dev/v1',
    kind: 'Thing',
    metadata: ref,
    status: { phase: 'Ready' },
  });
});

test('skips an apply that would change nothing, unless the manifest or the object has changed', async (t) => {
  const { api, client } = await server(t);
  const first = await applyIfChanged(client, things, undefined, manifest(1));
  assert.equal(first.changed, true);
  assert.match(first.object.metadata.annotations?.[APPLIED_HASH_ANNOTATION] ?? '', /^[0-9a-f]{16}$/);
  assert.deepEqual(await applyIfChanged(client, things, first.object, manifest(1)), {
    object: first.object,
    changed: false,
  });
  assert.equal(api.requests.length, 1);
  const second = await applyIfChanged(client, things, first.object, manifest(2));
  assert.deepEqual([second.changed, second.object.spec?.size], [true, 2]);
  const meddled = { ...second.object, spec: { size: 99 } };
  assert.equal((await applyIfChanged(client, things, meddled, manifest(2))).changed, true);
  assert.equal((await applyIfChanged(client, things, meddled, manifest(2), { isCurrent: () => true })).changed, false);
});

test('a status is written only when it differs, and a field dropped from it is a difference', async (t) => {
  const { api, client } = await server(t);
  const cached = { ...(await apply(client, things, manifest(1))), status: { phase: 'Ready', url: 'x' } };
  assert.equal((await applyStatusIfChanged(client, things, cached, { url: 'x', phase: 'Ready' })).changed, false);
  assert.equal(api.requests.length, 1);
  assert.equal((await applyStatusIfChanged(client, things, cached, { phase: 'Ready' })).changed, true);
});

test('deletes only the intended object', async (t) => {
  const { api, client } = await server(t);
  const old = await client.create(things, manifest(1));
  api.remove(KIND, 'a', 'apps');
  assert.equal(await deleteObject(client, things, old), false);
  const namesake = await client.create(things, manifest(1));
  assert.equal(await deleteObject(client, things, old), false);
  assert.equal(api.objects(KIND).length, 1);
  await assert.rejects(deleteObject(client, things, namesake, { resourceVersion: '1' }), { status: 409 });
  assert.equal(await deleteObject(client, things, namesake), true);
  assert.equal(api.objects(KIND).length, 0);
});

test('a replace of an object that has changed since is a conflict', async (t) => {
  const { client } = await server(t);
  const first = await client.create(things, manifest(1));
  await client.replace(things, { ...first, spec: { size: 2 } });
  await assert.rejects(client.replace(things, { ...first, spec: { size: 3 } }), { status: 409, reason: 'Conflict' });
});
