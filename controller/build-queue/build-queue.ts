// Lets suspended Jobs run, in turns by submitter, and takes the slot back from one whose pod finds no room.
import type { Registry } from 'prom-client';
import { annotations, labels } from '../../crds/names.ts';
import {
  createController,
  done,
  isApiStatus,
  requeueAfter,
  watches,
  type Client,
  type Controller,
  type Logger,
  type ReconcileResult,
  type Store,
} from '../../lib/kubernetes/index.ts';
import { jobs as jobResource, type Job, type Pod } from '../objects/kinds.ts';
import { queueMetrics, type QueueView } from './metrics.ts';
import { isPodOf, isRoomless, noRoomOf, noted, roomless, triedAgainAt } from './no-room.ts';
import type { Space } from '../space/space.ts';
import { isQueued, isRunning, next, queuedAt, type BuildLimits } from './order.ts';

export interface BuildQueueOptions {
  readonly client: Client;
  readonly namespace: string;
  readonly limits: BuildLimits;
  /** How long the pod of a started build may wait for a node. */
  readonly schedulingMs: number;
  readonly jobs: Store<Job>;
  /** Pods of a Job's app. */
  readonly podsOf: (job: Job) => readonly Pod[];
  /** Absent: builds do not wait for disk space. */
  readonly space?: Space | undefined;
  readonly log: Logger;
  readonly registry: Registry;
  readonly now?: () => number;
}

const key = 'queue';

/**
 * Makes the controller. It has one key, so it never works twice at once, and lists from the server, so it never counts
 * from a stale cache.
 */
export function createBuildQueue(options: BuildQueueOptions): Controller {
  const { client, namespace, limits, space, log, registry, now = Date.now } = options;
  queueMetrics(registry, () => viewOf(options, now()));

  async function patch(job: Job, change: object, signal: AbortSignal): Promise<void> {
    const { uid, resourceVersion } = job.metadata;
    const body = { metadata: { uid, resourceVersion, ...change }, spec: { suspend: !isQueued(job) } };
    await client.patch(jobResource, job.metadata, body, { type: 'application/merge-patch+json', signal });
  }

  /** Those that keep their slots. A Job that changed meanwhile is looked at again when the change arrives. */
  async function withRoom(all: readonly Job[], log: Logger, signal: AbortSignal): Promise<Job[]> {
    const kept: Job[] = [];
    for (const job of all) {
      const found = isRunning(job) ? roomless(job, options.podsOf(job)) : undefined;
      if (found === undefined || now() - found.since < options.schedulingMs) {
        kept.push(job);
        continue;
      }
      try {
        await patch(job, { annotations: { [annotations.noRoom]: noted(job, found.reason, now()) } }, signal);
        log.warn({ job: job.metadata.name, reason: found.reason }, 'build found no room, slot given back');
      } catch (error) {
        if (!isApiStatus(error, 409)) throw error;
        kept.push(job);
      }
    }
    return kept;
  }

  return createController({
    name: 'build-queue',
    workers: 1,
    // Every build waits for this one key: once the cause of its failures is gone, builds start within half a minute.
    queue: { maxDelayMs: 30_000 },
    log,
    registry,
    watches: [
      watches(options.jobs, () => [key], { changed: (job, old) => isRunning(job) !== isRunning(old) }),
      ...(space === undefined ? [] : [space.changes(() => [key])]),
    ],
    async reconcile(_key, { signal, log: context }) {
      const cached = options.jobs.list();
      if (!cached.some((job) => isQueued(job) || isRunning(job))) return done;
      const unfinished: Job[] = [];
      // Most Jobs have done their work well and are kept for their logs; the server need not send them.
      const selection = { namespace, labelSelector: labels.app, fieldSelector: 'status.successful=0' };
      for await (const job of client.listAll(jobResource, { ...selection, signal })) unfinished.push(job);
      const present = new Set(unfinished.map(({ metadata }) => metadata.uid));
      // Of the others the cache says who had a turn when.
      const past = cached.filter((job) => !present.has(job.metadata.uid) && !isQueued(job) && !isRunning(job));
      const all = [...past, ...(await withRoom(unfinished, context, signal))];
      // What runs goes on; what would only fill the disk further waits, and is woken when there is space.
      for (const job of space?.shortage() === undefined ? next(all, limits, now()) : []) {
        await patch(job, {}, signal);
        context.info({ job: job.metadata.name }, 'build started');
      }
      return lookAgain(all, options, now());
    },
  });
}

/** Those that wait and for how long, those that run, and those that could do so if a node had room. */
function viewOf({ jobs, podsOf }: Pick<BuildQueueOptions, 'jobs' | 'podsOf'>, now: number): QueueView {
  const all = jobs.list();
  const running = all.filter(isRunning);
  const queued = all.filter(isQueued);
  const roomlessNow = running.filter((job) => podsOf(job).some((pod) => isPodOf(pod, job) && isRoomless(pod)));
  return {
    counts: {
      queued: queued.length,
      running: running.length,
      without_room: roomlessNow.length + queued.filter((job) => noRoomOf(job) !== undefined).length,
    },
    oldestWaitSeconds: Math.max(0, ...queued.map((job) => (now - queuedAt(job)) / 1000)),
  };
}

/** When a Job that found no room is due, or it is time to see whether those that run have found some. */
function lookAgain(jobs: readonly Job[], { schedulingMs, podsOf }: BuildQueueOptions, now: number): ReconcileResult {
  const due = jobs.flatMap((job) => {
    if (isRunning(job)) return [(roomless(job, podsOf(job))?.since ?? now) + schedulingMs];
    const found = isQueued(job) ? noRoomOf(job) : undefined;
    return found === undefined ? [] : [triedAgainAt(found)];
  });
  const later = due.filter((time) => time > now);
  return later.length === 0 ? done : requeueAfter(Math.min(...later) - now);
}
