// Starts the runs that an author has requested, each once, and records the runs of all tasks in the status. Kubernetes forgets
// a Job after a while; the API copies the records to its database.
import { keptRuns, startWithinMs, findDueTimes, isSuccessful, type TaskRun } from '../../../crds/tasks.ts';
import { annotations } from '../../../crds/names.ts';
import { computeHash, type KubeObject } from '../../../lib/kubernetes/index.ts';
import { omitUndefined } from '../../../lib/values.ts';
import {
  type CronJob,
  formatTimestamp,
  type Job,
  jobs as jobResource,
  isConditionTrue,
  type Pod,
} from '../../objects/kinds.ts';
import type { Action, StatusFields } from '../../reconcile/outcome.ts';
import type { Snapshot } from '../../reconcile/snapshot.ts';
import { resolveRun } from './components.ts';
import { buildChild } from './objects.ts';
import { buildTaskTemplate } from './pod-template.ts';
import { buildJobSpec, findTaskPod, isRequestedRun, markTask, startingDeadlineMs, type TaskInput } from './tasks.ts';

/** On top of that, until it counts as missed. */
const missedAfterMs = startingDeadlineMs + 60_000;
/** Requests that run at the same time. */
const maximumRunning = 2;

/**
 * Creates a Job for each request that has none. The name of the Job is the id of the request, and the Job stays until the
 * request is removed, so another one is never created.
 */
export function planRequestedRuns(input: TaskInput & { readonly isStopped: boolean }): Action[] {
  const { snapshot } = input;
  const { app, now, tasks } = snapshot;
  const requests = app.spec.control?.runs ?? [];
  const existing = (tasks?.jobs ?? []).filter(({ metadata }) => isRequestedRun(metadata.name));
  const known = new Set([
    ...existing.map(({ metadata }) => metadata.name),
    ...(app.status?.taskRuns ?? []).map(({ id }) => id),
  ]);
  const isDue = (requestedAt: string): boolean => now.getTime() - Date.parse(requestedAt) < startWithinMs;
  const free = maximumRunning - existing.filter((job) => !isEnded(job)).length;
  const started = input.isStopped
    ? []
    : requests.filter(({ id, requestedAt }) => !known.has(id) && isDue(requestedAt)).slice(0, Math.max(0, free));
  const removed = existing.filter(
    (job) =>
      isEnded(job) &&
      job.metadata.deletionTimestamp === undefined &&
      !requests.some(({ id }) => id === job.metadata.name),
  );
  return [
    ...started.flatMap((request): Action[] => {
      const run = resolveRun(app, input.release, request);
      if (run === undefined) return [];
      const template = buildTaskTemplate(app, snapshot.config, run, input.release.commit, input.owned);
      const manifest = {
        ...markTask(buildChild(app, 'batch/v1', 'Job', request.id), run, input.release.commit),
        // What the author started by hand must not happen twice, not even after an eviction.
        spec: buildJobSpec(template, run.timeoutSeconds, 0),
      };
      return [{ kind: 'create', resource: jobResource, manifest, request: request.id }];
    }),
    ...removed.map((object): Action => ({ kind: 'delete', resource: jobResource, object })),
  ];
}

function isEnded({ status }: Job): boolean {
  return isConditionTrue(status?.conditions, 'Complete') || isConditionTrue(status?.conditions, 'Failed');
}

type TaskFields = Pick<StatusFields, 'taskRuns' | 'schedules'>;

/** Updates the records of runs by what the Jobs show, and adds the runs that were due and did not start. */
export function recordTaskRuns(snapshot: Snapshot, fields: TaskFields): TaskFields {
  const { tasks, app } = snapshot;
  const schedules = trackSchedules(snapshot, fields);
  const seen = (tasks?.jobs ?? [])
    .filter(({ metadata }) => metadata.creationTimestamp >= app.metadata.creationTimestamp)
    .flatMap((job) => toTaskRun(snapshot, job));
  const missed = listMissed(snapshot, schedules);
  const records = new Map((fields.taskRuns ?? []).map((run) => [run.id, endVanished(run, snapshot)]));
  for (const run of [...missed, ...seen]) records.set(run.id, run);
  const runs = [...records.values()].toSorted((one, other) => readTime(other).localeCompare(readTime(one)));
  return { taskRuns: runs.length === 0 ? undefined : runs.slice(0, keptRuns), schedules };
}

/** When a run happened, for the order of runs. */
function readTime({ startedAt, scheduledAt, endedAt }: TaskRun): string {
  return startedAt ?? scheduledAt ?? endedAt ?? '';
}

function toTaskRun(snapshot: Snapshot, job: Job): TaskRun[] {
  const { name, annotations: marks = {}, creationTimestamp } = job.metadata;
  const task = marks[annotations.task];
  if (task === undefined) return [];
  const scheduledAt = marks['batch.kubernetes.io/cronjob-scheduled-timestamp'];
  const trigger = isRequestedRun(name) ? 'manual' : scheduledAt === undefined ? 'release' : 'schedule';
  return [
    omitUndefined({
      ...{ id: name, task, trigger },
      commit: marks[annotations.commit],
      scheduledAt: scheduledAt === undefined ? undefined : toTimestamp(scheduledAt),
      startedAt: job.status?.startTime ?? creationTimestamp,
      ...readEnd(snapshot, job),
    }) as TaskRun,
  ];
}

