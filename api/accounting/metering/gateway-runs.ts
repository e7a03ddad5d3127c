// Sorts records into runs of a gateway process, and finds the request numbers that are missing.
//
// A gateway numbers its requests from 1 each time it starts. Within one process, a request with a lower number began before
// any request with a higher number ended. After a restart, every request begins after everything that the previous process
// logged had ended. So a record whose number is not above the highest, and which began after the last end of that run, belongs
// to a new process; one that began before that end is a late record, such as that of a long WebSocket. Only a clock that is set
// back at a restart breaks this: the first records of the new process are counted in the old run, and are missing in the new one.
import type { GatewayRecord } from './gateway-record.ts';

/** The known state of a run. */
export interface Run {
  /** Undefined for a new run. */
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
      batch = { before: undefined, after: createRun(record), records: [] };
      batches.push(batch);
    }
    batch.after = extendRun(batch.after, record);
    batch.records.push(record);
  }
  return batches.filter((batch) => batch.records.length > 0);
}

function createRun({ counter, startNs, endNs }: NumberedRequest): Run {
  return { id: undefined, newest: counter, newestStartNs: startNs, newestEndNs: endNs, lastEndNs: endNs };
}

function extendRun(run: Run, { counter, startNs, endNs }: NumberedRequest): Run {
  const lastEndNs = endNs > run.lastEndNs ? endNs : run.lastEndNs;
  return counter > run.newest
    ? { ...run, newest: counter, newestStartNs: startNs, newestEndNs: endNs, lastEndNs }
    : { ...run, lastEndNs };
}

/** The numbers between the highest before and the highest now that the batch does not have. */
export function findGaps({ before, records }: RunBatch<NumberedRequest>): Gap[] {
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
export function formatCounters(records: readonly NumberedRequest[]): string {
  return formatMultirange(toRanges(records.filter(({ isLost }) => !isLost).map(({ counter }) => counter)));
}

/** `[first, last]`, both included. */
export type Range = readonly [first: bigint, last: bigint];

/** Returns the smallest set of ranges that covers the numbers, in order. */
export function toRanges(numbers: Iterable<bigint>): Range[] {
  const ranges: [bigint, bigint][] = [];
  for (const number of [...numbers].sort(compareAscending)) {
    const last = ranges.at(-1);
    if (last !== undefined && number <= last[1] + 1n) last[1] = number;
    else ranges.push([number, number]);
  }
  return ranges;
}

/** Like `{[1,4),[7,8)}`. */
export function formatMultirange(ranges: readonly Range[]): string {
  return `{${ranges.map(([first, last]) => `[${first.toString()},${(last + 1n).toString()})`).join(',')}}`;
}

function compareAscending(a: bigint, b: bigint): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
