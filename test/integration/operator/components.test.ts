// The real operator against a real API server, with the rights and under the admission policy of the chart: an app of several
// components goes live after its task, each with its route, and a commit that breaks one of them replaces nothing.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import {
  cronJobs,
  deployments,
  hostedApps,
  jobs,
  pods,
  policies,
  routes,
  services,
  type Job,
} from '../../../controller/objects/kinds.ts';
import { annotations, labels, taskComponent } from '../../../crds/names.ts';
import {
  acceptRoute,
  awaitDeployment,
  awaitStartedJob,
  buildWell,
  completeJob,
  formatImage,
  rollOut,
  startJob,
  writeAppPod,
} from '../../support/operator/stand-in.ts';
import { listAll, startWorld, waitFor, type World } from '../../support/operator/world.ts';

const namespace = 'moorage-apps';
const name = 'trio';
let world: World;
beforeAll(async () => {
  world = await startWorld();
  world.startOperator();
});
afterAll(() => world.stop());

const components = [
  { name: 'web', dependsOn: ['api'] },
  { name: 'api', path: 'api', route: { path: '/api', stripPath: true } },
  { name: 'worker', kind: 'worker', image: 'api', command: ['python', 'worker.py'] },
  { name: 'docs', path: 'docs', route: { subdomain: 'docs' } },
  { name: 'migrate', kind: 'task', image: 'api', command: ['python', 'migrate.py'] },
  { name: 'nightly', kind: 'cron', image: 'api', command: ['python', 'clean.py'], schedule: '0 3 * * *' },
];
const ports: Readonly<Record<string, number>> = { web: 3000, api: 8000, docs: 4000 };

/** Ends the pipeline with an image for each component; those of the API are tagged by `character`. */
async function build(job: Job, character: string): Promise<string> {
  const commit = job.metadata.annotations?.[annotations.commit] ?? '';
  const toImage = (component: string): string => formatImage(job, component === 'web' ? 'a' : character);
  const images = components.map((component) => {
    const port = ports[component.name];
    return { name: component.name, image: toImage(component.name), ...(port === undefined ? {} : { port }) };
  });
  await buildWell(world.client, job, commit, toImage('web'), { port: 3000, components: images });
  return commit;
}

const awaitTask = (other?: string): Promise<Job> =>
  waitFor('a Job of the task', async () =>
    (await listAll(world.client, jobs, namespace, `${labels.app}=${name},${labels.component}=${taskComponent}`)).find(
      ({ metadata }) => metadata.name !== other,
    ),
  );

test('runs the task first, and then all components in one pod, each with its route', async () => {
  await world.submit(name, { components });
  await build(await awaitStartedJob(world, name), 'b');
  const task = await awaitTask();
  assert.equal(await world.client.get(deployments, { name, namespace }), undefined, 'nothing starts before the task');
  await startJob(world.client, task);
  await completeJob(world.client, task);
  const deployment = await waitFor('the Deployment', () => world.client.get(deployments, { name, namespace }));
  const { initContainers = [], containers } = deployment.spec?.template.spec ?? assert.fail('no template');
  assert.deepEqual(
    [initContainers, containers].map((list) => list.map((container) => container.name)),
    [['api'], ['worker', 'docs', 'web']],
  );
  await rollOut(world.client, deployment);
  await acceptRoute(world, name);
  await acceptRoute(world, `${name}--docs`);
  const status = await waitFor('it to be live', async () => {
    const found = (await world.app(name))?.status;
    return found?.phase === 'Live' ? found : undefined;
  });
  assert.deepEqual(
    status.components?.map((component) => [component.name, component.ready]),
    [
      ['api', true],
      ['worker', true],
      ['docs', true],
      ['web', true],
      ['migrate', true],
      ['nightly', true],
    ],
  );
});

test('has a port and a rule for each web component, and a schedule for the cron component', async () => {
  const service = await world.client.get(services, { name, namespace });
  assert.deepEqual(service?.spec?.ports?.map((port) => port.name).sort(), ['api', 'docs', 'http']);
  assert.match(JSON.stringify(await world.client.get(routes, { name, namespace })), /"replacePrefixMatch":"\/"/);
  const policy = await world.client.get(policies, { name, namespace });
  const ports = policy?.spec?.ingress?.flatMap((rule) => rule.ports ?? []);
  assert.deepEqual(
    ports?.map(({ port }) => port),
    [3000, 4000, 8000],
  );
  const [cron] = await listAll(world.client, cronJobs, namespace, `${labels.app}=${name}`);
  assert.match(JSON.stringify(cron), /"concurrencyPolicy":"Forbid"/);
});

test('a commit that breaks one component is rejected by its name, and the previous release keeps serving', async () => {
  const [before] = await listAll(world.client, jobs, namespace, `${labels.component}=${taskComponent}`);
  await world.git.commit('broken');
  await world.client.patch(
    hostedApps,
    { name, namespace },
    { metadata: { annotations: { [annotations.poll]: String(Date.now()) } } },
    { type: 'application/merge-patch+json' },
  );
  const job = await awaitStartedJob(world, name);
  await build(job, 'c');
  const task = await awaitTask(before?.metadata.name);
  await startJob(world.client, task);
  await completeJob(world.client, task);
  const deployment = await awaitDeployment(world, name, formatImage(job, 'c'));
  const at = new Date().toISOString().slice(0, 19).concat('Z');
  await writeAppPod(
    world.client,
    deployment,
    { ready: true, started: true, state: { running: { startedAt: at } } },
    {
      worker: {
        ...{ ready: false, started: false, restartCount: 4 },
        state: { waiting: { reason: 'CrashLoopBackOff' } },
        lastState: {
          terminated: { exitCode: 1, reason: 'Error', message: 'KeyError: QUEUE', startedAt: at, finishedAt: at },
        },
      },
    },
  );
  const status = await waitFor('the rejection', async () => {
    const found = (await world.app(name))?.status;
    return found?.phase === 'Rejected' ? found : undefined;
  });
  assert.equal(status.rejection?.rule, 'run/crashed');
  assert.match(status.rejection.message, /^Component worker crashed with exit code 1/);
  await awaitDeployment(world, name, formatImage(job, 'b'));
  const serving = await listAll(world.client, pods, namespace, `${labels.app}=${name},${labels.component}=app`);
  assert.ok(serving.some(({ metadata }) => JSON.stringify(metadata).includes(formatImage(job, 'b'))));
});
