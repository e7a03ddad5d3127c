// The work queue: keys to reconcile, each once, never by two workers, and with manners after failures.
import type { Clock } from './clock.ts';

/** Settings of a queue. */
export interface QueueOptions {
  /** Wait after a key's first failure, doubling with each; default 5. */
  baseDelayMs?: number;
  /** Most that a key waits for its own failures; default 1 000 000 (1000 s). */
  maxDelayMs?: number;
  /** Rate-limited adds a second over all keys, and how many may come at once; default 10 and 100. */
  bucket?: { perSecond: number; burst: number };
  clock?: Clock;
}

/** A queue of keys. A key added while it is worked on is worked on again afterwards, once. */
export interface WorkQueue {
  /** Adds a key, unless it waits already. */
  add(key: string): void;
  /** Adds a key after `ms`; of several such, the earliest counts. */
  addAfter(key: string, ms: number): void;
  /** Adds a key after its own backoff or the bucket's wait, whichever is longer, and counts a failure. */
  addRateLimited(key: string): void;
  /** Forgets the failures of a key. */
  forget(key: string): void;
  /** Failures of a key since it was last forgotten. */
  failures(key: string): number;
  /** The next key, when there is one; `undefined` once shut down and empty. Call `done` with it afterwards. */
  get(): Promise<string | undefined>;
  /** Says that the work on a key from `get` has ended. */
  done(key: string): void;
  /** Keys ready to be worked on (not those that wait or are in work). */
  readonly depth: number;
  /** Keys in work. */
  readonly active: number;
  /** Takes no more keys and drops those that wait for a time; `get` gives out what is ready, then `undefined`. */
  shutDown(): void;
  /** Drops what is ready too, and resolves when every key in work is done. */
  drain(): Promise<void>;
}

/** Makes an empty queue. */
export function createQueue(options: QueueOptions = {}): WorkQueue {
  throw new Error(`not implemented ${String(options.baseDelayMs)}`);
}
