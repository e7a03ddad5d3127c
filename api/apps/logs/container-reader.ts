// Reads the log of one container from a position, over restarts of the container and of the connection: each line once, in
// the order in which the container printed it.
import { setTimeout as sleep } from 'node:timers/promises';
import { splitLog, toHarmlessText } from '../../../lib/harmless-text.ts';
import type { LogPart, OpenedLog, OpenLog } from '../submit/follow-log.ts';
import type { LogPosition } from './log-store.ts';

/** What a line is when it is read, before secrets are masked. */
export interface ReadLine {
  /** RFC 3339 in UTC with nine digits, so that times compare as text. */
  readonly at: string;
  readonly text: string;
}

/** Longest line in characters while it is read. It is masked before it is cut, so that no secret is cut first. */
export const longestReadLine = 128 * 1024;

/** Longest line in bytes that is stored. */
const longestStoredLine = 16 * 1024;

/** Reads a line as the kubelet sends it: a time, a space, and what was printed. undefined if it is none of the container. */
export function parseLogLine(line: string): ReadLine | undefined {
  const [whole, seconds, fraction = '', zone] =
    /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)(?: |$)/.exec(line) ?? [];
  if (whole === undefined || seconds === undefined) return undefined;
  const utc = zone === 'Z' ? seconds : new Date(`${seconds}${zone ?? 'Z'}`).toISOString().slice(0, 19);
  return { at: `${utc}.${fraction.padEnd(9, '0')}Z`, text: line.slice(whole.length) };
}

/** The same form for any time. */
export function toLogTime(time: Date): string {
  return time.toISOString().replace(/Z$/, '000000Z');
}

/** What a printed line becomes: a carriage return ends a line too, since progress bars use it. An empty line stays one. */
export function listHarmlessLines(text: string): string[] {
  const parts = text.split(/\r+/).filter((part) => part !== '');
  return parts.length === 0 ? [''] : parts.map((part) => toHarmlessText(part, longestReadLine));
}

/** Cuts a masked line to what is stored of one. */
export function truncateLine(line: string): string {
  const bytes = Buffer.from(line);
  if (bytes.length <= longestStoredLine) return line;
  const kept = new TextDecoder().decode(bytes.subarray(0, longestStoredLine), { stream: true });
  return `${kept} … (truncated)`;
}

/** Finds the lines after a position in a log that is read again from somewhere before it. */
export class LogCursor {
  #position: LogPosition | undefined;
  /** Lines with the time of the position that are still to be skipped; undefined once the position was found. */
  #toSkip: number | undefined;

  constructor(position: LogPosition | undefined) {
    this.#position = position;
    this.begin();
  }

  get position(): LogPosition | undefined {
    return this.#position;
  }

  /** Call before a log is read again. */
  begin(): void {
    this.#toSkip = this.#position?.count;
  }

  /**
   * Moves to the next line. False if it was read before.
   *
   * A line is found by its time and its number among those with that time, in the order of the log: lines of standard output
   * and standard error can be in another order than their times.
   */
  advance(at: string): boolean {
    const position = this.#position;
    if (position !== undefined && this.#toSkip !== undefined) {
      if (at === position.at) {
        this.#toSkip -= 1;
        if (this.#toSkip <= 0) this.#toSkip = undefined;
        return false;
      }
      // The line of the position may be gone with the rest of its file. Then times alone say what is new.
      if (at <= position.maxAt) return false;
      this.#toSkip = undefined;
    }
    this.#position = {
      at,
      count: position?.at === at ? position.count + 1 : 1,
      maxAt: position === undefined || at > position.maxAt ? at : position.maxAt,
    };
    return true;
  }

