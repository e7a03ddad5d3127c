// An app that was never ready and fails again and again keeps no pod; one that was ready once is left to its restarts.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { z } from 'zod';
import type { ContainerStatus, Deployment } from '../../../../../controller/objects/kinds.ts';
import type { Snapshot } from '../../../../../controller/reconcile/snapshot.ts';
import type { HostedApp } from '../../../../../crds/hosted-app.ts';
import {
  app,
  createApplied,
  formatTime,
  createBuiltStatus,
  createDeployed,
  createEvictedPod,
  first,
  createLiveStatus,
  decideStatus,
  second,
  createSnapshot,
} from '../../../../support/operator/scenario.ts';

const asked = z.object({
  replicas: z.int(),
  template: z.object({ metadata: z.object({ annotations: z.object({ 'moorage.dev/commit': z.string() }) }) }),
});

/** What the operator asks for, and what it says. */
function asks(snapshot: Snapshot): { deployment: Deployment; runs: string; message: string; log: string | undefined } {
  const { decision, status } = decideStatus(snapshot);
  const deployment = createApplied(decision, 'Deployment', { observedGeneration: 2 });
  const { replicas, template } = asked.parse(deployment.spec);
  const { rule = '', message = '', log } = status.rejection ?? {};
  return {
    deployment,
    runs: `${replicas} of ${template.metadata.annotations['moorage.dev/commit'].charAt(0)}, ${rule}`,
    message,
    log,
  };
}

const crashed = (restartCount: number): Partial<ContainerStatus> => ({
  restartCount,
  state: { waiting: { reason: 'CrashLoopBackOff' } },
  lastState: { terminated: { exitCode: 1, message: 'no module named app' } },
});
const unfinished = { replicas: 1, updatedReplicas: 1 };

const fresh = app({}, createBuiltStatus(first));

test('removes the pod after three restarts, and keeps the reason afterwards', () => {
  assert.equal(asks(createSnapshot(fresh, createDeployed(fresh, unfinished, crashed(2)))).runs, '1 of a, run/crashed');
  const stopped = asks(createSnapshot(fresh, createDeployed(fresh, unfinished, crashed(3))));
  assert.equal(stopped.runs, '0 of a, run/crashed');
  assert.match(stopped.message, /crashed with exit code 1 .* not started again until there is a new commit/);
  const later = asks(createSnapshot(fresh, { deployment: stopped.deployment, pods: [] }));
  assert.deepEqual([later.runs, later.message, later.log], [stopped.runs, stopped.message, 'no module named app']);
});

test('ignores a container that the kubelet lost, and uses how it ended before', () => {
  const lost = { terminated: { exitCode: 137, reason: 'ContainerStatusUnknown', message: 'could not be located' } };
  const said = (status: Partial<ContainerStatus>): unknown => {
    const { runs, message } = asks(createSnapshot(fresh, createDeployed(fresh, unfinished, status)));
    return [runs, message.slice(0, 37)];
  };
  assert.deepEqual(said({ restartCount: 2, state: lost, lastState: {} }), ['1 of a, ', '']);
  assert.deepEqual(
    said({ ...crashed(2), state: lost }),
    ['1 of a, run/crashed', 'The app crashed with exit code 1 (2 re'].map((text) => text.slice(0, 37)),
  );
});

test('quotes the log line with the reason in the message', () => {
  const because = (message: string, restartCount = 3): string =>
    asks(
      createSnapshot(
        fresh,
        createDeployed(fresh, unfinished, {
          ...crashed(restartCount),
          lastState: { terminated: { exitCode: 1, message } },
        }),
      ),
    ).message;
  assert.match(
    because("Traceback\nModuleNotFoundError: No module named 'PIL'\n"),
    /^The app crashed with exit code 1 \(3 restarts\)\. Its log says "ModuleNotFoundError: No module named 'PIL'"\. It is not started again/,
  );
  assert.match(because('bye\n', 1), /^The app crashed with exit code 1 \(1 restart\)\. Its log ends with "bye"\.$/);
  assert.match(because('\n', 1), /^The app crashed with exit code 1 \(1 restart\)\.$/);
});

