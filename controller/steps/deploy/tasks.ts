// Runs the tasks of a release, such as migrations, before its pods start, and schedules its cron components. The release
// before serves meanwhile, and stays if a task fails.
import type { V1CronJobSpec, V1JobSpec, V1PodTemplateSpec } from '@kubernetes/client-node';
import { listRunningComponents, parseComponentStartMs } from '../../../crds/components.ts';
import type { HostedApp } from '../../../crds/hosted-app.ts';
import { annotations, labels, taskComponent } from '../../../crds/names.ts';
import type { ComponentStatus } from '../../../crds/status.ts';
import { computeHash, type Manifest, type Wire } from '../../../lib/kubernetes/index.ts';
import { cronJobs, isConditionTrue, jobs as jobResource, type Job, type Pod } from '../../objects/kinds.ts';
import {
  createStalledOutcome,
  createWaitingOutcome,
  shortenCommit,
  type Action,
  type Outcome,
} from '../../reconcile/outcome.ts';
import type { Snapshot } from '../../reconcile/snapshot.ts';
import { readDataKey } from '../../retention/retention.ts';
import { isPodOfJob } from '../../build-queue/build-queue.ts';
import { findNewest } from '../build/verdict.ts';
import {
  listAppComponents,
  listEndingComponents,
  listScheduled,
  type Release,
  type RunningComponent,
  type ScheduledRun,
} from './components.ts';
import { buildChild } from './objects.ts';
import { buildTaskTemplate, type OwnedObjects } from './pod-template.ts';
import { explainHoldUp, explainTaskFailure } from './pods.ts';

/** A release whose pods are to start, and the hash of their template. */
export interface TaskInput {
  /** With the settings of the release. */
  readonly snapshot: Snapshot;
  readonly release: Release;
  readonly hash: string;
  readonly owned: OwnedObjects;
}

/** What is left to do before the pods of a release may start. */
export interface TaskPlan {
  /** Undefined: all tasks have ended well. */
  readonly outcome: Outcome | undefined;
  readonly actions: readonly Action[];
}

const none: TaskPlan = { outcome: undefined, actions: [] };

/**
 * Plans the next task of a release. Tasks run one after another, each in a Job whose name derives from the release, so that
 * an operator that was restarted finds it. A release whose pods were started before has run its tasks.
 */
export function planTasks(input: TaskInput): TaskPlan {
  const { snapshot, release, hash } = input;
  const tasks = listEndingComponents(snapshot.app, release, 'task');
  const running = snapshot.deployment?.spec?.template.metadata?.annotations?.[annotations.template];
  if (tasks.length === 0 || running === hash) return none;
  for (const task of tasks) {
    const plan = planTask(input, task);
    if (plan !== undefined) return plan;
  }
  return none;
}

/** Undefined: the task has ended well. */
function planTask(input: TaskInput, task: RunningComponent): TaskPlan | undefined {
  const { snapshot, release, hash } = input;
  const name = formatTaskName(snapshot.app, task, hash);
  const job = snapshot.tasks?.jobs.find(({ metadata }) => metadata.name === name);
  const what = `Task ${task.name} of commit ${shortenCommit(release.commit)} runs before its pods start`;
  if (job === undefined) {
    const outcome = createWaitingOutcome('RunningTasks', `${what}.`);
    return { outcome, actions: [{ kind: 'create', resource: jobResource, manifest: buildTaskJob(input, task) }] };
  }
  if (isConditionTrue(job.status?.conditions, 'Complete')) return undefined;
  const pod = findTaskPod(snapshot, job);
  if (isConditionTrue(job.status?.conditions, 'Failed'))
    return { outcome: reportFailure(input, task, pod), actions: [] };
  const holdUp = pod === undefined ? undefined : explainHoldUp(pod);
  const outcome = createWaitingOutcome('RunningTasks', `${what}${holdUp === undefined ? '' : `; ${holdUp}`}.`);
  return { outcome, actions: [] };
}

