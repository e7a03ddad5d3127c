// What registries answer when they are full, and what they answer else; how layers of base images get into an app's repository.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished, test } from 'vitest';
import { formatImageRepository } from '../../../../crds/names.ts';
import { createFullness, createProxy } from '../../../../controller/registry-proxy/proxy.ts';
import { createPushToken } from '../../../../lib/app-tokens.ts';
import { createLog } from '../../../../lib/telemetry.ts';

const answers: readonly [name: string, status: number, body: string, isFull: boolean][] = [
  ['a full disk, in words', 500, '{"errors":[{"detail":"write /data: no space left on device"}]}', true],
  ['a full disk, by its number', 500, '{"errors":[{"detail":{"Op":"write","Path":"/data","Err":28}}]}', true],
  ['507', 507, '', true],
  ['a quota of a project', 412, 'will exceed the configured upper limit of 10.0 GiB', true],
  ['an object store', 500, 'XMinioStorageFull: Storage backend has reached its minimum free drive threshold.', true],
  ['any other fault', 500, 'internal server error', false],
  ['a layer that is too large for what is in front', 413, 'Request Entity Too Large', false],
  ['a blob that holds such words', 201, 'no space left on device', false],
];

for (const [name, status, body, isFull] of answers)
  test(`${name}: ${isFull ? 'full' : 'not full'}`, () => {
    const state = createFullness(() => Date.parse('2026-11-21T12:00:00Z'));
    assert.equal(state.noteStatus(status, body), isFull);
    assert.equal(state.refusal?.at, isFull ? '2026-11-21T12:00:00.000Z' : undefined);
  });

test('stays full until a push succeeds, whatever other responses report', () => {
  const state = createFullness();
  state.noteStatus(507, '');
  for (const status of [202, 404, 500]) state.noteStatus(status, '');
  assert.ok(state.refusal);
  state.noteStatus(201, '');
  assert.equal(state.refusal, undefined);
});

async function listen(server: Server): Promise<string> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const tokenSecret = 'push-token-secret-of-tests-0123456789';
const app = { namespace: 'moorage-apps', name: 'shop', uid: '11111111-2222-4333-8444-555555555555' };
const digest = `sha256:${'a'.repeat(64)}`;

/** A registry that has one layer, in library/python, and a proxy before it. */
async function startProxy(canLink: boolean): Promise<{
  readonly requests: string[];
  readonly ask: (method: string, path: string) => Promise<number>;
}> {
  const requests: string[] = [];
  const holders = new Set(['library/python']);
  const registry = createServer((request, response) => {
    const { method, url } = request;
    requests.push(`${String(method)} ${String(url)}`);
    const repository = String(url).replace(/^\/v2\/|\/blobs\/.*$/g, '');
    if (method === 'POST') {
      if (canLink) holders.add(repository);
      response.setHeader('location', `/v2/${repository}/blobs/uploads/1`);
    }
    response.statusCode =
      { POST: canLink ? 201 : 202, DELETE: 204 }[String(method)] ?? (holders.has(repository) ? 200 : 404);
    response.end();
  });
  const proxy = createProxy({
    registry: await listen(registry),
    authorize: () => Promise.resolve(undefined),
    tokenSecret,
    mirrors: true,
    fullness: createFullness(),
    log: createLog('registry-proxy'),
  });
  const url = await listen(proxy);
  const authorization = `Basic ${Buffer.from(`moorage:${createPushToken(app, tokenSecret)}`).toString('base64')}`;
  return {
    requests,
    ask: async (method, path) => (await fetch(`${url}/v2/${path}`, { method, headers: { authorization } })).status,
  };
}

const own = formatImageRepository(app);

test('links a layer of a base image that the build has read, so that it is not uploaded', async () => {
  const { requests, ask } = await startProxy(true);
  assert.equal(await ask('GET', `library/python/blobs/${digest}`), 200);
  assert.equal(await ask('HEAD', `${own}/blobs/${digest}`), 200);
  const mount = `mount=${encodeURIComponent(digest)}&from=${encodeURIComponent('library/python')}`;
  assert.ok(requests.includes(`POST /v2/${own}/blobs/uploads/?${mount}`), requests.join(', '));
});

test('links no layer that nobody has read from a base image', async () => {
  const { requests, ask } = await startProxy(true);
  assert.equal(await ask('HEAD', `${own}/blobs/${digest}`), 404);
  assert.deepEqual(requests, [`HEAD /v2/${own}/blobs/${digest}`]);
});

test('a registry that cannot link gets the upload, and none is left open', async () => {
  const { requests, ask } = await startProxy(false);
  assert.equal(await ask('GET', `library/python/blobs/${digest}`), 200);
  assert.equal(await ask('HEAD', `${own}/blobs/${digest}`), 404);
  assert.equal(requests.at(-1), `DELETE /v2/${own}/blobs/uploads/1`);
});
