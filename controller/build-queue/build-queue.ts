// Resumes suspended pipeline Jobs within the build limits, and takes the slot back if the pod finds no node.
import { Gauge, type Registry } from 'prom-client';
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
import { jobs as jobResource, type Job, type Pod } from '../objects/kinds.ts';
import type { Space } from '../space/space.ts';
import {
  computeRetryTime,
  findRoomless,
  formatNoRoom,
  isPodOfJob,
  isQueued,
  isRoomless,
  isRunning,
  readNoRoom,
  readQueuedAt,
  selectNext,
  type BuildLimits,
} from './order.ts';

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
