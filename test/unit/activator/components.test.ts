// Apps with several components: the activator finds the one that a request is for, by its host name and its path.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, request, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, test } from 'vitest';
import type { PodComponent } from '../../../crds/routes.ts';
import { host, startActivator, type ActivatorWorld } from '../../support/activator/world.ts';
import { findFreePort, listen } from '../../support/free-port.ts';

let world: ActivatorWorld;
const servers: Server[] = [];

beforeEach(async () => {
  world = await startActivator();
});
afterEach(async () => {
  await world.stop();
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

async function startApp(listener: RequestListener, port: number): Promise<number> {
  const server = createServer(listener);
  servers.push(server);
  return listen(server, port);
}

async function ask({ path = '/', headers = {} }: { path?: string; headers?: Record<string, string> }): Promise<{
  readonly status: number | undefined;
  readonly body: string;
}> {
  const asked = request({ port: world.port, path, headers: { host, ...headers }, agent: false });
  asked.end();
  const [response] = (await once(asked, 'response')) as [IncomingMessage];
  const chunks: Buffer[] = [];
  for await (const chunk of response as AsyncIterable<Buffer>) chunks.push(chunk);
  return { status: response.statusCode, body: Buffer.concat(chunks).toString() };
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await sleep(5);
}

interface TestComponent {
  readonly name: string;
  readonly path?: string;
  readonly stripPath?: boolean;
  readonly morePaths?: string[];
  readonly subdomain?: string;
}

/** Starts a server for a component that answers with its name and the path that it sees. */
async function startComponent(
  { name, path, stripPath = false, ...rest }: TestComponent,
  port = 0,
): Promise<PodComponent & { port: number }> {
  const listening = await startApp((asked, answer) => answer.end(`${name} ${asked.url ?? ''}`), port);
  const route = path === undefined ? {} : { route: { path, stripPath, ...rest } };
  return { name, image: 'i', port: listening, ...route };
}

test('a request goes to the component with the longest path at its host, which may see it without that path', async () => {
  const components = [
    await startComponent({ name: 'web', path: '/' }),
    await startComponent({ name: 'api', path: '/api', stripPath: true, morePaths: ['/ws'] }),
    await startComponent({ name: 'docs', path: '/', subdomain: 'docs' }),
  ];
  world.run({ port: components[0]?.port ?? 0, components });
  const bodies = await Promise.all(
    [
      { path: '/x' },
      { path: '/api/users?a=1' },
      { path: '/ws/1' },
      { path: '/x', headers: { host: 'hello--docs.apps.test' } },
    ].map(ask),
  );
  assert.deepEqual(
    bodies.map(({ body }) => body),
    ['web /x', 'api /users?a=1', 'api /ws/1', 'docs /x'],
  );
  assert.deepEqual(Object.keys(world.activity.report().apps), ['hello'], 'all of it is use of the app');
  const unknown = await ask({ headers: { host: 'hello--other.apps.test' } });
  assert.equal(unknown.status, 404);
  assert.equal((await ask({ headers: { host: 'other--docs.apps.test' } })).status, 404);
});

test('a held request waits until every component takes connections, so that no page comes before its API', async () => {
  world.show({ idle: { state: 'Asleep', number: 1, wakeMs: 900 } });
  world.run();
  const web = await startComponent({ name: 'web', path: '/' });
  const port = await findFreePort();
  const api = { name: 'api', image: 'i', port, route: { path: '/api', stripPath: false } };
  world.onAsk = () => {
    world.show({ idle: { state: 'Waking', number: 1, wakeMs: undefined } });
    world.run({ port: web.port, isReady: false, components: [web, api] });
  };
  const asked = ask({ path: '/page' });
  await until(() => world.gate.heldRequests === 1);
  assert.equal(await Promise.race([asked.then(() => 'answered'), sleep(300, 'held')]), 'held');
  await startComponent({ name: 'api', path: '/api' }, port);
  assert.equal((await asked).body, 'web /page');
});
