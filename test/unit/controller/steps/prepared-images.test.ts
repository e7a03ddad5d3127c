// Images that an installation makes on first use: what an app waits for, what its status says, and when it continues.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import type { BackingService } from '../../../../crds/backing-services.ts';
import { annotations } from '../../../../crds/names.ts';
import { judgePreparation, type PreparedImage } from '../../../../controller/steps/prepared-images.ts';
import type { Snapshot } from '../../../../controller/reconcile/snapshot.ts';
import {
  app,
  config,
  createBuiltStatus,
  createCloneEnd,
  createEndedContainer,
  createFailedStatus,
  createPolledStatus,
  createSnapshot,
  decideStatus,
  first,
  formatTime,
  job,
  listActions,
  pipelinePod,
  reviewed,
} from '../../../support/operator/scenario.ts';

const image = 'golang:1.26-bookworm';
const digest = `sha256:${'a'.repeat(64)}`;
const onDemand = { ...config, registry: { ...config.registry, imagesOnDemand: [image, 'mysql:8.4'] } };

function report(state: PreparedImage['state'], rest: Partial<PreparedImage> = {}): PreparedImage {
  return { image, state, at: formatTime(0), ...rest };
}

/** An app whose build ended because of these images, with what the image maker has reported. */
function createUnprepared(images: readonly string[], reports: readonly PreparedImage[] = []): Snapshot {
  const failed = job(first, { ...createFailedStatus('PodFailurePolicy'), number: 1 });
  const build = createEndedContainer('build', 44, { unprepared: images });
  const pod = pipelinePod(failed, [createCloneEnd(first), reviewed, build], { phase: 'Failed' });
  const marks = { [annotations.preparedImages]: JSON.stringify(reports) };
  return createSnapshot(app({}, createPolledStatus(first), marks), {
    jobs: [failed],
    pipelinePods: [pod],
    config: onDemand,
  });
}

const builtOf = (snapshot: Snapshot): { reason?: string; message?: string } =>
  decideStatus(snapshot).status.conditions?.find(({ type }) => type === 'Built') ?? {};

test('a build that needs an image waits for it, and says what takes how long', () => {
  const waiting = decideStatus(createUnprepared([image]));
  assert.deepEqual(
    waiting.status.neededImages?.map((each) => each.image),
    [image],
  );
  assert.equal(waiting.status.phase, 'Building');
  assert.equal(waiting.status.history, undefined);
  assert.deepEqual(listActions(waiting.decision), []);
  assert.deepEqual(builtOf(createUnprepared([image], [report('Preparing', { message: 'about 2 minutes' })])), {
    ...builtOf(createUnprepared([image])),
    reason: 'PreparingImage',
    message: `Waiting for the image ${image}, which this installation makes on first use: about 2 minutes.`,
  });
});

test('the pipeline runs again once the image is ready', () => {
  const ready = createUnprepared([image], [report('Ready', { digest })]);
  assert.deepEqual(listActions(decideStatus(ready).decision), [`delete ${ready.jobs[0]?.metadata.name}`]);
  const again = createSnapshot({ ...ready.app, status: decideStatus(ready).status }, { config: onDemand });
  const { status, decision } = decideStatus(again);
  assert.deepEqual(listActions(decision), ['create Job']);
  assert.equal(status.neededImages, undefined);
  assert.deepEqual([status.pipeline?.number, status.pipeline?.reason], [1, `the image ${image} is ready`]);
});

test('a report from before the build says nothing about it', () => {
  const old = createUnprepared([image], [report('Ready', { digest, at: formatTime(-100_000) })]);
  assert.equal(builtOf(old).reason, 'PreparingImage');
  assert.deepEqual(listActions(decideStatus(old).decision), []);
});

test('an image that cannot be made rejects the build, and names why', () => {
  const { status } = decideStatus(createUnprepared([image], [report('Failed', { message: 'no space is left' })]));
  assert.equal(status.phase, 'Rejected');
  assert.equal(status.rejection?.rule, 'platform/image');
  assert.match(status.rejection.message, /could not make the image golang:1\.26-bookworm: no space is left\.$/);
});

test('only images that the installation makes are asked for, whatever a pod reports', () => {
  const { status } = decideStatus(createUnprepared(['evil.example/miner:1', image]));
  assert.deepEqual(
    status.neededImages?.map((each) => each.image),
    [image],
  );
});

test('an annotation that cannot be read says nothing', () => {
  const needed = [{ image, since: formatTime(-10) }];
  for (const text of ['', '{', '[{"image":1}]', '"x"', `[{"image":"${image}","state":"Ready","at":"yesterday"}]`])
    assert.equal(
      judgePreparation({ metadata: { annotations: { [annotations.preparedImages]: text } } }, needed).kind,
      'waiting',
      text,
    );
});

test('a backing service starts by digest once its image is ready', () => {
  const services = { ...onDemand.run.services, images: { mysql: 'mysql:8.4' } };
  const offering = { ...onDemand, run: { ...onDemand.run, services } };
  const service: BackingService = { name: 'db', type: 'mysql', disk: '1Gi', env: [] };
  const create = (reports: readonly PreparedImage[]): Snapshot => {
    const marks = { [annotations.preparedImages]: JSON.stringify(reports) };
    return createSnapshot(app({ services: [service] }, createBuiltStatus(first), marks), { config: offering });
  };
  const waiting = decideStatus(create([]));
  assert.deepEqual(
    waiting.status.neededImages?.map((each) => each.image),
    ['mysql:8.4'],
  );
  assert.equal(waiting.status.conditions?.find(({ type }) => type === 'Deployed')?.reason, 'PreparingImage');
  assert.doesNotMatch(JSON.stringify(waiting.decision.actions), /mysql:8\.4/);
  const ready = decideStatus(create([report('Ready', { image: 'mysql:8.4', digest })]));
  assert.match(JSON.stringify(ready.decision.actions), new RegExp(`"mysql:8\\.4@${digest}"`));
  assert.equal(ready.status.neededImages, undefined);
});
