// The real operator against a real API server: an app with a volume tries each new image beside the old one, with the
// rights and under the admission policy of the chart, before anything of the old one ends.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { deployments, hostedApps, pods, routes, type Deployment } from '../../../controller/objects/kinds.ts';
import { activator, annotations, labels, trialComponent } from '../../../crds/names.ts';
import {
  acceptRoute,
  buildWell,
  awaitDeployment,
  formatImage,
  rollOut,
  rollOutInVain,
  awaitStartedJob,
} from '../../support/operator/stand-in.ts';
import { listAll, startWorld, waitFor, type World } from '../../support/operator/world.ts';

const apps = 'moorage-apps';
const name = 'keeper';
let world: World;
beforeAll(async () => {
  world = await startWorld();
  world.startOperator();
});
afterAll(() => world.stop());

const trials = (): Promise<Deployment[]> =>
  listAll(world.client, deployments, apps, `${labels.app}=${name},${labels.component}=${trialComponent}`);
const main = async (): Promise<Deployment> =>
  (await world.client.get(deployments, { name, namespace: apps })) ?? assert.fail('no Deployment');

/** Commits, builds, and waits for the trial of the image. */
async function tryCommit(file: string, character: string): Promise<{ image: string; trial: Deployment }> {
  const commit = await world.git.commit(file);
  await world.client.patch(
    hostedApps,
    { name, namespace: apps },
    { metadata: { annotations: { [annotations.poll]: String(Date.now()) } } },
    { type: 'application/merge-patch+json' },
  );
  const job = await awaitStartedJob(world, name);
  const image = formatImage(job, character);
  await buildWell(world.client, job, commit, image);
  const trial = await waitFor(`a trial of ${file}`, async () =>
    (await trials()).find(({ spec }) => JSON.stringify(spec).includes(image)),
  );
  return { image, trial };
}

const template = z.looseObject({
  spec: z.looseObject({
    template: z.looseObject({
      spec: z.looseObject({ volumes: z.array(z.looseObject({ name: z.string() })) }),
    }),
  }),
});

test('an app with a volume goes live, reached through the activator', async () => {
  await world.submit(name, { run: { volumes: [{ name: 'data', path: '/data' }] } });
  const job = await awaitStartedJob(world, name);
  await buildWell(world.client, job, job.metadata.annotations?.[annotations.commit] ?? '', formatImage(job, 'a'));
  await rollOut(world.client, await awaitDeployment(world, name, formatImage(job, 'a')));
  await acceptRoute(world, name);
  await waitFor('it to be live', async () => (await world.app(name))?.status?.phase === 'Live');
  const route = await world.client.get(routes, { name, namespace: apps });
  assert.match(JSON.stringify(route), new RegExp(`"name":"${activator.name}"`));
  assert.deepEqual(await trials(), []);
});

test('a commit that does not start is rejected by its trial, without touching the serving pod', async () => {
  const before = await main();
  const [serving] = await listAll(world.client, pods, apps, `${labels.app}=${name}`);
  const { trial } = await tryCommit('bad', 'b');
  const { volumes } = template.parse(trial).spec.template.spec;
  assert.deepEqual(volumes, [{ name: 'data', emptyDir: {} }]);
  await rollOutInVain(world.client, trial);
  const status = await waitFor('the rejection', async () => {
    const found = (await world.app(name))?.status;
    return found?.phase === 'Rejected' ? found : undefined;
  });
  assert.equal(status.rejection?.rule, 'run/never-listened');
  assert.match(status.rejection.message, /It has not replaced commit [0-9a-f]{7}\.$/);
  assert.deepEqual((await main()).spec, before.spec);
  const left = await listAll(world.client, pods, apps, `${labels.app}=${name},${labels.component}=app`);
  assert.deepEqual(
    left.map(({ metadata }) => metadata.uid),
    [serving?.metadata.uid],
  );
  await waitFor('the trial to go', async () => (await trials()).length === 0);
  // What the garbage collector does.
  for (const pod of await listAll(world.client, pods, apps, `${labels.component}=${trialComponent}`))
    await world.client.delete(pods, pod.metadata, { gracePeriodSeconds: 0 });
});

test('a commit that starts replaces the old one, which is reported as serving throughout', async () => {
  const { image, trial } = await tryCommit('good', 'c');
  await waitFor('the trial in the status', async () =>
    (await world.app(name))?.status?.conditions?.some(({ type, reason }) => type === 'Deployed' && reason === 'Trying'),
  );
  assert.ok(!JSON.stringify((await main()).spec).includes(image));
  await rollOut(world.client, trial);
  const swapped = await awaitDeployment(world, name, image);
  assert.ok((await world.app(name))?.status?.served !== undefined);
  assert.equal((await trials()).length, 1, 'its end would slow down the start that requests are held for');
  await rollOut(world.client, swapped);
  await waitFor('it to be live again', async () => (await world.app(name))?.status?.phase === 'Live');
  await waitFor('the trial to go', async () => (await trials()).length === 0);
});
