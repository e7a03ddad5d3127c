// Runs that an author requests are started once, and the runs of all tasks are recorded with how they ended.
import assert from 'node:assert/strict';
import { expect, test } from 'vitest';
import type { HostedApp } from '../../../../../crds/hosted-app.ts';
import { annotations } from '../../../../../crds/names.ts';
import type { CronJob, Job, Pod } from '../../../../../controller/objects/kinds.ts';
import type { Action } from '../../../../../controller/reconcile/outcome.ts';
import type { Snapshot } from '../../../../../controller/reconcile/snapshot.ts';
import {
  app,
  complete,
  createDeployed,
  createFailedStatus,
  createLiveStatus,
  createSnapshot,
  decideStatus,
  first,
  formatTime,
  toObject,
} from '../../../../support/operator/scenario.ts';

const clean = {
  ...{ name: 'clean', command: ['python', 'clean.py'], schedule: '*/5 * * * *' },
  ...{ timeZone: 'Europe/Berlin', timeout: '2m', overlap: 'replace' as const },
};
const byHand = { ...clean, name: 'import', schedule: undefined };
const request = (id: string, more: object = { command: ['echo', '$HOME; rm -rf /'] }): object => ({
  ...{ id, timeoutSeconds: 90, requestedAt: formatTime(-5) },
  ...more,
});

function create(runs: readonly object[] = [], status: Partial<HostedApp['status'] & object> = {}): HostedApp {
  const spec = { tasks: [clean, byHand], control: { runs } } as never;
  const bare = app(spec);
  return app(spec, { ...createLiveStatus(first, {}, bare), ...status });
}

interface Plan {
  readonly actions: readonly Action[];
  readonly created: Extract<Action, { kind: 'create' }>[];
  readonly status: ReturnType<typeof decideStatus>['status'];
}

function plan(of: HostedApp, tasks: Partial<NonNullable<Snapshot['tasks']>> = {}): Plan {
  const snapshot = createSnapshot(of, {
    ...createDeployed(of),
    tasks: { jobs: [], cronJobs: [], pods: [], ...tasks },
  });
  const { decision, status } = decideStatus(snapshot);
  const actions = decision.actions.map(({ action }) => action);
  const created = actions.flatMap((action) =>
    action.kind === 'create' && action.manifest.kind === 'Job' ? [action] : [],
  );
  return { actions, created, status };
}

function createJob(name: string, task: string, status: Job['status'] = {}, more: object = {}): Job {
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: {
      ...{ name, namespace: 'moorage-apps', uid: `uid-${name}`, resourceVersion: '1' },
      creationTimestamp: formatTime(-60),
      annotations: { [annotations.task]: task, ...more },
      ownerReferences: [{ apiVersion: 'moorage.dev/v1alpha1', kind: 'HostedApp', name: 'hello', uid: 'uid-1' }],
    },
    status: { startTime: formatTime(-60), ...status },
  };
}

function createPod(job: Job, exitCode: number, reason: string): Pod {
  return {
    ...{ apiVersion: 'v1', kind: 'Pod' },
    metadata: {
      ...{ name: `${job.metadata.name}-x`, namespace: 'moorage-apps', uid: 'p', resourceVersion: '1' },
      creationTimestamp: formatTime(-60),
      ownerReferences: [{ apiVersion: 'batch/v1', kind: 'Job', name: job.metadata.name, uid: job.metadata.uid }],
    },
    status: {
      phase: 'Failed',
      containerStatuses: [
        {
          name: 'app',
          ready: false,
          restartCount: 0,
          state: { terminated: { exitCode, reason, finishedAt: formatTime(-10) } },
        },
      ],
    },
  };
}

test('schedules a task with the image and settings of the app, in its time zone', () => {
  const { actions } = plan(create());
  const crons = actions.flatMap((action) =>
    action.kind === 'apply' && action.manifest.kind === 'CronJob' ? [action.manifest] : [],
  );
  assert.equal(crons.length, 1, 'a task without a schedule has none');
  expect(crons[0]?.['spec']).toMatchObject({
    ...{ schedule: '*/5 * * * *', timeZone: 'Europe/Berlin', concurrencyPolicy: 'Replace', suspend: false },
    jobTemplate: {
      spec: {
        template: {
          spec: {
            activeDeadlineSeconds: 120,
            containers: [{ name: 'app', image: create().status?.built?.image, command: clean.command }],
          },
        },
      },
    },
  });
});

test('starts a requested command once, as an array without a shell, and does not repeat it', () => {
  const { created } = plan(create([request('run-hello-1')]));
  expect(created).toMatchObject([
    {
      request: 'run-hello-1',
      manifest: {
        metadata: { name: 'run-hello-1', annotations: { [annotations.task]: 'run', [annotations.commit]: first } },
        spec: {
          backoffLimit: 0,
          template: {
            spec: {
              ...{ activeDeadlineSeconds: 90, restartPolicy: 'Never', hostUsers: false },
              containers: [{ command: ['echo', '$HOME; rm -rf /'] }],
            },
          },
        },
      },
    },
  ]);
  const job = createJob('run-hello-1', 'run');
  assert.deepEqual(plan(create([request('run-hello-1')]), { jobs: [job] }).created, [], 'its Job exists');
  const taskRuns = [
    {
      id: 'run-hello-1',
      task: 'run',
      trigger: 'manual' as const,
      startedAt: formatTime(-60),
      endedAt: formatTime(-10),
    },
  ];
  assert.deepEqual(plan(create([request('run-hello-1')], { taskRuns })).created, [], 'it is recorded');
});