/** Kubernetes writes the time in the time zone of the schedule. */
function toTimestamp(text: string): string | undefined {
  const at = new Date(text);
  return Number.isNaN(at.getTime()) ? undefined : formatTimestamp(at);
}

function readEnd(snapshot: Snapshot, job: Job): Partial<TaskRun> {
  if (!isEnded(job)) return {};
  const hasFailed = isConditionTrue(job.status?.conditions, 'Failed');
  const { exitCode, reason } = readPodEnd(findTaskPod(snapshot, job));
  return omitUndefined({
    endedAt: readEndTime(job) ?? formatTimestamp(snapshot.now),
    exitCode,
    reason: hasFailed ? (reason ?? 'Error') : 'Completed',
  });
}

function readPodEnd(pod: Pod | undefined): Pick<TaskRun, 'exitCode' | 'reason'> {
  const ended = pod?.status?.containerStatuses?.[0]?.state?.terminated;
  return { exitCode: ended?.exitCode, reason: pod?.status?.reason ?? ended?.reason };
}

function readEndTime({ status }: Job): string | undefined {
  return status?.completionTime ?? status?.conditions?.find(({ type }) => type === 'Failed')?.lastTransitionTime;
}

/** Jobs that a cache may not show yet. */
const vanishedAfterMs = 60_000;

/** Ends the record of a run whose Job is gone: replaced by the next one, or removed. */
function endVanished(run: TaskRun, { tasks, now }: Snapshot): TaskRun {
  const isGone = !(tasks?.jobs ?? []).some(({ metadata }) => metadata.name === run.id);
  const age = now.getTime() - Date.parse(run.startedAt ?? formatTimestamp(now));
  if (run.endedAt !== undefined || !isGone || age < vanishedAfterMs) return run;
  const cron = (tasks?.cronJobs ?? []).find(({ metadata }) => run.id.startsWith(`${metadata.name}-`));
  const reason = cron?.spec.concurrencyPolicy === 'Replace' ? 'Replaced' : 'Removed';
  return { ...run, endedAt: formatTimestamp(now), reason };
}

// Missed runs

function trackSchedules({ tasks, now }: Snapshot, { schedules }: TaskFields): TaskFields['schedules'] {
  const list = (tasks?.cronJobs ?? []).map(({ metadata, spec }) => [
    metadata.name,
    spec.schedule,
    spec.timeZone,
    spec.suspend,
  ]);
  if (list.length === 0) return undefined;
  const hash = computeHash(list.toSorted());
  return schedules?.hash === hash ? schedules : { hash, since: formatTimestamp(now) };
}

function listMissed(snapshot: Snapshot, schedules: TaskFields['schedules']): TaskRun[] {
  const { tasks, now } = snapshot;
  if (schedules === undefined) return [];
  const before = new Date(now.getTime() - missedAfterMs);
  return (tasks?.cronJobs ?? []).flatMap((cron) => {
    const { spec, status, metadata } = cron;
    const task = metadata.annotations?.[annotations.task];
    if (task === undefined || spec.suspend === true) return [];
    const due = findDueTimes({ schedule: spec.schedule, timeZone: spec.timeZone ?? 'Etc/UTC' }, before).last;
    const since = Math.max(Date.parse(schedules.since), Date.parse(status?.lastScheduleTime ?? schedules.since));
    // What is left out because the run before has not ended is as the author wants it.
    if (due === undefined || due <= since || isBusy(snapshot, cron, due)) return [];
    const scheduledAt = formatTimestamp(new Date(due));
    const id = `${metadata.name}-missed-${Math.round(due / 60_000)}`;
    return [{ id, task, trigger: 'schedule' as const, scheduledAt, endedAt: scheduledAt, reason: 'Missed' }];
  });
}

function isBusy({ tasks }: Snapshot, cron: CronJob, due: number): boolean {
  return (tasks?.jobs ?? [])
    .filter(({ metadata }) => metadata.name.startsWith(`${cron.metadata.name}-`))
    .some((job) => {
      const end = readEndTime(job);
      return Date.parse(job.metadata.creationTimestamp) <= due && (end === undefined || Date.parse(end) >= due);
    });
}

/** Describes the scheduled tasks whose last run failed or was missed; undefined if none did. */
export function explainFailingTasks(
  { tasks }: Snapshot,
  runs: readonly TaskRun[] = [],
): { readonly reason: string; readonly message: string } | undefined {
  const failing = (tasks?.cronJobs ?? []).flatMap((cron: KubeObject) => {
    const task = cron.metadata.annotations?.[annotations.task];
    const last = runs.find((run) => run.task === task && run.endedAt !== undefined);
    return last === undefined || isSuccessful(last) || last.reason === 'Replaced' ? [] : [last];
  });
  const [first] = failing;
  if (first === undefined) return undefined;
  const message = failing.map(describeFailure).join(' ');
  return { reason: first.reason === 'Missed' ? 'TaskMissed' : 'TaskFailed', message };
}

function describeFailure({ task, reason, exitCode, scheduledAt, endedAt }: TaskRun): string {
  if (reason === 'Missed') return `Task ${task} was due at ${scheduledAt ?? ''} and did not start.`;
  const code = exitCode === undefined ? '' : ` with exit code ${exitCode}`;
  return `Task ${task} failed at ${endedAt ?? ''}${code} (${reason ?? 'Error'}).`;
}
