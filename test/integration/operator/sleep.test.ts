// The real operator against a real API server, with an activator whose answers the test gives: an app that nobody uses
// is put to sleep once the activator agrees, is woken by the word, and a new commit is seen to work before it sleeps.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { networkInterfaces } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { createActivity, type Activity, createControlServer } from '../../../activator/activity.ts';
import {
  findCondition,
  deployments,
  endpointSlices,
  hostedApps,
  pods,
  routes,
} from '../../../controller/objects/kinds.ts';
import type { HostedAppStatus } from '../../../crds/hosted-app.ts';
import { activator, annotations, labels } from '../../../crds/names.ts';
import { applyStatus } from '../../../lib/kubernetes/index.ts';
import {
  acceptRoute,
  buildWell,
  awaitDeployment,
  formatImage,
  rollOut,
  awaitStartedJob,
} from '../../support/operator/stand-in.ts';
import { listAll, startWorld, waitFor, type World } from '../../support/operator/world.ts';

const apps = 'moorage-apps';
let world: World;
let activity: Activity;
let control: Server;
/** Apps that the operator asked the activator to close. */
const closed: string[] = [];

beforeAll(async () => {
  world = await startWorld();
  activity = createActivity();
  control = createControlServer({
    ...activity,
    close(request) {
      closed.push(request.app);
      return activity.close(request);
    },
  });
  control.listen(0, '0.0.0.0');
  await once(control, 'listening');
  await world.client.create(endpointSlices, {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      name: 'activator-1',
      namespace: 'moorage-system',
      labels: { 'kubernetes.io/service-name': `${activator.name}-control` },
    },
    addressType: 'IPv4',
    endpoints: [{ addresses: [ownAddress()] }],
    ports: [{ name: 'control', port: (control.address() as AddressInfo).port, protocol: 'TCP' }],
  });
  world.startOperator({ MOORAGE_ACTIVITY_INTERVAL: '1s' });
});
afterAll(async () => {
  control.closeAllConnections();
  control.close();
  await world.stop();
});

/** An endpoint must not be on loopback. */
function ownAddress(): string {
  const found = Object.values(networkInterfaces())
    .flat()
    .find((address) => address?.family === 'IPv4' && !address.internal);
  return found?.address ?? assert.fail('this machine has no address but loopback');
}

const backends = z.looseObject({
  rules: z.array(z.looseObject({ backendRefs: z.array(z.looseObject({ name: z.string() })) })),
});
const backendOf = async (name: string): Promise<string | undefined> => {
  const route = await world.client.get(routes, { name, namespace: apps });
  const { spec } = z.looseObject({ spec: backends }).parse(route);
  return spec.rules[0]?.backendRefs[0]?.name;
};
const statusOf = async (name: string): Promise<HostedAppStatus> => (await world.app(name))?.status ?? {};
const stateOf = async (name: string): Promise<string | undefined> => (await world.app(name))?.status?.idle?.state;
const replicasOf = async (name: string): Promise<number | undefined> =>
  (await world.client.get(deployments, { name, namespace: apps }))?.spec?.replicas;
const inState = (name: string, state: string): Promise<boolean> =>
  waitFor(`${name} to be ${state}`, async () => (await stateOf(name)) === state);

async function wakeByWord(name: string): Promise<void> {
  const number = (await world.app(name))?.status?.idle?.number;
  const body = { metadata: { annotations: { [annotations.wake]: String(number) } } };
  await world.client.patch(hostedApps, { name, namespace: apps }, body, { type: 'application/merge-patch+json' });
}

/** What the deployment controller does when there are to be no replicas. */
async function scaleDown(name: string): Promise<void> {
  await waitFor(`${name} to have no replicas`, async () => (await replicasOf(name)) === 0);
  for (const pod of await listAll(world.client, pods, apps, `${labels.app}=${name}`))
    await world.client.delete(pods, pod.metadata, { gracePeriodSeconds: 0 });
  const deployment = await world.client.get(deployments, { name, namespace: apps });
  await applyStatus(
    world.client,
    deployments,
    { name, namespace: apps },
    { observedGeneration: deployment?.metadata.generation },
    { fieldManager: 'stand-in' },
  );
}