test('waits for late log lines, and keeps those that it saw before', () => {
  const silent = (restartCount: number): Partial<ContainerStatus> => ({
    ...crashed(restartCount),
    lastState: { terminated: { exitCode: 1, message: '' } },
  });
  assert.equal(asks(createSnapshot(fresh, createDeployed(fresh, unfinished, silent(4)))).runs, '1 of a, run/crashed');
  assert.equal(asks(createSnapshot(fresh, createDeployed(fresh, unfinished, silent(5)))).runs, '0 of a, run/crashed');
  const { status } = decideStatus(createSnapshot(fresh, createDeployed(fresh, unfinished, crashed(2))));
  const later = asks(createSnapshot(app({}, status), createDeployed(fresh, unfinished, silent(3))));
  assert.deepEqual([later.runs, later.log], ['0 of a, run/crashed', 'no module named app']);
});

test('starts a stopped release again for a new commit, other settings or another submission', () => {
  const { deployment } = asks(createSnapshot(fresh, createDeployed(fresh, unfinished, crashed(3))));
  const runs = (of: HostedApp): string => asks(createSnapshot(of, { deployment, pods: [] })).runs;
  assert.equal(runs(app({}, createBuiltStatus(second))), '1 of b, ');
  assert.equal(runs(app({ run: { env: [{ name: 'A', value: 'b' }] } }, createBuiltStatus(first))), '1 of a, ');
  const again = createBuiltStatus(first);
  assert.equal(runs(app({}, { ...again, built: { ...(again.built ?? never()), attempt: '2' } })), '1 of a, ');
});

test("keeps the serving release running, without the failing one's pod", () => {
  const next = app({}, { ...createLiveStatus(first), ...createBuiltStatus(second) });
  const rolling = asks(createSnapshot(next, createDeployed(app({}, createLiveStatus(first)))));
  assert.equal(rolling.runs, '1 of b, ');
  const { pods: serving = [] } = createDeployed(app({}, createLiveStatus(first)));
  const { pods: failing = [] } = createDeployed(next, unfinished, crashed(3));
  const back = asks(createSnapshot(next, { deployment: rolling.deployment, pods: [...serving, ...failing] }));
  assert.equal(back.runs, '1 of a, run/crashed');
  assert.match(back.message, /Rolled back to commit aaaaaaa\.$/);
  const settled = asks(createSnapshot(next, { deployment: back.deployment, pods: serving }));
  assert.deepEqual([settled.runs, settled.message], [back.runs, back.message]);
});

test('keeps restarting a release that was ready once', () => {
  const of = app({}, createLiveStatus(first));
  const { status } = decideStatus(createSnapshot(of, createDeployed(of)));
  const failing = createDeployed(of, unfinished, crashed(30));
  assert.equal(asks(createSnapshot(app({}, status), failing)).runs, '1 of a, run/crashed');
  assert.equal(asks(createSnapshot(of, failing)).runs, '0 of a, run/crashed', 'and only its status knows it');
});

test('stops a release that never listens after its time limit, but not one that waits for a Secret', () => {
  const silent = { restartCount: 0, started: false, state: { running: { startedAt: formatTime(-600) } } };
  assert.equal(
    asks(createSnapshot(fresh, createDeployed(fresh, unfinished, silent))).runs,
    '0 of a, run/never-listened',
  );
  const waiting = { state: { waiting: { reason: 'CreateContainerConfigError', message: 'secret "x" not found' } } };
  assert.equal(
    asks(createSnapshot(fresh, createDeployed(fresh, unfinished, waiting))).runs,
    '1 of a, run/misconfigured',
  );
});

function never(): never {
  throw new Error('nothing is built');
}

// An app that fills its disk twice is not started a third time: the release before it serves, or nothing until
// something changes.

const deploymentSpec = z.object({
  replicas: z.int(),
  template: z.object({ metadata: z.object({ annotations: z.object({ 'moorage.dev/commit': z.string() }) }) }),
});

