// A work queue with per-key exponential backoff: each key is queued once and is never with two workers at the same time.
import { type Clock, type Timer, systemClock } from '../clock.ts';

/** Settings of a queue. */
export interface QueueOptions {
  /** Wait after a key's first failure, doubling with each; default 5. */
  baseDelayMs?: number;
  /** Maximum backoff of a key; default 1 000 000 (1000 s). */
  maxDelayMs?: number;
  /** Rate-limited adds per second over all keys, and their burst; default 10 and 100. */
  bucket?: { perSecond: number; burst: number };
  clock?: Clock;
}

/** A queue of keys. A key added while it is worked on is worked on again afterwards, once. */
export interface WorkQueue {
  /** Adds a key, unless it waits already. */
  add(key: string): void;
  /** Adds a key that is worked on only when no other is ready, unless it waits already. */
  addInBackground(key: string): void;
  /** Adds a key in the background after `ms`. If it waits already, the earlier time counts. */
  addAfter(key: string, ms: number): void;
  /**
   * Adds a key in the background after its own backoff, the bucket's wait, or `leastMs`, whichever is longest, and counts a
   * failure.
   */
  addRateLimited(key: string, leastMs?: number): void;
  /** Forgets the failures of a key. */
  forget(key: string): void;
  /** Failures of a key since it was last forgotten. */
  countFailures(key: string): number;
  /** The next key, when there is one; `undefined` once shut down and empty. Call `finish` with it afterwards. */
  get(): Promise<string | undefined>;
  /** Marks the work on a key from `get` as ended. */
  finish(key: string): void;
  /** Keys ready to be worked on (not those that wait or are in work). */
  readonly depth: number;
  /** Keys in work. */
  readonly active: number;
  /** Accepts no more keys and drops those that wait for a time; `get` returns what is ready, then `undefined`. */
  shutDown(): void;
  /** Drops what is ready too, and resolves when every key in work is done. */
  drain(): Promise<void>;
}

/** Makes an empty queue. */
export function createQueue(options: QueueOptions = {}): WorkQueue {
  return new KeyQueue(options);
}

class KeyQueue implements WorkQueue {
  readonly #clock: Clock;
  readonly #baseDelayMs: number;
  readonly #maxDelayMs: number;
  readonly #bucket: Bucket;
  /** Keys ready to be worked on, oldest first. A key is here at most once, and never while in work. */
  readonly #ready = new Fifo();
  /** Ready keys that were only added in the background, oldest first. */
  readonly #background = new Set<string>();
  /** Keys that need work: those ready, and those in work that must be worked on again. */
  readonly #dirty = new Set<string>();
  readonly #processing = new Set<string>();
  readonly #waiting = new Map<string, { at: number; timer: Timer }>();
  readonly #failures = new Map<string, number>();
  readonly #takers: ((key: string | undefined) => void)[] = [];
  #drained: PromiseWithResolvers<undefined> | undefined;
  #closed = false;

  constructor(options: QueueOptions) {
    const { perSecond, burst } = options.bucket ?? { perSecond: 10, burst: 100 };
    this.#clock = options.clock ?? systemClock;
    this.#baseDelayMs = options.baseDelayMs ?? 5;
    this.#maxDelayMs = options.maxDelayMs ?? 1_000_000;
    this.#bucket = new Bucket(perSecond, burst, this.#clock.now());
  }

