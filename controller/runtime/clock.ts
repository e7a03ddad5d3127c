// Time as the runtime sees it, so that tests can turn it by hand.

/** A pending timer; `undefined` stands for none. */
export type Timer = object;

/** Time and timers. All durations are milliseconds. */
export interface Clock {
  /** Monotonic milliseconds since some fixed moment: for durations, never for timestamps. */
  now(): number;
  /** The wall clock, for timestamps that others read. */
  date(): Date;
  /** Calls `run` once after `ms`. The timer does not keep the process alive. */
  setTimer(run: () => void, ms: number): Timer;
  clearTimer(timer: Timer): void;
  /** Resolves after `ms`, or at once when `signal` is aborted (it never rejects). */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}
