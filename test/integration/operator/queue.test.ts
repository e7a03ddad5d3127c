// The build queue of the real operator: a cap on builds at once, oldest first, and positions that are reported.
// The Jobs' ends are written by the test in place of the job controller.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { failJob, findNoRoom, awaitStartedJob, startJob } from '../../support/operator/stand-in.ts';
import { hostedApps } from '../../../controller/objects/kinds.ts';
import { labels } from '../../../crds/names.ts';
import { listAll, startWorld, waitFor, type Operator, type World } from '../../support/operator/world.ts';

const apps = 'moorage-apps';
let world: World;
beforeAll(async () => {
  world = await startWorld();
});
afterAll(() => world.stop());

/** The operator takes down what it made, so that the next test has all slots. */
async function clear(operator: Operator): Promise<void> {
  for (const { metadata } of await listAll(world.client, hostedApps, apps))
    await world.client.delete(hostedApps, metadata);
  await waitFor('no app', async () => (await listAll(world.client, hostedApps, apps)).length === 0);
  await operator.end();
}

async function positionOf(name: string): Promise<number | undefined> {
  return (await world.app(name))?.status?.pipeline?.position;
}

test('one build at a time: the others wait in the order of arrival, and move up', async () => {
  const operator = world.startOperator({ MOORAGE_BUILDS_CONCURRENCY: '1' });
  for (const name of ['one', 'two', 'three']) {
    await world.submit(name);
    await waitFor(`a Job of ${name}`, async () => (await world.jobs(name)).length === 1);
  }
  const first = await awaitStartedJob(world, 'one');
  await waitFor('positions 1 and 2', async () => (await positionOf('two')) === 1 && (await positionOf('three')) === 2);
  assert.equal((await world.app('two'))?.status?.phase, 'Queued');
  assert.deepEqual(
    (await Promise.all(['two', 'three'].map((name) => world.jobs(name)))).flat().map(({ spec }) => spec?.suspend),
    [true, true],
  );
  await startJob(world.client, first);
  await failJob(world.client, first, 'DeadlineExceeded');
  await awaitStartedJob(world, 'two');
  await waitFor('three to move up', async () => (await positionOf('three')) === 1);
  assert.equal((await world.jobs('three'))[0]?.spec?.suspend, true);
  await clear(operator);
});

async function queued(...names: string[]): Promise<void> {
  for (const name of names) await waitFor(`a Job of ${name}`, async () => (await world.jobs(name)).length === 1);
}

async function suspended(...names: string[]): Promise<(boolean | undefined)[]> {
  return (await Promise.all(names.map((name) => world.jobs(name)))).flat().map(({ spec }) => spec?.suspend);
}

test('a network that submits many apps has one build at a time: the next slot goes to another', async () => {
  const operator = world.startOperator({ MOORAGE_BUILDS_CONCURRENCY: '2' });
  const attacker = { [labels.network]: 'attacker', [labels.caller]: 'attacker' };
  const flood = ['flood-a', 'flood-b', 'flood-c'];
  for (const name of flood) {
    // Another key, the same network.
    await world.submit(name, {}, { ...attacker, [labels.caller]: name });
    await queued(name);
  }
  await world.submit('honest', {}, { [labels.network]: 'honest', [labels.caller]: 'honest' });
  await awaitStartedJob(world, 'honest');
  assert.deepEqual(await suspended(...flood), [false, true, true]);
  const held = await awaitStartedJob(world, 'flood-a');
  await startJob(world.client, held);
  await failJob(world.client, held, 'DeadlineExceeded');
  await awaitStartedJob(world, 'flood-b');
  assert.deepEqual(await suspended('flood-c'), [true]);
  await clear(operator);
});

test('a build whose pod no node accepts releases its slot, and reports why', async () => {
  const operator = world.startOperator({ MOORAGE_BUILDS_CONCURRENCY: '1', MOORAGE_BUILDS_SCHEDULING_TIME: '2s' });
  await world.submit('huge');
  const huge = await awaitStartedJob(world, 'huge');
  await world.submit('small');
  await queued('small');
  await startJob(world.client, huge);
  await findNoRoom(world.client, huge, '0/1 nodes are available: 1 Insufficient memory.');
  await awaitStartedJob(world, 'small');
  assert.deepEqual(await suspended('huge'), [true]);
  await waitFor('the reason', async () => {
    const { conditions = [], phase } = (await world.app('huge'))?.status ?? {};
    const reviewed = conditions.find(({ type }) => type === 'Reviewed');
    return (
      phase === 'Queued' &&
      reviewed?.reason === 'WaitingForRoom' &&
      reviewed.message.startsWith('Waiting for room: 0/1 nodes are available: 1 Insufficient memory.')
    );
  });
  await clear(operator);
});

/** Stands in for the registry proxy: says whether the registry has space, and notes what is removed. */
async function startProxy(): Promise<{ host: string; asked: string[]; state: { isFull: boolean }; server: Server }> {
  const [asked, state]: [string[], { isFull: boolean }] = [[], { isFull: false }];
  const server = createServer((request, response) => {
    const { method = '', url = '' } = request;
    if (url !== '/space') asked.push(`${method} ${url}`);
    response.setHeader('docker-content-digest', `sha256:${'d'.repeat(64)}`);
    if (url === '/space')
      response.end(JSON.stringify(state.isFull ? { refusal: { at: new Date().toISOString() } } : {}));
    else response.end(JSON.stringify(url.endsWith('/tags/list') ? { tags: ['build-1'] } : {}));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = z.object({ port: z.int() }).parse(server.address());
  return { host: `127.0.0.1:${port}`, asked, state, server };
}

test("without space in the registry builds wait and report it; a deleted app's images are removed with it", async () => {
  const proxy = await startProxy();
  proxy.state.isFull = true;
  const operator = world.startOperator({
    MOORAGE_REGISTRY_PROXY: proxy.host,
    MOORAGE_REGISTRY_PRUNE: 'true',
    MOORAGE_BUILDS_SPACE_INTERVAL: '1s',
  });
  await waitFor('the operator to see it', () => Promise.resolve(operator.log().includes('no build is started')));
  await world.submit('patient');
  await queued('patient');
  await waitFor('the reason', async () => {
    const reviewed = (await world.app('patient'))?.status?.conditions?.find(({ type }) => type === 'Reviewed');
    return (
      reviewed?.reason === 'WaitingForSpace' && reviewed.message.startsWith('Waiting for disk space: the registry')
    );
  });
  assert.deepEqual(await suspended('patient'), [true]);
  proxy.state.isFull = false;
  await awaitStartedJob(world, 'patient');
  const uid = (await world.app('patient'))?.metadata.uid ?? '';
  await clear(operator);
  const removed = proxy.asked.filter((each) => each.startsWith('DELETE'));
  const manifest = `manifests/sha256:${'d'.repeat(64)}`;
  assert.deepEqual(
    new Set(removed),
    new Set([`DELETE /v2/apps/patient.${uid}/${manifest}`, `DELETE /v2/cache/patient.${uid}/${manifest}`]),
  );
  proxy.server.close();
  proxy.server.closeAllConnections();
});
