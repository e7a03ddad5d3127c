// The build queue: the list of suspended Jobs, ordered in turns by submitter. No other record of it exists.
import { z } from 'zod';
import { annotations } from '../../crds/names.ts';
import { findUnschedulable, isFinished, type Job, type Pod } from '../objects/kinds.ts';

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
export function readSubmitter({ metadata }: Job): string {
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
export function readQueuedAt({ metadata }: Job): number {
  return Date.parse(metadata.annotations?.[annotations.queuedAt] ?? metadata.creationTimestamp);
}

// Pipelines whose pod found no room: detected by the pods, annotated on the Jobs, retried after a growing delay.

const note = z.object({ at: z.iso.datetime(), tries: z.int().positive(), reason: z.string() });

/** When a Job last found no room, how often in a row, and why. */
export type NoRoom = z.infer<typeof note>;

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
export function isWaitingForRoom(job: Job, now: number): boolean {
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
export interface RoomShortage {
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
export function isRoomless(pod: Pod): boolean {
  const { phase } = pod.status ?? {};
  return phase !== 'Failed' && phase !== 'Succeeded' && findUnschedulable(pod) !== undefined;
}