test('starts a task by its name, two runs at a time, and none that is too old or of a task that is gone', () => {
  const named = plan(create([request('run-hello-1', { task: 'import' })])).created;
  expect(named[0]?.manifest['spec']).toMatchObject({
    template: { spec: { containers: [{ command: byHand.command }] } },
  });
  const many = create(['1', '2', '3'].map((id) => request(`run-hello-${id}`)));
  assert.deepEqual(
    plan(many).created.map(({ request: id }) => id),
    ['run-hello-1', 'run-hello-2'],
  );
  const busy = [createJob('run-hello-1', 'run'), createJob('run-hello-2', 'run')];
  assert.deepEqual(plan(many, { jobs: busy }).created, []);
  const old = request('run-hello-4', { command: ['true'], requestedAt: formatTime(-901) });
  assert.deepEqual(plan(create([old, request('run-hello-5', { task: 'none' })])).created, []);
});

test('starts nothing while the app is suspended', () => {
  const spec = { tasks: [clean], suspend: true, control: { runs: [request('run-hello-1')] } } as never;
  assert.deepEqual(plan(app(spec, createLiveStatus(first, {}, app(spec)))).created, []);
});

test('keeps the Job of a request until the request is gone, as proof that it ran', () => {
  const job = createJob('run-hello-1', 'run', complete);
  const listDeleted = (of: HostedApp): string[] =>
    plan(of, { jobs: [job] }).actions.flatMap((action) =>
      action.kind === 'delete' ? [action.object.metadata.name] : [],
    );
  assert.deepEqual(listDeleted(create([request('run-hello-1')])), []);
  assert.deepEqual(listDeleted(create()), ['run-hello-1']);
});

test('records how runs ended, and reports a failed scheduled one in a condition', () => {
  const cron = createCron(formatTime(-70));
  const scheduled = { 'batch.kubernetes.io/cronjob-scheduled-timestamp': '2026-11-21T13:00:00+01:00' };
  const failed = createJob(`${cron.metadata.name}-1`, 'clean', createFailedStatus('PodFailurePolicy'), scheduled);
  const manual = createJob('run-hello-1', 'run', complete);
  const { status } = plan(create([request('run-hello-1')]), {
    ...{ jobs: [failed, manual], cronJobs: [cron] },
    pods: [createPod(failed, 3, 'Error')],
  });
  const scheduledAt = '2026-11-21T12:00:00Z';
  expect(status.taskRuns).toContainEqual(
    expect.objectContaining({ task: 'clean', trigger: 'schedule', exitCode: 3, reason: 'Error', scheduledAt }),
  );
  expect(status.taskRuns).toContainEqual(
    expect.objectContaining({ id: 'run-hello-1', task: 'run', trigger: 'manual', reason: 'Completed' }),
  );
  const condition = status.conditions?.find(({ type }) => type === 'TasksFailing');
  assert.equal(condition?.reason, 'TaskFailed');
  assert.match(condition.message, /^Task clean failed at .* with exit code 3 \(Error\)\.$/);
  const better = createJob(`${cron.metadata.name}-2`, 'clean', { ...complete, startTime: formatTime(-20) }, scheduled);
  const next = plan(create([], { taskRuns: status.taskRuns }), { jobs: [better], cronJobs: [cron] });
  assert.equal(
    next.status.conditions?.some(({ type }) => type === 'TasksFailing'),
    false,
  );
  assert.equal(next.status.taskRuns?.length, 3, 'records outlive their Jobs');
});

function createCron(lastScheduleTime: string | undefined): CronJob {
  const action = plan(create()).actions.find((each) => each.kind === 'apply' && each.manifest.kind === 'CronJob');
  assert.ok(action?.kind === 'apply');
  return toObject(action.manifest, { lastScheduleTime }) as unknown as CronJob;
}

test('records a run that was due and did not start, once, but none that another run kept from starting', () => {
  const cron = createCron(formatTime(-3_600));
  const watched = plan(create(), { cronJobs: [cron] }).status;
  assert.equal(watched.taskRuns, undefined, 'what was due before it was watched is not missed');
  const schedules = { hash: watched.schedules?.hash ?? '', since: formatTime(-3_600) };
  const { status } = plan(create([], { schedules }), { cronJobs: [cron] });
  assert.deepEqual(
    status.taskRuns?.map(({ task, reason, scheduledAt }) => [task, reason, scheduledAt]),
    [['clean', 'Missed', '2026-11-21T11:50:00Z']],
  );
  assert.equal(status.conditions?.find(({ type }) => type === 'TasksFailing')?.reason, 'TaskMissed');
  const again = plan(create([], { schedules, taskRuns: status.taskRuns }), { cronJobs: [cron] });
  assert.equal(again.status.taskRuns?.length, 1);
  const long = createJob(`${cron.metadata.name}-9`, 'clean');
  const running = { ...long, metadata: { ...long.metadata, creationTimestamp: formatTime(-3_500) } };
  const busy = plan(create([], { schedules }), { cronJobs: [cron], jobs: [running] });
  assert.equal(busy.status.taskRuns?.some(({ reason }) => reason === 'Missed') ?? false, false);
  const early = createCron(formatTime(-600));
  assert.equal(plan(create([], { schedules }), { cronJobs: [early] }).status.taskRuns, undefined, 'it ran');
});

test('ends the record of a run whose Job is gone', () => {
  const taskRuns = [
    { id: 'run-hello-1', task: 'run', trigger: 'manual' as const, startedAt: formatTime(-120) },
    { id: 'run-hello-2', task: 'run', trigger: 'manual' as const, startedAt: formatTime(-20) },
  ];
  const { status } = plan(create([], { taskRuns }));
  assert.deepEqual(
    status.taskRuns?.map(({ id, reason }) => [id, reason]),
    [
      ['run-hello-2', undefined],
      ['run-hello-1', 'Removed'],
    ],
  );
});
