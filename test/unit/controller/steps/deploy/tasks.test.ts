// Tasks run once per release before its pods start, while the release before serves; cron components are scheduled.
import assert from 'node:assert/strict';
import { expect, test } from 'vitest';
import type { HostedApp } from '../../../../../crds/hosted-app.ts';
import type { Job, Pod } from '../../../../../controller/objects/kinds.ts';
import type { Snapshot } from '../../../../../controller/reconcile/snapshot.ts';
import type { Manifest } from '../../../../../lib/kubernetes/index.ts';
import { annotations } from '../../../../../crds/names.ts';
import { toPublicStatus } from '../../../../../crds/public-status.ts';
import {
  createApplied,
  createFailedStatus,
  createSnapshot,
  complete,
  decideStatus,
  first,
  formatTime,
  second,
  toObject,
} from '../../../../support/operator/scenario.ts';
import { components, compositePod, createComposite, listImages } from '../../../../support/operator/components.ts';

const migrate = {
  name: 'migrate',
  kind: 'task',
  image: 'api',
  command: ['alembic', 'upgrade', 'head'],
  startupTime: '3m',
};
const seed = { name: 'seed', kind: 'task', image: 'api', command: ['python', 'seed.py'] };
const nightly = { name: 'nightly', kind: 'cron', image: 'api', command: ['python', 'clean.py'], schedule: '0 3 * * *' };
const images = listImages(
  { web: 'a', api: 'c', worker: 'c', migrate: 'c', seed: 'c', nightly: 'c' },
  { web: 3000, api: 8000 },
);
const create = (commit: string, list: readonly object[] = [...components, migrate]): HostedApp =>
  createComposite(commit, { list, images });

interface Plan {
  readonly status: ReturnType<typeof decideStatus>['status'];
  readonly reason: string;
  readonly created: Manifest | undefined;
  readonly applied: string[];
  readonly deleted: string[];
}

function plan(of: HostedApp, rest: Partial<Snapshot> = {}): Plan {
  const { decision, status } = decideStatus(createSnapshot(of, rest));
  const actions = decision.actions.map(({ action }) => action);
  const created = actions.flatMap((action) =>
    action.kind === 'create' && action.manifest.kind === 'Job' ? [action.manifest] : [],
  );
  return {
    status,
    reason: status.conditions?.find(({ type }) => type === 'Deployed')?.reason ?? '',
    created: created[0],
    applied: actions.flatMap((action) => (action.kind === 'apply' ? [action.manifest.kind] : [])),
    deleted: actions.flatMap((action) => (action.kind === 'delete' ? [action.object.metadata.name] : [])),
  };
}

function asJob(manifest: Manifest | undefined, status: Job['status'] = {}): Job {
  assert.ok(manifest !== undefined, 'no Job');
  const { metadata, apiVersion, kind } = toObject(manifest);
  return { apiVersion, kind, metadata: { ...metadata, uid: `uid-${metadata.name}` }, status };
}

const withJobs = (...jobs: readonly Job[]): Partial<Snapshot> => ({ tasks: { jobs, cronJobs: [], pods: [] } });

test('runs a task before the first pods start, with the image, variables and rights of the app', () => {
  const { created, applied, reason, status } = plan(create(first));
  assert.deepEqual([reason, applied.includes('Deployment')], ['RunningTasks', false]);
  assert.ok(applied.includes('NetworkPolicy'), 'its pod is confined from the start');
  expect(created).toMatchObject({
    metadata: { labels: { 'app.kubernetes.io/component': 'task' }, annotations: { [annotations.task]: 'migrate' } },
    spec: {
      backoffLimit: 2,
      template: {
        spec: {
          activeDeadlineSeconds: 300,
          hostUsers: false,
          automountServiceAccountToken: false,
          restartPolicy: 'Never',
          containers: [{ name: 'app', image: images[1]?.image, command: migrate.command }],
        },
      },
    },
  });
  assert.deepEqual(status.components?.at(-1), { name: 'migrate', kind: 'task', ready: false });
});

test('selects the pods of tasks in the policy of the app', () => {
  const { decision } = decideStatus(createSnapshot(create(first)));
  const policy = decision.actions
    .map(({ action }) => action)
    .find((action) => action.kind === 'apply' && action.manifest.kind === 'NetworkPolicy');
  assert.ok(policy?.kind === 'apply');
  expect(policy.manifest['spec']).toMatchObject({
    podSelector: { matchExpressions: [{ operator: 'In', values: ['app', 'task'] }] },
  });
});

