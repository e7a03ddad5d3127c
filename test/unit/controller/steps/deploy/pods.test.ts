// The components of a pod: each is judged by its own limits, and a message names the one that failed.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { readAppLimits } from '../../../../../controller/steps/deploy/release-choice.ts';
import {
  countRestarts,
  describeComponent,
  diagnose,
  findCrashTime,
  readLastRunMs,
  readServingSince,
} from '../../../../../controller/steps/deploy/pods.ts';
import type { ContainerStatus } from '../../../../../controller/objects/kinds.ts';
import type { Rejection } from '../../../../../controller/reconcile/outcome.ts';
import {
  createApplied,
  createSnapshot,
  decideStatus,
  first,
  formatTime,
  now,
} from '../../../../support/operator/scenario.ts';
import { components, compositePod, createComposite, createCrashing } from '../../../../support/operator/components.ts';

const list = [components[0], { ...components[1], resources: { memory: '256Mi' } }, components[2]];
const of = createComposite(first, { list });
const deployment = createApplied(decideStatus(createSnapshot(of)).decision, 'Deployment');
const { built } = of.status ?? {};
assert.ok(built !== undefined);
const limits = readAppLimits({ app: of }, { ...built, port: 3000 });
const find = (states: Record<string, Partial<ContainerStatus>>): Rejection | undefined =>
  diagnose(compositePod(deployment, states), limits, now);

test('names the component that crashed, and quotes its log', () => {
  const rejection = find({ worker: createCrashing(1, "KeyError: 'QUEUE_URL'") });
  assert.equal(rejection?.rule, 'run/crashed');
  assert.match(rejection.message, /^Component worker crashed with exit code 1 \(4 restarts\)\. Its log .*QUEUE_URL/);
  assert.match(rejection.log ?? '', /QUEUE_URL/);
});

test('blames the component that others wait for before those', () => {
  const rejection = find({ web: createCrashing(1, 'page'), api: createCrashing(3, 'api is broken') });
  assert.match(rejection?.message ?? '', /^Component api crashed with exit code 3/);
  assert.match(rejection?.log ?? '', /api is broken/);
});

test('states the limit of the component that exceeded it, and where to raise it', () => {
  const rejection = find({ api: createCrashing(137, 'killed', { reason: 'OOMKilled' }) });
  assert.equal(rejection?.rule, 'run/out-of-memory');
  assert.match(rejection.message, /^Component api exceeded its memory limit of 256Mi/);
  assert.match(
    rejection.fix,
    /^Increase resources\.memory of component api in moorage\.yaml \(maximum 4Gi for all components/,
  );
});

test('a component that never listens is named with its port; one without a port cannot be that', () => {
  const silent = { ready: false, started: false, state: { running: { startedAt: formatTime(-300) } } };
  const rejection = find({ api: silent });
  assert.equal(rejection?.rule, 'run/never-listened');
  assert.match(rejection.message, /^Component api is running, but did not respond with .* at \/ready on port 8000/);
  assert.match(rejection.fix, /set port of component api in moorage\.yaml/);
  const ended = createCrashing(0, '', { startedAt: formatTime(-200), finishedAt: formatTime(-20) });
  const worker = find({ worker: ended });
  assert.equal(worker?.rule, 'run/crashed');
  assert.match(
    worker.message,
    /^Component worker exited with code 0: its start command ended, and a worker has to keep/,
  );
  assert.match(worker.fix, /kind: task/);
});

test('points a fix at the component instead of run', () => {
  const rejection = find({ web: createCrashing(127, 'sh: gunicorn: not found') });
  assert.match(rejection?.fix ?? '', /command of component web in moorage\.yaml/);
  assert.doesNotMatch(rejection?.fix ?? '', /run\.command/);
});

test('names the container that filled its disk', () => {
  const pod = compositePod(deployment, { worker: { ready: false } });
  const evict = (message: string): Rejection | undefined =>
    diagnose({ ...pod, status: { ...pod.status, phase: 'Failed', reason: 'Evicted', message } }, limits, now);
  assert.match(
    evict('Container worker exceeded its local ephemeral storage limit "1Gi". ')?.message ?? '',
    /^Component worker exceeded its 1Gi of temporary disk/,
  );
  assert.match(
    evict('Pod ephemeral local storage usage exceeds the total limit of containers 3Gi. ')?.message ?? '',
    /^The components of the app exceeded their 3Gi of temporary disk together/,
  );
});

test('counts the restarts of the worst component, and takes times from the last one that exited', () => {
  const pod = compositePod(deployment, {
    worker: createCrashing(1, ''),
    web: { ...createCrashing(1, '', { startedAt: formatTime(-100), finishedAt: formatTime(-10) }), restartCount: 1 },
  });
  assert.equal(countRestarts(pod), 4);
  assert.equal(findCrashTime(pod), Date.parse(formatTime(-10)));
  assert.equal(readLastRunMs(pod), 90_000);
  assert.equal(readServingSince(pod, now), Date.parse(formatTime(-40)), 'of the containers that run');
});

test('describes each component of the pod', () => {
  const pod = compositePod(deployment, {
    api: { ready: false, started: false, state: { running: { startedAt: formatTime(-5) } } },
    web: { ready: false, started: false, state: { waiting: { reason: 'PodInitializing' } } },
  });
  assert.deepEqual(
    limits.map((each) => describeComponent(pod, each, now)),
    [
      { ready: false, restarts: 0, message: 'It is starting.' },
      { ready: true, restarts: 0 },
      { ready: false, restarts: 0, message: 'It waits for the components that it depends on.' },
    ],
  );
  assert.deepEqual(
    limits.map((each) => describeComponent(undefined, each, now).message),
    ['It does not run.', 'It does not run.', 'It does not run.'],
  );
});