/** The Deployment that an observation asks for, and how many replicas of which commit it has. */
function observe(snapshot: Snapshot): {
  deployment: Deployment;
  runs: string;
  rule: string | undefined;
  message: string;
} {
  const { decision, status } = decideStatus(snapshot);
  const deployment = createApplied(decision, 'Deployment', { observedGeneration: 2 });
  const { replicas, template } = deploymentSpec.parse(deployment.spec);
  const { rule, message = '' } = status.rejection ?? {};
  return {
    deployment,
    runs: `${replicas} of ${template.metadata.annotations['moorage.dev/commit'].charAt(0)}`,
    rule,
    message,
  };
}

const only = createLiveStatus(first);

test('replaces a pod after one eviction, stops after two, and stays stopped when the evicted pods are gone', () => {
  const of = app({}, only);
  assert.equal(observe(createSnapshot(of, createEvictedPod(of, 1, 60))).runs, '1 of a');
  const stopped = observe(createSnapshot(of, createEvictedPod(of, 2, 86_400)));
  assert.deepEqual([stopped.runs, stopped.rule], ['0 of a', 'run/out-of-disk']);
  const later = observe(createSnapshot(of, { ...createDeployed(of), deployment: stopped.deployment, pods: [] }));
  assert.deepEqual([later.runs, later.rule, later.message], ['0 of a', 'run/out-of-disk', stopped.message]);
});

test('replaces a pod that rarely fills its disk each time', () => {
  const of = app({}, only);
  const [recent, old] = [createEvictedPod(of, 1, 60), createEvictedPod(of, 1, 2 * 86_400)];
  const rare = { ...recent, pods: [...(recent.pods ?? []), ...(old.pods ?? [])] };
  assert.equal(rare.pods.filter((pod) => pod.status?.reason === 'Evicted').length, 2);
  assert.equal(observe(createSnapshot(of, rare)).runs, '1 of a');
});

test('starts it again with more disk or a new commit', () => {
  const { deployment } = observe(createSnapshot(app({}, only), createEvictedPod(app({}, only), 2, 60)));
  const { pods } = createEvictedPod(app({}, only), 2, 60);
  const start = (of: HostedApp): string =>
    observe(createSnapshot(of, { deployment, ...(pods === undefined ? {} : { pods: pods.slice(1) }) })).runs;
  assert.equal(start(app({ run: { resources: { disk: '4Gi' } } }, only)), '1 of a');
  assert.equal(start(app({}, { ...only, ...createBuiltStatus(second) })), '1 of b');
});

test('rolls back to the previous release, and does not start that a third time either if it also fills its disk', () => {
  const next = app({}, { ...only, ...createBuiltStatus(second) });
  const rolling = observe(createSnapshot(next, createDeployed(app({}, only))));
  assert.equal(rolling.runs, '1 of b');
  const serving = app({}, createLiveStatus(second));
  const over = (pods: Snapshot['pods']): Snapshot => createSnapshot(serving, { deployment: rolling.deployment, pods });
  const filled = createEvictedPod(serving, 2, 60).pods ?? [];
  const back = observe(over(filled));
  assert.deepEqual([back.runs, back.rule], ['1 of a', 'run/out-of-disk']);
  assert.match(back.message, /Commit bbbbbbb exceeded its 1Gi .* Rolled back to commit aaaaaaa\.$/);
  const again = observe(
    createSnapshot(serving, { deployment: back.deployment, pods: createEvictedPod(app({}, only), 2, 60).pods ?? [] }),
  );
  assert.deepEqual([again.runs, again.rule], ['0 of b', 'run/out-of-disk']);
});

test("runs the release that serves again with its own commit's settings", () => {
  const settings = JSON.stringify({ run: { command: ['serve', '--old'] } });
  const old = createLiveStatus(first);
  const before = app({}, { ...old, ...(old.built === undefined ? {} : { built: { ...old.built, settings } }) });
  const rolling = observe(createSnapshot(app({}, { ...old, ...createBuiltStatus(second) }), createDeployed(before)));
  const serving = app({}, createLiveStatus(second));
  const back = observe(
    createSnapshot(serving, { deployment: rolling.deployment, pods: createEvictedPod(serving, 2, 60).pods ?? [] }),
  );
  assert.equal(back.runs, '1 of a');
  assert.match(JSON.stringify(back.deployment.spec), /"--old"/);
});