  /** From when to ask for the log, in whole seconds. Lines just before the position may come after it in the log. */
  get since(): string | undefined {
    if (this.#position === undefined) return undefined;
    const ms = Date.parse(`${this.#position.at.slice(0, 19)}Z`) - 2_000;
    return new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z');
  }
}

/** What is known of a container while its log is read. */
export interface ContainerState {
  /** Identifies its present or last run; undefined before the first. */
  readonly run: string | undefined;
  readonly isRunning: boolean;
  /** Whether it will not run again. */
  readonly isOver: boolean;
}

export interface ReaderOptions {
  readonly pod: string;
  readonly container: string;
  readonly cursor: LogCursor;
  readonly openLog: OpenLog;
  readonly getState: () => ContainerState;
  /** Resolves at the next change of the pod. */
  readonly waitForChange: () => Promise<unknown>;
  /** Takes a line that is new. Resolves when the next one may be read. `isLive`: it was printed after the log was opened. */
  readonly take: (line: ReadLine, isLive: boolean) => Promise<void> | undefined;
  readonly signal: AbortSignal;
  /** Shortest and longest wait before a log is opened again; default [500, 30 000] ms. */
  readonly retryMs?: readonly [number, number];
}

const defaultRetryMs: readonly [number, number] = [500, 30_000];

/**
 * Reads until the container will not run again and its log was read to the end, its pod is gone, or the signal is aborted.
 *
 * @throws ApiError if logs must not be read
 */
export async function readContainer(options: ReaderOptions): Promise<void> {
  const { cursor, getState, signal } = options;
  let failures = 0;
  while (!signal.aborted) {
    const state = getState();
    const before = cursor.position;
    try {
      const result = await readRuns(options);
      // The kubelet answers 404 for a pod that it has not seen yet, too: the state alone says that there is no more to read.
      if (state.isOver && result !== 'waiting') return;
    } catch (error) {
      if (isRefusal(error)) throw error;
    }
    failures = cursor.position === before ? failures + 1 : 0;
    await waitUntilChanged(options, state, failures);
  }
}

/**
 * Reads the rest of the previous run, then the present one to its end. A run that ended while its log was not being read is
 * only in the previous log, and the state of the pod comes too late to say so. The present log is opened first: if it is
 * that of a new run, the previous one is then surely that of the run before it.
 */
async function readRuns(options: ReaderOptions): Promise<OpenedLog['state']> {
  const ending = new AbortController();
  const signal = AbortSignal.any([options.signal, ending.signal]);
  try {
    const present = await openFrom(options, {}, signal);
    const openedAt = new Date();
    if (present.state !== 'open') return present.state;
    const previous = await openFrom(options, { isFinite: true, previous: true }, signal);
    if (previous.state === 'open') await takeNew(options, previous.bytes, openedAt);
    await takeNew(options, present.bytes, openedAt);
    return 'open';
  } finally {
    ending.abort();
  }
}

function openFrom(
  { pod, container, cursor, openLog }: ReaderOptions,
  part: LogPart,
  signal: AbortSignal,
): Promise<OpenedLog> {
  const { since } = cursor;
  return openLog(pod, container, signal, { ...part, timestamps: true, ...(since === undefined ? {} : { since }) });
}

async function takeNew(
  { cursor, take }: ReaderOptions,
  bytes: AsyncIterable<Uint8Array>,
  openedAt: Date,
): Promise<void> {
  cursor.begin();
  let liveFrom = toLogTime(openedAt);
  for await (const text of splitLog(bytes, /\n/, longestReadLine)) {
    const line = parseLogLine(text);
    if (line === undefined || !cursor.advance(line.at)) continue;
    const waiting = take(line, line.at > liveFrom);
    if (waiting === undefined) continue;
    await waiting;
    // What was printed during the wait is no more live than what was printed before the log was opened.
    liveFrom = toLogTime(new Date());
  }
}

/** Waits longer after each failure, until the container starts or ends. A pod changes often, so that each wait has a minimum. */
async function waitUntilChanged(
  { getState, waitForChange, signal, retryMs: [firstMs, longestMs] = defaultRetryMs }: ReaderOptions,
  { run, isRunning, isOver }: ContainerState,
  failures: number,
): Promise<void> {
  // Where a run has ended, there is nothing to read before the next one.
  const isPaused = run !== undefined && !isRunning;
  const ms = isPaused ? longestMs : Math.min(longestMs, firstMs * 2 ** Math.min(failures, 10));
  const until = performance.now() + ms;
  await sleep(Math.min(firstMs, ms), undefined, { signal }).catch(() => undefined);
  while (!signal.aborted && performance.now() < until) {
    const now = getState();
    if (now.run !== run || now.isRunning !== isRunning || now.isOver !== isOver) return;
    const ending = new AbortController();
    const either = AbortSignal.any([signal, ending.signal]);
    const rest = sleep(Math.max(0, until - performance.now()), undefined, { signal: either });
    await Promise.race([waitForChange(), rest.catch(() => undefined)]);
    ending.abort();
  }
}

function isRefusal(error: unknown): boolean {
  const { status } = error as { readonly status?: unknown };
  return status === 401 || status === 403;
}
