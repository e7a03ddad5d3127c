// The build queue: resumes suspended pipeline Jobs within the build limits, in turns by submitter, and takes the slot back if the
// pod finds no node.
import { Gauge, type Registry } from 'prom-client';
import { z } from 'zod';
import { annotations, labels } from '../../crds/names.ts';
import {
  createController,
  done,
  isApiStatus,
  requeueAfter,
  createWatch,
  type Client,
  type Controller,
  type Logger,
  type ReconcileResult,
  type Store,
} from '../../lib/kubernetes/index.ts';
import { jobs as jobResource, type Job, type Pod, findUnschedulable, isFinished } from '../objects/kinds.ts';
import type { Space } from '../space/space.ts';

export interface BuildQueueOptions {
  readonly client: Client;
  readonly namespace: string;
  readonly limits: BuildLimits;
  /** How long the pod of a started build may wait for a node. */
  readonly schedulingMs: number;
  readonly jobs: Store<Job>;
  /** Pods of a Job's app. */
  readonly listPods: (job: Job) => readonly Pod[];
  /** Absent: builds do not wait for disk space. */
  readonly space?: Space | undefined;
  readonly log: Logger;
  readonly registry: Registry;
  readonly now?: () => number;
}

const key = 'queue';

/**
 * Creates the controller. It has one key, so it never runs twice at the same time, and it lists from the server, so it
 * never counts from a stale cache.
 */
export function createBuildQueue(options: BuildQueueOptions): Controller {
  const { client, namespace, limits, space, log, registry, now = Date.now } = options;
  registerQueueMetrics(registry, () => countQueue(options, now()));

  async function patch(job: Job, change: object, signal: AbortSignal): Promise<void> {
    const { uid, resourceVersion } = job.metadata;
    const body = { metadata: { uid, resourceVersion, ...change }, spec: { suspend: !isQueued(job) } };
    await client.patch(jobResource, job.metadata, body, { type: 'application/merge-patch+json', signal });
  }

  /** Returns the Jobs that keep their slots. A Job that changed meanwhile is checked again when the change arrives. */
  async function releaseRoomless(jobs: readonly Job[], log: Logger, signal: AbortSignal): Promise<Job[]> {
    const keptJobs: Job[] = [];
    for (const job of jobs) {
      const shortage = isRunning(job) ? findRoomless(job, options.listPods(job)) : undefined;
      if (shortage === undefined || now() - shortage.since < options.schedulingMs) {
        keptJobs.push(job);
        continue;
      }
      try {
        await patch(job, { annotations: { [annotations.noRoom]: formatNoRoom(job, shortage.reason, now()) } }, signal);
        log.warn({ job: job.metadata.name, reason: shortage.reason }, 'build found no space, slot released');
      } catch (error) {
        if (!isApiStatus(error, 409)) throw error;
        keptJobs.push(job);
      }
    }
    return keptJobs;
  }

  return createController({
    name: 'build-queue',
    workers: 1,
    // Every build waits for this one key: once the cause of its failures is gone, builds start within half a minute.
    queue: { maxDelayMs: 30_000 },
    log,
    registry,
    watches: [
      createWatch(options.jobs, () => [key], { isChange: (job, old) => isRunning(job) !== isRunning(old) }),
      ...(space === undefined ? [] : [space.watchChanges(() => [key])]),
    ],
    async reconcile(_key, { signal, log: context }) {
      const cached = options.jobs.list();
      if (!cached.some((job) => isQueued(job) || isRunning(job))) return done;
      const unfinished: Job[] = [];
      // Most Jobs have succeeded and are kept for their logs; the server need not send them.
      const selection = { namespace, labelSelector: labels.app, fieldSelector: 'status.successful=0' };
      for await (const job of client.listAll(jobResource, { ...selection, signal })) unfinished.push(job);
      const present = new Set(unfinished.map(({ metadata }) => metadata.uid));
      // For the others, the cache shows which submitter had a turn when.
      const past = cached.filter((job) => !present.has(job.metadata.uid) && !isQueued(job) && !isRunning(job));
      const jobs = [...past, ...(await releaseRoomless(unfinished, context, signal))];
      // Running builds continue. A new one would only fill the disk further; it is woken when there is space.
      for (const job of space?.explainShortage() === undefined ? selectNext(jobs, limits, now()) : []) {
        await patch(job, {}, signal);
        context.info({ job: job.metadata.name }, 'build started');
      }
      return scheduleNextRun(jobs, options, now());
    },
  });
}

