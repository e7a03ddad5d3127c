// The real operator against a real API server: from a submitted repository to a live app and on to the next commit.
// Kubelet, controllers and gateway are stood in for by status written by the test.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { hostedApps } from '../../../controller/objects/kinds.ts';
import { annotations, finalizer } from '../../../crds/names.ts';
import { toPublicStatus } from '../../../crds/public-status.ts';
import {
  acceptRoute,
  buildWell,
  createCloneEnd,
  completeJob,
  awaitDeployment,
  createEndedContainer,
  failJob,
  formatImage,
  createBuildEnd,
  createReviewEnd,
  rollOut,
  rollOutInVain,
  createRunningContainer,
  startJob,
  awaitStartedJob,
  writePod,
} from '../../support/operator/stand-in.ts';
import { listEvents, startWorld, waitFor, type World } from '../../support/operator/world.ts';

let world: World;
beforeAll(async () => {
  world = await startWorld();
  world.startOperator();
});
afterAll(() => world.stop());

async function phase(name: string, wanted: string): Promise<void> {
  let last = 'none';
  await waitFor(`${name} in phase ${wanted}`, async () => {
    const status = (await world.app(name))?.status;
    last = JSON.stringify(status ?? {});
    return status?.phase === wanted;
  }).catch((error: unknown) => {
    throw new Error(`${String(error)}; status ${last}`);
  });
}

async function poll(name: string): Promise<void> {
  await world.client.patch(
    hostedApps,
    { name, namespace: 'moorage-apps' },
    { metadata: { annotations: { [annotations.poll]: String(Date.now()) } } },
    { type: 'application/merge-patch+json' },
  );
}

async function goLive(name: string, character: string): Promise<string> {
  const commit = await waitFor(`${name} resolved`, async () => (await world.app(name))?.status?.source?.commit);
  const job = await awaitStartedJob(world, name);
  await buildWell(world.client, job, commit, formatImage(job, character));
  await rollOut(world.client, await awaitDeployment(world, name, formatImage(job, character)));
  await acceptRoute(world, name);
  await phase(name, 'Live');
  return commit;
}

test('a submitted repository goes through every stage and ends live', async () => {
  await world.submit('journey');
  const job = await awaitStartedJob(world, 'journey');
  const commit = job.metadata.annotations?.[annotations.commit] ?? '';
  await startJob(world.client, job);
  await writePod(world.client, job, [createRunningContainer('clone')]);
  await phase('journey', 'Cloning');
  await writePod(world.client, job, [createCloneEnd(commit), createRunningContainer('review')]);
  await phase('journey', 'Reviewing');
  await writePod(world.client, job, [createCloneEnd(commit), createReviewEnd(), createRunningContainer('build')]);
  await phase('journey', 'Building');
  await writePod(
    world.client,
    job,
    [createCloneEnd(commit), createReviewEnd(), createBuildEnd(formatImage(job, 'a'))],
    'Succeeded',
  );
  await completeJob(world.client, job);
  await phase('journey', 'Deploying');
  await rollOut(world.client, await awaitDeployment(world, 'journey', formatImage(job, 'a')));
  await phase('journey', 'Routing');
  await acceptRoute(world, 'journey');
  await phase('journey', 'Live');

  const status = (await world.app('journey'))?.status;
  assert.deepEqual(
    status?.conditions?.map(({ type, status: value, reason }) => `${type}=${value} ${reason}`),
    [
      'Ready=True Live',
      'SourceResolved=True Resolved',
      'Reviewed=True ReviewPassed',
      'Built=True Built',
      'Deployed=True Available',
      'Routed=True Routed',
    ],
  );
  assert.equal(status.url, 'https://journey.apps.localhost/');
  assert.equal(status.served?.commit, commit);
  assert.equal(status.plan?.strategy, 'python');
  assert.deepEqual(
    status.history?.map(({ number, result, reason }) => [number, result, reason]),
    [[1, 'Succeeded', 'first build']],
  );
  await world.api.kubectl('wait', '--for=condition=Ready', 'happ/journey', '-n', 'moorage-apps', '--timeout=5s');
  const events = await waitFor('events up to Live', async () => {
    const reasons = (await listEvents(world, 'moorage-apps'))
      .filter(({ regarding }) => regarding?.name === 'journey')
      .map(({ reason }) => reason);
    return reasons.includes('Live') ? reasons : undefined;
  });
  for (const reason of [
    'Resolved',
    'Queued',
    'Cloning',
    'Reviewing',
    'ReviewPassed',
    'Building',
    'Built',
    'RollingOut',
    'Available',
    'Routed',
    'Live',
  ])
    assert.ok(events.includes(reason), `no event ${reason}`);
});

test('writes nothing once nothing changes', async () => {
  const before = await world.app('journey');
  await world.client.patch(
    hostedApps,
    { name: 'journey', namespace: 'moorage-apps' },
    { metadata: { labels: { touched: 'yes' } } },
    { type: 'application/merge-patch+json' },
  );
  await poll('journey');
  const polledFor = before?.status?.source?.polledFor;
  const after = await waitFor('the poll that was asked for', async () => {
    const app = await world.app('journey');
    return app?.status?.source?.polledFor === polledFor ? undefined : app;
  });
  assert.deepEqual({ ...after.status, source: undefined }, { ...before?.status, source: undefined });
});

