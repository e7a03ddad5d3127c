// The list of past pipelines in status: newest first, each number once, bounded.
import { timestamp } from '../../objects/timestamp.ts';
import type { HistoryEntry } from '../../../crds/hosted-app.ts';
import { annotations } from '../../../crds/names.ts';
import { conditionOf, type Job } from '../../objects/kinds.ts';
import { present } from '../../objects/present.ts';

const limit = 20;

/** Number of a Job: counts up with each pipeline of its app. */
export function numberOf(job: Job): number {
  const number = Number(job.metadata.annotations?.[annotations.number]);
  return Number.isSafeInteger(number) && number > 0 ? number : 1;
}

/** Number of the next pipeline. */
export function nextNumber(
  history: readonly HistoryEntry[],
  jobs: readonly Job[],
  current: number | undefined,
): number {
  return 1 + Math.max(0, current ?? 0, ...history.map((entry) => entry.number), ...jobs.map(numberOf));
}

/** True when this very run of the Job is recorded already. */
export function isRecorded(history: readonly HistoryEntry[], job: Job): boolean {
  const number = numberOf(job);
  return history.some((entry) => entry.number === number);
}

/** The history with how this Job ended; unchanged when it is recorded already. */
export function record(
  history: readonly HistoryEntry[],
  job: Job,
  now: Date,
  end: Pick<HistoryEntry, 'result'> & {
    message?: string | undefined;
    image?: string | undefined;
    doubtful?: boolean | undefined;
  },
): HistoryEntry[] {
  if (isRecorded(history, job)) return [...history];
  const noted = job.metadata.annotations ?? {};
  const entry: HistoryEntry = present({
    number: numberOf(job),
    job: job.metadata.name,
    commit: noted[annotations.commit] ?? '',
    reason: noted[annotations.reason] ?? '',
    result: end.result,
    message: end.message?.slice(0, 1_000),
    image: end.image,
    doubtful: end.doubtful,
    startedAt: job.status?.startTime,
    finishedAt: endOf(job) ?? timestamp(now),
  });
  return [entry, ...history].toSorted((a, b) => b.number - a.number).slice(0, limit);
}

/** What became of the image that is to be released, by its newest build; images built before that were skipped. */
export function recordRelease(
  history: readonly HistoryEntry[],
  { image, commit }: { readonly image: string; readonly commit: string },
  release: NonNullable<HistoryEntry['release']>,
  message: string | undefined,
): HistoryEntry[] {
  const newest = history.find((entry) => entry.image === image && entry.commit === commit);
  return history.map((entry) => {
    if (entry === newest) {
      return present({ ...entry, release, releaseMessage: message?.slice(0, 1_000) });
    }
    return entry.release === 'Pending' ? { ...entry, release: 'Skipped' } : entry;
  });
}

function endOf({ status }: Job): string | undefined {
  return status?.completionTime ?? conditionOf(status?.conditions, 'Failed')?.lastTransitionTime;
}

/** Faults of the platform in a row at this Job, newest first. */
export function faultsOf(history: readonly HistoryEntry[], job: string): HistoryEntry[] {
  const own = history.filter((entry) => entry.job === job && entry.result !== 'Superseded');
  const other = own.findIndex((entry) => entry.result !== 'Faulted');
  return other < 0 ? own : own.slice(0, other);
}

/** True when a fault that the author could have staged was believed for this commit. */
export function isDoubted(history: readonly HistoryEntry[], commit: string): boolean {
  return history.some((entry) => entry.commit === commit && entry.doubtful === true);
}

/** How long to wait after that many faults, in milliseconds: 30 s, doubling, at most 30 min. */
export function faultDelayMs(faults: number): number {
  return Math.min(30 * 60_000, 30_000 * 2 ** Math.max(0, faults - 1));
}