test('an operator that was killed finds the Job, waits for it, and starts the pods once it has ended well', () => {
  const { created } = plan(create(first));
  const again = plan(create(first), withJobs(asJob(created)));
  assert.deepEqual(
    [again.reason, again.created, again.applied.includes('Deployment')],
    ['RunningTasks', undefined, false],
  );
  const ended = plan(create(first), withJobs(asJob(created, complete)));
  assert.deepEqual([ended.reason, ended.applied.includes('Deployment')], ['RollingOut', true]);
  assert.deepEqual(ended.status.components?.at(-1), { name: 'migrate', kind: 'task', ready: true });
  assert.deepEqual(ended.deleted, [], 'its Job is kept for its log');
});

test('runs several tasks one after another', () => {
  const of = create(first, [...components, migrate, seed]);
  const { created } = plan(of);
  const next = plan(of, withJobs(asJob(created, complete)));
  assert.equal(next.created?.metadata.annotations?.[annotations.task], 'seed');
  assert.equal(next.reason, 'RunningTasks');
});

const before = create(first);
const done = plan(before).created;
const deployment = createApplied(
  decideStatus(createSnapshot(before, withJobs(asJob(done, complete)))).decision,
  'Deployment',
  { observedGeneration: 2, replicas: 1, updatedReplicas: 1, availableReplicas: 1 },
);
const serving = { deployment, pods: [compositePod(deployment)] };

test('does not run the task again for a release whose pods have started', () => {
  const { created, reason } = plan(before, serving);
  assert.deepEqual([created, reason], [undefined, 'Available']);
});

function createTaskPod({ metadata: { name, uid } }: Job, status: Pod['status'] & object): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      ...{
        name: 'task-pod',
        namespace: 'moorage-apps',
        uid: 'p',
        resourceVersion: '1',
        creationTimestamp: formatTime(-20),
      },
      ownerReferences: [{ apiVersion: 'batch/v1', kind: 'Job', name, uid }],
    },
    status: { phase: 'Failed', ...status },
  };
}

test('the release before serves while the task of the next one runs, and stays if it fails', () => {
  const next = create(second);
  const running = plan(next, { ...serving, ...withJobs(asJob(done, complete)) });
  assert.ok(running.created !== undefined && running.created.metadata.name !== done?.metadata.name);
  assert.equal(running.applied.includes('Deployment'), false);
  const job = asJob(running.created, createFailedStatus('PodFailurePolicy'));
  const pod = createTaskPod(job, {
    containerStatuses: [
      {
        ...{ name: 'app', ready: false, restartCount: 0 },
        state: {
          terminated: { exitCode: 1, reason: 'Error', message: 'alembic.util.exc.CommandError: no revision 12ab' },
        },
      },
    ],
  });
  const failed = plan(next, { ...serving, tasks: { jobs: [job], cronJobs: [], pods: [pod] } });
  assert.deepEqual(
    [failed.reason, failed.created, failed.applied.includes('Deployment')],
    ['TaskFailed', undefined, false],
  );
  const { rejection } = failed.status;
  assert.equal(rejection?.rule, 'run/task-failed');
  assert.match(
    rejection.message,
    /^Task migrate failed with exit code 1\. Its log .*no revision 12ab.*It is not run again until/,
  );
  assert.match(rejection.log ?? '', /CommandError/);
  assert.equal(failed.status.phase, 'Rejected');
  assert.match(failed.status.components?.at(-1)?.message ?? '', /^Task migrate failed/);
});

