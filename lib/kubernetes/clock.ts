// Time as the runtime sees it, so that tests can turn it by hand.

/** A pending timer. */
export type Timer = object;

/** Time and timers. All durations are milliseconds. */
export interface Clock {
  /** Monotonic milliseconds since some fixed moment: for durations, never for timestamps. */
  now(): number;
  /** The wall clock, for timestamps that others read. */
  date(): Date;
  /** Calls `run` once after `ms`. A pending timer keeps the process alive, so clear what is no longer wanted. */
  setTimer(run: () => void, ms: number): Timer;
  clearTimer(timer: Timer): void;
}

/** The longest that a timer of Node can wait; longer ones would fire at once. */
const LONGEST_TIMER_MS = 2_147_483_647;

/** Real time. */
export const systemClock: Clock = {
  now: () => performance.now(),
  date: () => new Date(),
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
export function jitter(ms: number, share: number, random: () => number = Math.random): number {
  return ms * (1 + share * (2 * random() - 1));
}
