// What the collector reads of pods: whose they are, which component a container runs, and which ends are crashes.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import {
  findCrashes,
  isPodOfApp,
  listStreams,
  type Pod,
  readContainerState,
  shortenPod,
} from '../../../../../api/apps/logs/pods.ts';
import { sampleApp } from '../../../../support/api/sample.ts';

const at = '2026-01-01T00:00:10Z';
const ended = { exitCode: 1, reason: 'Error', startedAt: at, finishedAt: at };

type Status = NonNullable<NonNullable<Pod['status']>['containerStatuses']>[number];

function createPod(status: Partial<Status>, metadata: Partial<Pod['metadata']> = {}): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      ...{ name: 'mine-1', uid: 'pod', resourceVersion: '1', creationTimestamp: at },
      labels: { 'moorage.dev/app': 'mine' },
      ...metadata,
    },
    spec: { containers: [{ name: 'app' }], restartPolicy: 'Always' },
    status: {
      phase: 'Running',
      containerStatuses: [{ name: 'app', image: 'x', imageID: 'x', ready: true, restartCount: 0, ...status }],
    },
  };
}

test('a pod that is older than the app belongs to an earlier app of its name', () => {
  const app = sampleApp('mine');
  assert.equal(isPodOfApp(createPod({}), app), true);
  assert.equal(isPodOfApp(createPod({}, { creationTimestamp: '2025-12-31T23:59:59Z' }), app), false);
  assert.equal(isPodOfApp(createPod({}), sampleApp('other')), false);
});

test('finds each end once, while the container waits and after it was started again', () => {
  const run = { ...ended, containerID: 'containerd://one' };
  const states: Partial<Status>[] = [
    { state: { terminated: run }, restartCount: 2 },
    { state: { waiting: { reason: 'CrashLoopBackOff' } }, lastState: { terminated: run }, restartCount: 2 },
    { state: { running: { startedAt: at } }, lastState: { terminated: run }, restartCount: 3 },
  ];
  assert.deepEqual(
    states
      .flatMap((status) => findCrashes(createPod(status)))
      .map(({ instance, restarts, isPrevious }) => [instance, restarts, isPrevious]),
    [
      ['containerd://one', 2, false],
      ['containerd://one', 2, false],
      ['containerd://one', 2, true],
    ],
  );
});

test('a task that succeeded and a pod that was to stop did not crash; an app that exited with 0 did', () => {
  const success = { ...ended, exitCode: 0, reason: 'Completed' };
  const task = { annotations: { 'moorage.dev/task': 'migrate' } };
  assert.deepEqual(findCrashes(createPod({ state: { terminated: success } }, task)), []);
  assert.equal(findCrashes(createPod({ state: { terminated: ended } }, task))[0]?.component, 'migrate');
  assert.equal(findCrashes(createPod({ state: { terminated: success } }))[0]?.reason, 'Completed');
  // It was deleted 35 seconds before this time.
  const stopped = { deletionTimestamp: '2026-01-01T00:00:40Z', deletionGracePeriodSeconds: 35 };
  assert.deepEqual(findCrashes(createPod({ state: { terminated: ended } }, stopped)), []);
  const earlier = { ...stopped, deletionTimestamp: '2026-01-01T00:00:50Z' };
  assert.equal(findCrashes(createPod({ state: { terminated: ended } }, earlier)).length, 1);
  // The last update of a pod whose app was stopped by force after 35 seconds.
  const last = createPod(
    { state: { terminated: ended } },
    { deletionTimestamp: '2026-01-01T00:00:41Z', deletionGracePeriodSeconds: 0 },
  );
  const forced = { ...last, spec: { ...last.spec, containers: [{ name: 'app' }], terminationGracePeriodSeconds: 35 } };
  assert.deepEqual(findCrashes(shortenPod(forced)), []);
});

test('keeps of a pod what is read, and none of its variables', () => {
  const pod = createPod(
    { state: { terminated: ended }, containerID: 'containerd://one' },
    { annotations: { other: 'x' } },
  );
  const whole: Pod = {
    ...pod,
    spec: {
      containers: [{ name: 'app', env: [{ name: 'A', value: 'secret' }] }],
      initContainers: [{ name: 'db', image: 'x' }],
    },
  };
  const short = shortenPod(whole);
  assert.doesNotMatch(JSON.stringify(short), /secret|other|image":"x/);
  assert.deepEqual(
    listStreams(short).map(({ container }) => container),
    ['db', 'app'],
  );
  assert.deepEqual(findCrashes(short), findCrashes(pod));
  assert.deepEqual(readContainerState(short, 'app'), { run: 'containerd://one', isRunning: false, isOver: false });
  assert.deepEqual(readContainerState(undefined, 'app'), { run: undefined, isRunning: false, isOver: true });
});