async function goLive(name: string, spec: object): Promise<string> {
  await world.submit(name, spec as never);
  const job = await awaitStartedJob(world, name);
  const image = formatImage(job, 'a');
  await buildWell(world.client, job, job.metadata.annotations?.[annotations.commit] ?? '', image);
  await rollOut(world.client, await awaitDeployment(world, name, image));
  await acceptRoute(world, name);
  await waitFor(`${name} to be live`, async () => (await world.app(name))?.status?.phase === 'Live');
  return image;
}

test.concurrent('an app sleeps once the activator agrees, stays live, and wakes by annotation', async () => {
  const image = await goLive('sleeper', { run: { idleAfter: '10s' } });
  await waitFor('the way through the activator', async () => (await backendOf('sleeper')) === activator.name);
  await acceptRoute(world, 'sleeper');
  await inState('sleeper', 'Asleep');
  assert.ok(closed.includes('sleeper'));
  await scaleDown('sleeper');
  const status = await statusOf('sleeper');
  assert.deepEqual([status.phase, status.served?.image], ['Live', image]);
  const ready = findCondition(status.conditions, 'Ready');
  assert.deepEqual([ready?.status, ready?.reason], ['True', 'Asleep']);

  await wakeByWord('sleeper');
  await inState('sleeper', 'Waking');
  await waitFor('a replica', async () => (await replicasOf('sleeper')) === 1);
  assert.equal((await statusOf('sleeper')).phase, 'Live');
  activity.recordWake('sleeper', status.idle?.number ?? 0, 1_234);
  await rollOut(world.client, await awaitDeployment(world, 'sleeper', image));
  await inState('sleeper', 'Awake');
  const wakes = await waitFor('the wake in the status', async () => (await statusOf('sleeper')).idle?.wakes);
  assert.deepEqual([wakes.count, wakes.p50Ms], [1, 1_234]);
});

test.concurrent('an app with a request in progress does not sleep, however long it takes', async () => {
  const over = activity.begin('busy', false);
  await goLive('busy', { run: { idleAfter: '10s' } });
  await waitFor('the way through the activator', async () => (await backendOf('busy')) === activator.name);
  await acceptRoute(world, 'busy');
  await sleep(15_000);
  assert.equal(await stateOf('busy'), 'Awake');
  over();
  await inState('busy', 'Asleep');
});

test.concurrent(
  'settings that restart its pods wake an app, to check that it works before it sleeps again',
  async () => {
    const image = await goLive('changed', { run: { idleAfter: '10s' } });
    await acceptRoute(world, 'changed');
    await inState('changed', 'Asleep');
    await scaleDown('changed');
    const body = { spec: { run: { env: [{ name: 'COLOUR', value: 'blue' }] } } };
    await world.client.patch(hostedApps, { name: 'changed', namespace: apps }, body, {
      type: 'application/merge-patch+json',
    });
    await inState('changed', 'Waking');
    await waitFor('a replica', async () => (await replicasOf('changed')) === 1);
    await rollOut(world.client, await awaitDeployment(world, 'changed', image));
    await inState('changed', 'Awake');
    await inState('changed', 'Asleep');
  },
);

test('an app without the setting is reached directly, and so is one whose setting is removed', async () => {
  await goLive('awake', {});
  assert.equal(await backendOf('awake'), 'awake');
  assert.equal(await stateOf('awake'), undefined);
  await wakeByWord('sleeper');
  const body = { spec: { run: { idleAfter: 'never' } } };
  await world.client.patch(hostedApps, { name: 'sleeper', namespace: apps }, body, {
    type: 'application/merge-patch+json',
  });
  await waitFor('the direct way', async () => (await backendOf('sleeper')) === 'sleeper');
  await waitFor('a replica', async () => (await replicasOf('sleeper')) === 1);
});
