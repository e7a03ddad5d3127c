// The queue of builds: the list of suspended Jobs, in turns by submitter. It is nowhere else.
import { annotations } from '../../crds/names.ts';
import { isFinished } from '../steps/build/verdict.ts';
import type { Job } from '../objects/kinds.ts';
import { isHeld } from './no-room.ts';

/** How many builds may run. */
export interface BuildLimits {
  /** At once. */
  readonly concurrency: number;
  /** At once of one submitter. */
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
 * Those that wait, in the order in which they will run: the first of each submitter, then the second of each. One who
 * has a build running comes after all who have none. `jobs`: finished ones too, since they say who had a turn when.
 */
export function inOrder(jobs: readonly Job[]): Job[] {
  const running = countBy(jobs.filter(isRunning));
  const served = lastStarts(jobs);
  const ahead = new Map<string, number>(running);
  return jobs
    .filter(isQueued)
    .sort(byArrival)
    .map((job) => {
      const submitter = submitterOf(job);
      const round = ahead.get(submitter) ?? 0;
      ahead.set(submitter, round + 1);
      return { job, round, since: Math.max(queuedAt(job), served.get(submitter) ?? 0) };
    })
    .sort((a, b) => a.round - b.round || a.since - b.since || byArrival(a.job, b.job))
    .map(({ job }) => job);
}

/** Those that can run now: within both limits, and without those that found no room a moment ago. */
export function next(jobs: readonly Job[], limits: BuildLimits, now: number): Job[] {
  const running = jobs.filter(isRunning);
  const taken = countBy(running);
  const chosen: Job[] = [];
  for (const job of inOrder(jobs)) {
    if (running.length + chosen.length >= limits.concurrency) break;
    const submitter = submitterOf(job);
    const own = taken.get(submitter) ?? 0;
    if (own >= limits.perSubmitter || isHeld(job, now)) continue;
    taken.set(submitter, own + 1);
    chosen.push(job);
  }
  return chosen;
}

/** Who submitted the app of a Job; one that was not submitted through the API stands for itself. */
export function submitterOf({ metadata }: Job): string {
  return metadata.annotations?.[annotations.submitter] ?? metadata.annotations?.[annotations.appUid] ?? metadata.name;
}

/** When each submitter's newest build was started. */
function lastStarts(jobs: readonly Job[]): Map<string, number> {
  const starts = new Map<string, number>();
  for (const job of jobs) {
    const submitter = submitterOf(job);
    const start = job.status?.startTime;
    if (start !== undefined) starts.set(submitter, Math.max(starts.get(submitter) ?? 0, Date.parse(start)));
  }
  return starts;
}

function countBy(jobs: readonly Job[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const job of jobs) counts.set(submitterOf(job), (counts.get(submitterOf(job)) ?? 0) + 1);
  return counts;
}

function byArrival(a: Job, b: Job): number {
  return queuedAt(a) - queuedAt(b) || (a.metadata.name < b.metadata.name ? -1 : 1);
}

/** Since when a Job waits: to the millisecond where it is noted; creationTimestamp has whole seconds. */
export function queuedAt({ metadata }: Job): number {
  return Date.parse(metadata.annotations?.[annotations.queuedAt] ?? metadata.creationTimestamp);
}
