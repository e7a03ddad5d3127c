// Abstracts time, so that tests can control it, and bounds how long a call may take.
import { ApiError } from './errors.ts';

/** A pending timer. */
export type Timer = object;

/** Time and timers. All durations are milliseconds. */
export interface Clock {
  /** Monotonic milliseconds since some fixed moment: for durations, never for timestamps. */
  now(): number;
  /** The wall clock, for timestamps that others read. */
  getDate(): Date;
  /** Calls `run` once after `ms`. A pending timer keeps the process alive, so clear what is no longer wanted. */
  setTimer(run: () => void, ms: number): Timer;
  clearTimer(timer: Timer): void;
}

/** The longest delay of a timer in Node; a longer one would fire immediately. */
const LONGEST_TIMER_MS = 2_147_483_647;

/** Real time. */
export const systemClock: Clock = {
  now: () => performance.now(),
  getDate: () => new Date(),
  setTimer: (run, ms) => setTimeout(run, Math.min(Math.max(ms, 0), LONGEST_TIMER_MS)),
  clearTimer: (timer) => {
    clearTimeout(timer as NodeJS.Timeout);
  },
};

/** Resolves after `ms`, or as soon as `signal` is aborted; it never rejects. */
export function sleep(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted === true) {
      resolve();
      return;
    }
    const end = (): void => {
      clock.clearTimer(timer);
      signal?.removeEventListener('abort', end);
      resolve();
    };
    const timer = clock.setTimer(end, ms);
    signal?.addEventListener('abort', end);
  });
}

/** `ms` with up to `share` of it added or subtracted at random. */
export function applyJitter(ms: number, share: number, random: () => number = Math.random): number {
  return ms * (1 + share * (2 * random() - 1));
}

/** A signal with a deadline that can be moved. */
export interface Deadline {
  signal: AbortSignal;
  /** Gives `ms` from now on. */
  set: (ms: number) => void;
  clear: () => void;
}

/** A signal that follows `parent` and ends after `ms` with an `ApiError` `Timeout`. */
export function startDeadline(parent: AbortSignal | undefined, ms: number, operation: string): Deadline {
  const controller = new AbortController();
  const follow = (): void => {
    controller.abort(parent?.reason);
  };
  const start = (limitMs: number): NodeJS.Timeout =>
    setTimeout(() => {
      controller.abort(new ApiError(0, 'Timeout', `No complete answer within ${limitMs} ms: ${operation}.`));
    }, limitMs);
  let timer = start(ms);
  if (parent?.aborted === true) follow();
  else parent?.addEventListener('abort', follow);
  return {
    signal: controller.signal,
    set(limitMs) {
      clearTimeout(timer);
      timer = start(limitMs);
    },
    clear() {
      clearTimeout(timer);
      parent?.removeEventListener('abort', follow);
    },
  };
}
