// What the activator answers at the former names of an app: the app until its new address is reached, and a redirect after that.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, request, type IncomingMessage, type Server } from 'node:http';
import { afterEach, beforeEach, test } from 'vitest';
import { startActivator, type ActivatorWorld } from '../../support/activator/world.ts';
import { listen } from '../../support/free-port.ts';
import { toAppView } from '../../../activator/directory.ts';

let world: ActivatorWorld;
let server: Server;

beforeEach(async () => {
  world = await startActivator();
  server = createServer((_request, response) => response.end('the app'));
  world.run({ port: await listen(server) });
});
afterEach(async () => {
  await world.stop();
  server.closeAllConnections();
  server.close();
});

const year = 365 * 86_400_000;

/** Renames hello to shop. @param at the name at which the operator has published it */
function rename(at: 'hello' | 'shop', untilMs = year): void {
  world.show({
    names: {
      slug: 'shop',
      former: [
        { name: 'hello', until: new Date(Date.now() + untilMs).toISOString() },
        { name: 'store', until: new Date(Date.now() + untilMs).toISOString() },
      ],
      url: new URL(`https://${at}.apps.test:8443/`),
    },
  });
}

interface Answer {
  readonly status: number | undefined;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

async function ask(host: string, path = '/', options: { method?: string; agent?: string } = {}): Promise<Answer> {
  const { method = 'GET', agent } = options;
  const headers = { host, ...(agent === undefined ? {} : { 'user-agent': agent }) };
  const asked = request({ port: world.port, method, path, headers, agent: false });
  asked.end(method === 'POST' ? 'body' : undefined);
  const [response] = (await once(asked, 'response')) as [IncomingMessage];
  const chunks: Buffer[] = [];
  for await (const chunk of response as AsyncIterable<Buffer>) chunks.push(chunk);
  return { status: response.statusCode, headers: response.headers, body: Buffer.concat(chunks).toString() };
}

test('a former name redirects with the same method, path and query, and is no use of the app', async () => {
  rename('shop');
  for (const method of ['GET', 'POST', 'HEAD']) {
    const { status, headers } = await ask('hello.apps.test:8443', '/a/b?c=d%20e', { method });
    assert.deepEqual([status, headers.location], [308, 'https://shop.apps.test:8443/a/b?c=d%20e'], method);
    assert.deepEqual([headers['moorage-activator'], headers['cache-control']], ['moved', 'no-store']);
  }
  assert.equal((await ask('store.apps.test')).headers.location, 'https://shop.apps.test:8443/');
  assert.equal((await ask('hello--admin.apps.test', '/x')).headers.location, 'https://shop--admin.apps.test:8443/x');
  assert.equal((await ask('shop.apps.test')).body, 'the app');
});

test('attack: no path sends a visitor to another host', async () => {
  rename('shop');
  for (const path of ['//evil.test/', 'https://evil.test/', '/\\evil.test', '/@evil.test']) {
    const { location = '' } = (await ask('hello.apps.test', path)).headers;
    assert.equal(new URL(location).host, 'shop.apps.test:8443', path);
  }
});

test('the app answers at its former name until the new address is published', async () => {
  rename('hello');
  assert.equal((await ask('hello.apps.test')).body, 'the app');
  assert.equal((await ask('store.apps.test')).body, 'the app');
  assert.equal((await ask('shop.apps.test')).body, 'the app');
});

test('calls of the API reach the app at any of its names', async () => {
  rename('shop');
  assert.equal((await ask('hello.apps.test', '/', { agent: 'moorage-api' })).body, 'the app');
});

test('a former name that has ended is that of no app', async () => {
  rename('shop', -1);
  assert.equal((await ask('store.apps.test')).status, 404);
});

test('an app of that very name comes before one that had it', async () => {
  world.show({
    names: {
      slug: 'shop',
      former: [{ name: 'store', until: new Date(Date.now() + year).toISOString() }],
      url: new URL('https://shop.apps.test/'),
    },
  });
  world.show({ isStopped: true }, 'store');
  assert.notEqual((await ask('store.apps.test')).status, 308);
});

test('the names of an app are read from its HostedApp, and one that was never renamed has none', () => {
  const object = {
    ...{ apiVersion: 'moorage.dev/v1alpha1', kind: 'HostedApp' },
    metadata: { name: 'hello', uid: 'u', resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z' },
  };
  assert.equal(toAppView(object).view.names, undefined);
  const control = { slug: 'shop', formerSlugs: [{ name: 'hello', until: '2027-01-01T00:00:00Z' }], secrets: [] };
  const renamed = { ...object, spec: { control }, status: { url: 'https://shop.apps.test/' } };
  assert.deepEqual(toAppView(renamed).view.names, {
    ...{ slug: 'shop', former: control.formerSlugs, url: new URL('https://shop.apps.test/') },
  });
});