/** Counts pipelines that wait, that run, and that would run if a node had room. */
function countQueue({ jobs, listPods }: Pick<BuildQueueOptions, 'jobs' | 'listPods'>, now: number): QueueView {
  const allJobs = jobs.list();
  const running = allJobs.filter(isRunning);
  const queued = allJobs.filter(isQueued);
  const roomlessNow = running.filter((job) => listPods(job).some((pod) => isPodOfJob(pod, job) && isRoomless(pod)));
  return {
    counts: {
      queued: queued.length,
      running: running.length,
      without_room: roomlessNow.length + queued.filter((job) => readNoRoom(job) !== undefined).length,
    },
    oldestWaitSeconds: Math.max(0, ...queued.map((job) => (now - readQueuedAt(job)) / 1000)),
  };
}

/** Requeues for when a Job that found no room is due, or a running one must have found some. */
function scheduleNextRun(
  jobs: readonly Job[],
  { schedulingMs, listPods }: BuildQueueOptions,
  now: number,
): ReconcileResult {
  const due = jobs.flatMap((job) => {
    if (isRunning(job)) return [(findRoomless(job, listPods(job))?.since ?? now) + schedulingMs];
    const found = isQueued(job) ? readNoRoom(job) : undefined;
    return found === undefined ? [] : [computeRetryTime(found)];
  });
  const later = due.filter((time) => time > now);
  return later.length === 0 ? done : requeueAfter(Math.min(...later) - now);
}

/** Pipelines by state. `without_room`: no node takes their pod. */
export type QueueCounts = Readonly<Record<'queued' | 'running' | 'without_room', number>>;

export interface QueueView {
  readonly counts: QueueCounts;
  /** Seconds that the oldest queued pipeline has waited; 0 if none waits. */
  readonly oldestWaitSeconds: number;
}

export function registerQueueMetrics(registry: Registry, view: () => QueueView): void {
  const registers = [registry];
  new Gauge({
    name: 'moorage_pipelines',
    help: 'Pipelines that wait in the queue, that have a slot, and for which no node has room.',
    labelNames: ['state'],
    registers,
    collect() {
      for (const [state, count] of Object.entries(view().counts)) this.set({ state }, count);
    },
  });
  new Gauge({
    name: 'moorage_pipelines_oldest_wait_seconds',
    help: 'Seconds for which the oldest pipeline waits in the queue; 0 if none does.',
    registers,
    collect() {
      this.set(view().oldestWaitSeconds);
    },
  });
}

// The queue is the list of suspended Jobs, ordered in turns by submitter. No other record of it exists.

/** How many builds may run. */
export interface BuildLimits {
  /** At the same time. */
  readonly concurrency: number;
  /** At the same time for one submitter. */
  readonly perSubmitter: number;
}

/** True when the Job waits for its turn. */
export function isQueued(job: Job): boolean {
  return job.spec?.suspend === true && !isFinished(job) && job.metadata.deletionTimestamp === undefined;
}

/** True when the Job takes one of the slots. */
export function isRunning(job: Job): boolean {
  return job.spec?.suspend !== true && !isFinished(job) && job.metadata.deletionTimestamp === undefined;
}

/**
 * Sorts the queued Jobs in the order in which they will run: the first of each submitter, then the second of each. A
 * submitter with a running build comes after all who have none. `jobs` includes finished ones, which show who had a turn
 * when.
 */
export function sortQueue(jobs: readonly Job[]): Job[] {
  const running = countBySubmitter(jobs.filter(isRunning));
  const lastStarts = findLastStarts(jobs);
  const ahead = new Map<string, number>(running);
  return jobs
    .filter(isQueued)
    .sort(compareArrival)
    .map((job) => {
      const submitter = readSubmitter(job);
      const round = ahead.get(submitter) ?? 0;
      ahead.set(submitter, round + 1);
      return { job, round, since: Math.max(readQueuedAt(job), lastStarts.get(submitter) ?? 0) };
    })
    .sort((a, b) => a.round - b.round || a.since - b.since || compareArrival(a.job, b.job))
    .map(({ job }) => job);
}

/** Selects the Jobs that can start now: within both limits, except those that have just found no room. */
export function selectNext(jobs: readonly Job[], limits: BuildLimits, now: number): Job[] {
  const running = jobs.filter(isRunning);
  const slotsTaken = countBySubmitter(running);
  const chosen: Job[] = [];
  for (const job of sortQueue(jobs)) {
    if (running.length + chosen.length >= limits.concurrency) break;
    const submitter = readSubmitter(job);
    const ownBuilds = slotsTaken.get(submitter) ?? 0;
    if (ownBuilds >= limits.perSubmitter || isWaitingForRoom(job, now)) continue;
    slotsTaken.set(submitter, ownBuilds + 1);
    chosen.push(job);
  }
  return chosen;
}