test('an app whose new commit fails in its task stays live with the commit before, which the status reports with the log', () => {
  const list = [...components, migrate, nightly];
  const old = create(first, list);
  const built = create(second, list);
  const { served } = old.status ?? {};
  const next: HostedApp = { ...built, status: { ...built.status, ...(served === undefined ? {} : { served }) } };
  const cron = decideStatus(createSnapshot(old, withJobs(asJob(plan(old).created, complete))))
    .decision.actions.map(({ action }) => action)
    .find((action) => action.kind === 'apply' && action.manifest.kind === 'CronJob');
  assert.ok(cron?.kind === 'apply');
  const job = asJob(plan(next, serving).created, createFailedStatus('PodFailurePolicy'));
  const terminated = { exitCode: 1, reason: 'Error', message: 'relation "users" does not exist' };
  const pod = createTaskPod(job, {
    containerStatuses: [{ name: 'app', ready: false, restartCount: 0, state: { terminated } }],
  });
  const tasks = { jobs: [job], cronJobs: [toObject(cron.manifest) as never], pods: [pod] };
  const { status, applied, deleted, created } = plan(next, { ...serving, tasks });
  assert.deepEqual([applied.includes('Deployment'), created, deleted], [false, undefined, []]);
  const shown = toPublicStatus({ ...next, status });
  assert.ok(shown.status === 'live', shown.status);
  assert.deepEqual([shown.commit, shown.problem?.rule], [first, 'run/task-failed']);
  assert.match(shown.problem?.message ?? '', /Commit a{7,} serves on\./);
  assert.match(shown.problem?.log ?? '', /relation "users" does not exist/);
  const again = plan({ ...next, status }, { ...serving, tasks });
  assert.deepEqual(
    [again.created, again.status.rejection],
    [undefined, status.rejection],
    'another leader decides the same',
  );
});

test('says of a task that looks up another component that it cannot reach it', () => {
  const job = asJob(plan(create(first)).created, createFailedStatus('PodFailurePolicy'));
  const explain = (message: string): string => {
    const terminated = { exitCode: 1, reason: 'Error', message };
    const pod = createTaskPod(job, {
      containerStatuses: [{ name: 'app', ready: false, restartCount: 0, state: { terminated } }],
    });
    return plan(create(first), { tasks: { jobs: [job], cronJobs: [], pods: [pod] } }).status.rejection?.fix ?? '';
  };
  for (const log of [
    'Error: getaddrinfo ENOTFOUND api',
    'curl: (6) Could not resolve host: api',
    "host='api', port=8000): Max retries: [Errno -2] Name or service not known",
    'dial tcp: lookup api on 10.96.0.10:53: no such host',
  ])
    assert.match(explain(log), /^migrate runs in its own pod, before api starts, and cannot reach it\./, log);
  for (const log of ['getaddrinfo ENOTFOUND api.example.org', 'api failed\ngetaddrinfo ENOTFOUND db', 'no api key'])
    assert.doesNotMatch(explain(log), /own pod/, log);
});

test('says of a task that takes too long which setting is its limit', () => {
  const job = asJob(plan(create(first)).created, createFailedStatus('PodFailurePolicy'));
  const pod = createTaskPod(job, { reason: 'DeadlineExceeded' });
  const { status } = plan(create(first), { tasks: { jobs: [job], cronJobs: [], pods: [pod] } });
  assert.match(status.rejection?.message ?? '', /^Task migrate did not end within 3m and was stopped\./);
  assert.match(status.rejection?.fix ?? '', /startupTime of component migrate/);
});

test('removes the Jobs of older releases once the newer one starts', () => {
  const next = create(second);
  const { created } = plan(next, serving);
  const old = asJob(done, complete);
  const rolled = plan(next, { ...serving, ...withJobs(old, asJob(created, complete)) });
  assert.deepEqual(rolled.deleted, [old.metadata.name]);
});

test('schedules a cron component, never two at the same time, and removes it with the component', () => {
  const of = create(first, [...components, nightly]);
  const { decision, status } = decideStatus(createSnapshot(of));
  const cron = decision.actions
    .map(({ action }) => action)
    .find((action) => action.kind === 'apply' && action.manifest.kind === 'CronJob');
  assert.ok(cron?.kind === 'apply');
  expect(cron.manifest['spec']).toMatchObject({
    ...{ schedule: '0 3 * * *', timeZone: 'Etc/UTC', concurrencyPolicy: 'Forbid', suspend: false },
    ...{ successfulJobsHistoryLimit: 3, failedJobsHistoryLimit: 3 },
    jobTemplate: { spec: { backoffLimit: 2, template: { spec: { restartPolicy: 'Never' } } } },
  });
  assert.ok(cron.manifest.metadata.name.length <= 52);
  assert.deepEqual(status.components?.at(-1), { name: 'nightly', kind: 'cron', ready: true });
  const retired = plan(create(first, components), {
    tasks: { jobs: [], cronJobs: [toObject(cron.manifest) as never], pods: [] },
  });
  assert.deepEqual(retired.deleted, [cron.manifest.metadata.name]);
});

test('an app without tasks and schedules has neither', () => {
  const { applied, created, deleted } = plan(createComposite(first));
  assert.deepEqual([applied.includes('CronJob'), created, deleted], [false, undefined, []]);
});