  add(key: string): void {
    if (this.#background.delete(key)) this.#ready.push(key);
    if (this.#closed || this.#dirty.has(key)) return;
    this.#dirty.add(key);
    if (!this.#processing.has(key)) this.#offer(key);
  }

  addInBackground(key: string): void {
    if (this.#closed || this.#dirty.has(key)) return;
    if (this.#takers.length > 0 || this.#processing.has(key)) {
      this.add(key);
      return;
    }
    this.#dirty.add(key);
    this.#background.add(key);
  }

  addAfter(key: string, ms: number): void {
    if (this.#closed) return;
    if (ms <= 0) {
      this.add(key);
      return;
    }
    const at = this.#clock.now() + ms;
    const earlier = this.#waiting.get(key);
    if (earlier !== undefined && earlier.at <= at) return;
    if (earlier !== undefined) this.#clock.clearTimer(earlier.timer);
    this.#waiting.set(key, {
      at,
      timer: this.#clock.setTimer(() => {
        this.#addWhenElapsed(key, at);
      }, ms),
    });
  }

  addRateLimited(key: string, leastMs = 0): void {
    if (this.#closed) return;
    const failures = this.countFailures(key);
    this.#failures.set(key, failures + 1);
    // The exponent is bounded so that the product stays finite, whatever the count.
    const backoff = Math.min(this.#baseDelayMs * 2 ** Math.min(failures, 60), this.#maxDelayMs);
    this.addAfter(key, Math.max(backoff, this.#bucket.reserve(this.#clock.now()), leastMs));
  }

  forget(key: string): void {
    this.#failures.delete(key);
  }

  countFailures(key: string): number {
    return this.#failures.get(key) ?? 0;
  }

  get(): Promise<string | undefined> {
    const [background] = this.#background;
    const key = this.#ready.shift() ?? background;
    if (key !== undefined) {
      this.#begin(key);
      return Promise.resolve(key);
    }
    if (this.#closed) return Promise.resolve(undefined);
    return new Promise((resolve) => this.#takers.push(resolve));
  }

  finish(key: string): void {
    if (!this.#processing.delete(key)) return;
    if (this.#dirty.has(key)) this.#offer(key);
    if (this.#processing.size === 0) this.#drained?.resolve(undefined);
  }

  get depth(): number {
    return this.#ready.length + this.#background.size;
  }

  get active(): number {
    return this.#processing.size;
  }

  shutDown(): void {
    this.#closed = true;
    for (const { timer } of this.#waiting.values()) this.#clock.clearTimer(timer);
    this.#waiting.clear();
    for (const take of this.#takers.splice(0)) take(undefined);
  }

  async drain(): Promise<void> {
    this.shutDown();
    this.#ready.clear();
    this.#background.clear();
    this.#dirty.clear();
    if (this.#processing.size === 0) return;
    this.#drained ??= Promise.withResolvers<undefined>();
    await this.#drained.promise;
  }

  #offer(key: string): void {
    const take = this.#takers.shift();
    if (take === undefined) {
      this.#ready.push(key);
      return;
    }
    this.#begin(key);
    take(key);
  }

  #begin(key: string): void {
    this.#dirty.delete(key);
    this.#background.delete(key);
    this.#processing.add(key);
  }

  /**
   * A long wait is split, because the delay of a timer is bounded. What is only to be looked at again comes after changes:
   * after a start, the timers of all apps elapse at about the same time.
   */
  #addWhenElapsed(key: string, at: number): void {
    this.#waiting.delete(key);
    const remainingMs = at - this.#clock.now();
    if (remainingMs > 0) this.addAfter(key, remainingMs);
    else this.addInBackground(key);
  }
}

/** A token bucket that can go into debt: `reserve` takes a token and returns how long to wait for it. */
class Bucket {
  readonly #perMs: number;
  readonly #burst: number;
  #tokens: number;
  #at: number;

  constructor(perSecond: number, burst: number, now: number) {
    this.#perMs = perSecond / 1000;
    this.#burst = burst;
    this.#tokens = burst;
    this.#at = now;
  }

  reserve(now: number): number {
    this.#tokens = Math.min(this.#burst, this.#tokens + (now - this.#at) * this.#perMs) - 1;
    this.#at = now;
    return this.#tokens >= 0 ? 0 : -this.#tokens / this.#perMs;
  }
}

/** A first-in-first-out list whose `shift` does not move the rest. */
class Fifo {
  #items: string[] = [];
  #head = 0;

  get length(): number {
    return this.#items.length - this.#head;
  }

  push(item: string): void {
    this.#items.push(item);
  }

  shift(): string | undefined {
    if (this.#head >= this.#items.length) return undefined;
    const item = this.#items[this.#head];
    this.#head += 1;
    if (this.#head > 1024 && this.#head * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return item;
  }

  clear(): void {
    this.#items = [];
    this.#head = 0;
  }
}