/** The submitter of a Job's app; an app that was not submitted through the API counts as its own submitter. */
function readSubmitter({ metadata }: Job): string {
  return metadata.annotations?.[annotations.submitter] ?? metadata.annotations?.[annotations.appUid] ?? metadata.name;
}

/** When each submitter's newest build was started. */
function findLastStarts(jobs: readonly Job[]): Map<string, number> {
  const starts = new Map<string, number>();
  for (const job of jobs) {
    const submitter = readSubmitter(job);
    const start = job.status?.startTime;
    if (start !== undefined) starts.set(submitter, Math.max(starts.get(submitter) ?? 0, Date.parse(start)));
  }
  return starts;
}

function countBySubmitter(jobs: readonly Job[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const job of jobs) counts.set(readSubmitter(job), (counts.get(readSubmitter(job)) ?? 0) + 1);
  return counts;
}

function compareArrival(a: Job, b: Job): number {
  return readQueuedAt(a) - readQueuedAt(b) || (a.metadata.name < b.metadata.name ? -1 : 1);
}

/** Since when a Job has waited: to the millisecond if annotated; creationTimestamp has whole seconds. */
function readQueuedAt({ metadata }: Job): number {
  return Date.parse(metadata.annotations?.[annotations.queuedAt] ?? metadata.creationTimestamp);
}

// Pipelines whose pod found no room: detected by the pods, annotated on the Jobs, retried after a growing delay.

const note = z.object({ at: z.iso.datetime(), tries: z.int().positive(), reason: z.string() });

/** When a Job last found no room, how often in a row, and why. */
type NoRoom = z.infer<typeof note>;

const longestReason = 600;
const firstWaitMs = 30_000;
const longestWaitMs = 600_000;

/** Reads the annotation of a Job; undefined if it cannot be read. */
export function readNoRoom({ metadata }: Job): NoRoom | undefined {
  const text = metadata.annotations?.[annotations.noRoom];
  if (text === undefined) return undefined;
  try {
    return note.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

/** The annotation after another failed try. */
export function formatNoRoom(job: Job, reason: string, now: number): string {
  const tries = (readNoRoom(job)?.tries ?? 0) + 1;
  return JSON.stringify({ at: new Date(now).toISOString(), tries, reason: reason.slice(0, longestReason) });
}

/** When a Job that found no room is tried again: after 30 s, doubling, at most 10 min. */
export function computeRetryTime({ at, tries }: NoRoom): number {
  return Date.parse(at) + Math.min(longestWaitMs, firstWaitMs * 2 ** Math.min(tries - 1, 10));
}

/** True while a Job that found no room waits before it is tried again. */
function isWaitingForRoom(job: Job, now: number): boolean {
  const found = readNoRoom(job);
  return found !== undefined && computeRetryTime(found) > now;
}

/** The cause in the scheduler's words, and what would make room. */
export function explainNoRoom(reason: string): string {
  const cause = reason
    .replace(/\s*(?:no new claims to deallocate,?)?\s*preemption: .*$/is, '')
    .replace(/[.,\s]*$/, '.');
  const freed = /\bToo many pods\b/i.test(cause)
    ? 'an app is deleted or suspended'
    : 'another build ends, or an app is deleted or suspended';
  return `Waiting for room: ${cause} There is room when ${freed}, or when the operator of this installation adds a node.`;
}

/** Since when a started Job has had no pod on a node, and the reason. */
interface RoomShortage {
  readonly since: number;
  readonly reason: string;
}

/** What keeps a started Job from a node: the scheduler's reason, or that the cluster makes no pod for it at all. */
export function findRoomless(job: Job, pods: readonly Pod[]): RoomShortage | undefined {
  const jobPods = pods.filter((pod) => isPodOfJob(pod, job));
  const started = job.status?.startTime;
  if (jobPods.length === 0) {
    if (started === undefined) return undefined;
    return {
      since: Date.parse(started),
      reason: 'the cluster has not created its pod; the resource quota of the builds namespace may be used up',
    };
  }
  for (const pod of jobPods.filter(isRoomless)) {
    const refused = findUnschedulable(pod);
    if (refused === undefined) continue;
    const since = Date.parse(refused.lastTransitionTime ?? pod.metadata.creationTimestamp);
    return { since, reason: refused.message ?? 'unschedulable' };
  }
  return undefined;
}

/** True when the Job made this pod. */
export function isPodOfJob({ metadata }: Pod, job: Job): boolean {
  return (metadata.ownerReferences ?? []).some(({ uid }) => uid === job.metadata.uid);
}

/** True when no node takes this pod. */
function isRoomless(pod: Pod): boolean {
  const { phase } = pod.status ?? {};
  return phase !== 'Failed' && phase !== 'Succeeded' && findUnschedulable(pod) !== undefined;
}
