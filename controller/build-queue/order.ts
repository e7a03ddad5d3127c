// The queue of builds: the list of suspended Jobs, oldest first. It is nowhere else.
import { annotations } from '../../crds/names.ts';
import { isFinished } from '../steps/build/verdict.ts';
import type { Job } from '../objects/kinds.ts';

/** True when the Job waits for its turn. */
export function isQueued(job: Job): boolean {
  return job.spec?.suspend === true && !isFinished(job) && job.metadata.deletionTimestamp === undefined;
}

/** True when the Job takes one of the slots. */
export function isRunning(job: Job): boolean {
  return job.spec?.suspend !== true && !isFinished(job) && job.metadata.deletionTimestamp === undefined;
}

/** Those that wait, in the order in which they will run. */
export function inOrder(jobs: readonly Job[]): Job[] {
  return jobs
    .filter(isQueued)
    .sort((a, b) => compare(queuedAt(a), queuedAt(b)) || compare(a.metadata.name, b.metadata.name));
}

function queuedAt({ metadata }: Job): string {
  return metadata.annotations?.[annotations.queuedAt] ?? metadata.creationTimestamp;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}