function reportFailure(
  { snapshot: { app }, release }: TaskInput,
  task: RunningComponent,
  pod: Pod | undefined,
): Outcome {
  const rejection = explainTaskFailure(pod, task.name, task.startupTime, listOthers(app));
  const before = app.status?.served?.commit ?? release.commit;
  const stays = before === release.commit ? '' : ` Commit ${shortenCommit(before)} serves on.`;
  const message = `${rejection.message}${stays} It is not run again until there is a new commit, other settings or another submission.`;
  return createStalledOutcome('TaskFailed', { ...rejection, message });
}

/** Names of the components that a task cannot reach. */
function listOthers(app: Snapshot['app']): string[] {
  return listRunningComponents(listAppComponents(app)).map(({ name }) => name);
}

/** The newest pod of a Job. */
export function findTaskPod({ tasks }: Snapshot, job: Job): Pod | undefined {
  return findNewest((tasks?.pods ?? []).filter((pod) => isPodOfJob(pod, job)));
}

/** Longer than any name of an app, and with the identity of the release. */
function formatTaskName(app: HostedApp, { name }: RunningComponent, hash: string): string {
  const readable = `${app.metadata.name}-${name}`.slice(0, 24).replace(/-+$/, '');
  return `task-${readable}-${computeHash([readDataKey(app), name, hash, 'task']).slice(0, 20)}`;
}

function buildTaskJob({ snapshot, release, hash, owned }: TaskInput, task: RunningComponent): Manifest {
  const { app, config } = snapshot;
  const template = buildTaskTemplate(app, config, task, release.commit, owned);
  return {
    ...markTask(buildChild(app, 'batch/v1', 'Job', formatTaskName(app, task, hash)), task, release.commit),
    spec: buildJobSpec(template, Math.ceil(parseComponentStartMs(task) / 1000) + marginSeconds),
  };
}

/** On top of the time that a task may run, for pulling its image. */
const marginSeconds = 120;

/**
 * A task is not repeated, unless its pod was evicted. The deadline is that of the pod, since the end of a Job by its own
 * deadline deletes the pod with its log.
 */
export function buildJobSpec(template: Wire<V1PodTemplateSpec>, seconds: number, retries = 2): Wire<V1JobSpec> {
  return {
    backoffLimit: retries,
    podFailurePolicy: {
      rules: [
        { action: 'Count', onPodConditions: [{ type: 'DisruptionTarget', status: 'True' }] },
        { action: 'FailJob', onExitCodes: { operator: 'NotIn', values: [0] } },
      ],
    },
    template: {
      ...template,
      ...(template.spec === undefined ? {} : { spec: { ...template.spec, activeDeadlineSeconds: seconds } }),
    },
  };
}

export function markTask(manifest: Manifest, { name }: Pick<RunningComponent, 'name'>, commit: string): Manifest {
  const { metadata } = manifest;
  return {
    ...manifest,
    metadata: {
      ...metadata,
      labels: { ...metadata.labels, [labels.component]: taskComponent },
      annotations: { ...metadata.annotations, [annotations.task]: name, [annotations.commit]: commit },
    },
  };
}

/**
 * Applies the CronJobs of the release that runs, and removes retired ones and Jobs of older releases.
 *
 * @param wanted hash of the template whose tasks run or have run
 */
export function planSchedules(
  { isStopped, ...input }: TaskInput & { readonly isStopped: boolean },
  wanted: string,
): Action[] {
  const { snapshot, release } = input;
  const { jobs = [], cronJobs: cached = [] } = snapshot.tasks ?? {};
  const manifests = listScheduled(snapshot.app, release)
    .filter((cron) => cron.schedule !== undefined)
    .map((cron) => buildCronJob(input, cron, isStopped));
  const kept = new Set([
    ...manifests.map(({ metadata }) => metadata.name),
    ...listEndingComponents(snapshot.app, release, 'task').flatMap((task) =>
      [wanted, input.hash].map((hash) => formatTaskName(snapshot.app, task, hash)),
    ),
  ]);
  const isRetired = ({ metadata }: Job): boolean =>
    metadata.deletionTimestamp === undefined &&
    !kept.has(metadata.name) &&
    !isRequestedRun(metadata.name) &&
    (metadata.ownerReferences ?? []).some(({ kind }) => kind === snapshot.app.kind);
  return [
    ...manifests.map((manifest): Action => ({
      ...{ kind: 'apply', resource: cronJobs, manifest },
      cached: cached.find(({ metadata }) => metadata.name === manifest.metadata.name),
    })),
    ...cached
      .filter(({ metadata }) => metadata.deletionTimestamp === undefined && !kept.has(metadata.name))
      .map((object): Action => ({ kind: 'delete', resource: cronJobs, object })),
    ...jobs.filter(isRetired).map((object): Action => ({ kind: 'delete', resource: jobResource, object })),
  ];
}

