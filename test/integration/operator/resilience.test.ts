// The real operator is ended by SIGKILL at every stage, replaced, and finds its way: one Job, one image, one leader.
// Kubelet, controllers and gateway are stood in for by status written by the test.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { annotations } from '../../../crds/names.ts';
import { routes, type Job } from '../../../controller/objects/kinds.ts';
import { leases } from '../../../lib/kubernetes/index.ts';
import {
  acceptRoute,
  createCloneEnd,
  completeJob,
  awaitDeployment,
  formatImage,
  createBuildEnd,
  createReviewEnd,
  rollOut,
  createRunningContainer,
  awaitStartedJob,
  startJob,
  writePod,
} from '../../support/operator/stand-in.ts';
import { startWorld, waitFor, type Operator, type World } from '../../support/operator/world.ts';

let world: World;
beforeAll(async () => {
  world = await startWorld();
});
afterAll(() => world.stop());

const lease = { name: 'moorage-operator', namespace: 'moorage-system' };

/**
 * Ends an operator by SIGKILL, and removes its lease: how another takes over once the lease has run out is the last test
 * of this file.
 */
async function kill(operator: Operator): Promise<void> {
  await operator.kill();
  await world.removeLease();
}

/** What happens in the world at each stage, whether an operator is there or not. */
function stagesOf(job: () => Job, commit: () => string): readonly (readonly [string, () => Promise<unknown>])[] {
  const image = (): string => formatImage(job(), 'a');
  const pod = (...statuses: Parameters<typeof writePod>[2]): Promise<void> => writePod(world.client, job(), statuses);
  return [
    [
      'Cloning',
      async () => {
        await startJob(world.client, job());
        await pod(createRunningContainer('clone'));
      },
    ],
    ['Reviewing', () => pod(createCloneEnd(commit()), createRunningContainer('review'))],
    ['Building', () => pod(createCloneEnd(commit()), createReviewEnd(), createRunningContainer('build'))],
    [
      'Deploying',
      async () => {
        await writePod(
          world.client,
          job(),
          [createCloneEnd(commit()), createReviewEnd(), createBuildEnd(image())],
          'Succeeded',
        );
        await completeJob(world.client, job());
      },
    ],
    [
      'Routing',
      async () => {
        await rollOut(world.client, await awaitDeployment(world, 'survivor', image()));
      },
    ],
    ['Live', () => acceptRoute(world, 'survivor')],
  ];
}

test('an operator killed at each stage continues with the same Job, without a second one', async () => {
  let operator = world.startOperator();
  await world.submit('survivor');
  let job = await waitFor('the Job', async () => (await world.jobs('survivor'))[0]);
  await kill(operator);
  operator = world.startOperator();
  job = await awaitStartedJob(world, 'survivor');
  const { uid } = job.metadata;
  const commit = job.metadata.annotations?.[annotations.commit] ?? '';
  for (const [phase, happen] of stagesOf(
    () => job,
    () => commit,
  )) {
    const isSeen = async (): Promise<boolean> => (await world.app('survivor'))?.status?.phase === phase;
    // What the next operator makes (the Deployment, the route) must be there before the world can go on without one.
    if (phase === 'Routing' || phase === 'Live')
      await waitFor(`${phase} can come`, () =>
        world.client.get(routes, { name: 'survivor', namespace: 'moorage-apps' }),
      );
    await kill(operator);
    await happen();
    operator = world.startOperator();
    await waitFor(`phase ${phase} after a restart`, isSeen);
    assert.deepEqual(
      (await world.jobs('survivor')).map(({ metadata }) => metadata.uid),
      [uid],
      phase,
    );
  }
  const status = (await world.app('survivor'))?.status;
  assert.deepEqual(
    status?.history?.map(({ number, result, image: made }) => [number, result, made]),
    [[1, 'Succeeded', formatImage(job, 'a')]],
  );
  assert.equal(status.served?.image, formatImage(job, 'a'));
  assert.equal(await operator.end(), 0);
});

test('the operator continues after the API server is killed and restarted', async () => {
  let operator = world.startOperator();
  await world.submit('patient');
  await awaitStartedJob(world, 'patient');
  const since = performance.now();
  await world.api.restart();
  // An operator that cannot renew its lease for seven seconds ends, and the kubelet starts it again. Only on a loaded
  // machine does an API server take that long.
  const isLong = performance.now() - since > 4_000;
  await world.submit('late');
  await waitFor('a started Job of late', async () => {
    if (isLong && operator.process.exitCode !== null) operator = world.startOperator();
    return (await world.jobs('late')).some(({ spec }) => spec?.suspend !== true);
  });
  assert.equal(operator.process.exitCode, null);
  assert.equal(await operator.end(), 0);
});

async function leader(): Promise<string> {
  const { holderIdentity } = z
    .looseObject({ holderIdentity: z.string().default('') })
    .parse((await world.client.get(leases, lease))?.spec ?? {});
  return holderIdentity;
}

test('one of two replicas leads, and the other takes over when it dies', async (t) => {
  const replicas: Record<string, Operator> = {
    one: world.startOperator({ POD_NAME: 'one' }),
    two: world.startOperator({ POD_NAME: 'two' }),
  };
  const holder = await waitFor('a leader', async () => /^(one|two)_/.exec(await leader())?.[1]);
  const other = holder === 'one' ? 'two' : 'one';
  await world.submit('before-takeover');
  await awaitStartedJob(world, 'before-takeover');
  assert.doesNotMatch(replicas[other]?.log() ?? '', /build started/, 'the one that does not lead must not act');
  await replicas[holder]?.kill();
  const killedAt = performance.now();
  await world.submit('after-takeover');
  await awaitStartedJob(world, 'after-takeover');
  await t.annotate(`taken over and at work after ${((performance.now() - killedAt) / 1000).toFixed(1)} s`);
  assert.equal((await leader()).split('_')[0], other);
  assert.equal((await world.jobs('after-takeover')).length, 1);
  assert.equal(await replicas[other]?.end(), 0);
  assert.equal(await leader(), '', 'a lease is given back by one that ends well');
});
