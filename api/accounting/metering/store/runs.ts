// Runs of a gateway: which of its processes counted a record, and which numbers of it are missing.
//
// A number restarts at 1 with the process, and a record says when its request began and ended. Within one process a
// request that has a lower number began before any request with a higher number ended. After a restart every request
// begins after all that the process before has logged had ended, for it is dead by then. So a record whose number is not
// above the highest, and which began after the last end of that run, is of a new process; one which began before that
// end is a late record, such as that of a long WebSocket. Only a clock that is set back at a restart deceives this: the
// first records of the new process then count to the old one, and show as missing from the new.
import type { GatewayRecord } from '../records/record.ts';
import { multirange, type Range, rangesOf } from './ranges.ts';

/** What is known of a run. */
export interface Run {
  /** Undefined where it has just been found. */
  readonly id: bigint | undefined;
  /** The highest number, and when its request began and ended. */
  readonly newest: bigint;
  readonly newestStartNs: bigint;
  readonly newestEndNs: bigint;
  /** The last end of any of its requests. */
  readonly lastEndNs: bigint;
}

/** Numbers of one run that are missing, between the beginnings of two requests. */
export interface Gap {
  readonly counters: Range;
  /** Undefined where it is the first of the run. */
  readonly afterNs: bigint | undefined;
  readonly beforeNs: bigint;
}

/** What the accounting reads of a record. One that is lost says that its number was given out, and no more. */
type NumberedRequest = Pick<GatewayRecord, 'counter' | 'startNs' | 'endNs' | 'isLost'>;

/** A run with the records of a batch. */
export interface RunBatch<Record extends NumberedRequest> {
  readonly before: Run | undefined;
  readonly after: Run;
  readonly records: readonly Record[];
}

/** Sorts records, as they came, into the runs of their gateway, the oldest run first. */
export function assignRuns<Record extends NumberedRequest>(
  runs: readonly Run[],
  records: readonly Record[],
): RunBatch<Record>[] {
  const batches = runs.map((run) => ({ before: run as Run | undefined, after: run, records: [] as Record[] }));
  for (const record of records) {
    let batch = batches.find(({ after }) => record.startNs <= after.lastEndNs);
    const last = batches.at(-1);
    if (batch === undefined && last !== undefined && record.counter > last.after.newest) batch = last;
    if (batch === undefined) {
      batch = { before: undefined, after: runOf(record), records: [] };
      batches.push(batch);
    }
    batch.after = extended(batch.after, record);
    batch.records.push(record);
  }
  return batches.filter((batch) => batch.records.length > 0);
}

function runOf({ counter, startNs, endNs }: NumberedRequest): Run {
  return { id: undefined, newest: counter, newestStartNs: startNs, newestEndNs: endNs, lastEndNs: endNs };
}

function extended(run: Run, { counter, startNs, endNs }: NumberedRequest): Run {
  const lastEndNs = endNs > run.lastEndNs ? endNs : run.lastEndNs;
  return counter > run.newest
    ? { ...run, newest: counter, newestStartNs: startNs, newestEndNs: endNs, lastEndNs }
    : { ...run, lastEndNs };
}

/** The numbers between the highest before and the highest now that the batch does not have. */
export function gapsOf({ before, records }: RunBatch<NumberedRequest>): Gap[] {
  const newer = records
    .filter(({ counter }) => counter > (before?.newest ?? 0n))
    .sort((a, b) => Number(a.counter - b.counter));
  let previous = { counter: before?.newest ?? 0n, startNs: before?.newestStartNs };
  return newer.flatMap(({ counter, startNs, isLost }) => {
    const { counter: last, startNs: afterNs } = previous;
    previous = { counter, startNs };
    const end = isLost ? counter : counter - 1n;
    return end > last ? [{ counters: [last + 1n, end] as const, afterNs, beforeNs: startNs }] : [];
  });
}

/** The numbers of the records that came, as PostgreSQL reads them. */
export function countersOf(records: readonly NumberedRequest[]): string {
  return multirange(rangesOf(records.filter(({ isLost }) => !isLost).map(({ counter }) => counter)));
}