test('a newer commit replaces one that is being built, while the old one keeps serving', async () => {
  const second = await world.git.commit('second');
  await poll('journey');
  const overtaken = await awaitStartedJob(world, 'journey');
  assert.equal(overtaken.metadata.annotations?.[annotations.commit], second);
  const third = await world.git.commit('third');
  await poll('journey');
  const job = await awaitStartedJob(world, 'journey', overtaken.metadata.name);
  await waitFor('the overtaken Job to go', async () =>
    (await world.jobs('journey')).every(({ metadata }) => metadata.name !== overtaken.metadata.name),
  );
  assert.match(job.metadata.annotations?.[annotations.reason] ?? '', /^new commit /);
  const status = (await world.app('journey'))?.status;
  assert.equal(status?.history?.[0]?.result, 'Superseded');
  assert.equal(toPublicStatus({ spec: ((await world.app('journey')) ?? assert.fail()).spec, status }).status, 'live');
  await buildWell(world.client, job, third, formatImage(job, 'c'));
  await rollOut(world.client, await awaitDeployment(world, 'journey', formatImage(job, 'c')));
  await waitFor('the third commit serving', async () => (await world.app('journey'))?.status?.served?.commit === third);
  await phase('journey', 'Live');
});

test('a rollout that never listens leaves the old commit serving, and is reported', async () => {
  const good = (await world.app('journey'))?.status?.served?.commit;
  const bad = await world.git.commit('bad');
  await poll('journey');
  const job = await awaitStartedJob(world, 'journey');
  await buildWell(world.client, job, bad, formatImage(job, 'd'));
  await rollOutInVain(world.client, await awaitDeployment(world, 'journey', formatImage(job, 'd')));
  await phase('journey', 'Rejected');
  const app = (await world.app('journey')) ?? assert.fail();
  assert.equal(app.status?.served?.commit, good);
  assert.equal(app.status?.rejection?.rule, 'run/never-listened');
  assert.equal(toPublicStatus(app).status, 'live');
});

test('reports rule, file, line and fix of a rejected repository', async () => {
  await world.submit('refused');
  const job = await awaitStartedJob(world, 'refused');
  const finding = {
    rule: 'secrets/aws-access-token',
    severity: 'error',
    file: 'app.py',
    line: 7,
    message: 'An AWS key.',
    fix: 'Remove it and revoke it.',
  };
  await startJob(world.client, job);
  await writePod(
    world.client,
    job,
    [
      createCloneEnd(job.metadata.annotations?.[annotations.commit] ?? ''),
      createEndedContainer('review', 42, { rejected: true, findings: [finding] }),
    ],
    'Failed',
  );
  await failJob(world.client, job, 'PodFailurePolicy');
  await phase('refused', 'Rejected');
  assert.deepEqual({ ...(await world.app('refused'))?.status?.rejection, severity: 'error' }, finding);
});

test('never deploys an image outside the requested name', async () => {
  await world.submit('hostile');
  const job = await awaitStartedJob(world, 'hostile');
  const [foreign = assert.fail()] = await world.jobs('journey');
  await buildWell(world.client, job, job.metadata.annotations?.[annotations.commit] ?? '', formatImage(foreign, 'e'));
  const status = await waitFor('the fault reported', async () => {
    const found = (await world.app('hostile'))?.status;
    return found?.history?.[0]?.result === 'Faulted' ? found : undefined;
  });
  assert.equal(status.built, undefined);
  assert.match(status.history?.[0]?.message ?? '', /outside registry\.test\/apps\/hostile/);
});

test('retries a platform fault with a new run of the same Job', async () => {
  await world.submit('faulty');
  const first = await awaitStartedJob(world, 'faulty');
  const longAgo = `${new Date(Date.now() - 3_600_000).toISOString().slice(0, 19)}Z`;
  await startJob(world.client, first);
  await failJob(world.client, first, 'BackoffLimitExceeded', longAgo);
  const again = await waitFor('the Job to be created again', async () =>
    (await world.jobs('faulty')).find(({ metadata }) => metadata.uid !== first.metadata.uid),
  );
  assert.equal(again.metadata.name, first.metadata.name);
  assert.equal(again.metadata.annotations?.[annotations.reason], 'retry after a platform fault (attempt 2 of 5)');
  assert.deepEqual(
    (await world.app('faulty'))?.status?.history?.map(({ number, result }) => [number, result]),
    [[1, 'Faulted']],
  );
});

test('deletes the Jobs with the app, which is removed only after them', async () => {
  await world.submit('goner');
  await goLive('goner', 'f');
  assert.ok((await world.app('goner'))?.metadata.finalizers?.includes(finalizer));
  await world.client.delete(hostedApps, { name: 'goner', namespace: 'moorage-apps' });
  await waitFor('the app gone', async () => (await world.app('goner')) === undefined);
  assert.deepEqual(await world.jobs('goner'), []);
});