/** At most 52 characters, since Kubernetes adds the time to the names of its Jobs. */
function formatCronName(app: HostedApp, { name }: RunningComponent): string {
  const readable = `${app.metadata.name}-${name}`.slice(0, 24).replace(/-+$/, '');
  return `cron-${readable}-${computeHash([readDataKey(app), name, 'cron']).slice(0, 20)}`;
}

const requestedPrefix = 'run-';

/** Whether a Job of an app runs what its author requested. */
export function isRequestedRun(name: string): boolean {
  return name.startsWith(requestedPrefix);
}

/** A run that could not start for so long is left out, by Kubernetes. */
export const startingDeadlineMs = 300_000;

/** Jobs that an outage of the API may leave unread. */
const keptJobs = 3;

function buildCronJob({ snapshot, release, owned }: TaskInput, cron: ScheduledRun, isStopped: boolean): Manifest {
  const { app, config } = snapshot;
  const manifest = markTask(buildChild(app, 'batch/v1', 'CronJob', formatCronName(app, cron)), cron, release.commit);
  const template = buildTaskTemplate(app, config, cron, release.commit, owned);
  const { labels: marks = {}, annotations: noted = {} } = manifest.metadata;
  return {
    ...manifest,
    spec: {
      schedule: cron.schedule ?? '',
      timeZone: cron.timeZone,
      concurrencyPolicy: cron.overlap === 'replace' ? 'Replace' : 'Forbid',
      startingDeadlineSeconds: startingDeadlineMs / 1_000,
      successfulJobsHistoryLimit: keptJobs,
      failedJobsHistoryLimit: keptJobs,
      suspend: isStopped,
      jobTemplate: {
        metadata: { labels: marks, annotations: noted },
        spec: buildJobSpec(template, cron.timeoutSeconds),
      },
    } satisfies Wire<V1CronJobSpec>,
  };
}

/** The state of each task and cron component: of a cron component, that of its last run. */
export function describeTasks({ snapshot, release, hash }: Omit<TaskInput, 'owned'>): ComponentStatus[] {
  const { app, tasks } = snapshot;
  const describe = (component: RunningComponent, job: Job | undefined): ComponentStatus => {
    const { name, kind } = component;
    const hasFailed = isConditionTrue(job?.status?.conditions, 'Failed');
    const ready = kind === 'cron' ? !hasFailed : isConditionTrue(job?.status?.conditions, 'Complete');
    if (job === undefined || !hasFailed) return { name, kind, ready };
    const { message } = explainTaskFailure(findTaskPod(snapshot, job), name, readLimit(component), listOthers(app));
    return { name, kind, ready, message: message.slice(0, 500) };
  };
  const jobs = tasks?.jobs ?? [];
  return [
    ...listEndingComponents(app, release, 'task').map((task) => {
      const name = formatTaskName(app, task, hash);
      return describe(
        task,
        jobs.find(({ metadata }) => metadata.name === name),
      );
    }),
    ...listEndingComponents(app, release, 'cron').map((cron) => {
      const own = jobs.filter(
        ({ metadata }) => metadata.annotations?.[annotations.task] === cron.name && !isRequestedRun(metadata.name),
      );
      const ended = own.filter(({ status }) => (status?.conditions ?? []).length > 0);
      return describe(
        cron,
        ended.toSorted((one, other) =>
          other.metadata.creationTimestamp.localeCompare(one.metadata.creationTimestamp),
        )[0],
      );
    }),
  ];
}

function readLimit({ kind, startupTime }: RunningComponent): string {
  return kind === 'cron' ? '1h' : startupTime;
}
