// A clock that moves only when a test moves it, for tests of what waits.
import type { Clock, Timer } from '../../../lib/kubernetes/index.ts';

interface PendingTimer {
  at: number;
  order: number;
  run: () => void;
}

/** Time by hand. `date()` starts at the year 2026 and moves with `now()`. */
export class FakeClock implements Clock {
  #now = 0;
  #order = 0;
  readonly #timers = new Set<PendingTimer>();

  now(): number {
    return this.#now;
  }

  getDate(): Date {
    return new Date(Date.UTC(2026, 0, 1) + this.#now);
  }

  setTimer(run: () => void, ms: number): Timer {
    const timer = { at: this.#now + Math.max(ms, 0), order: this.#order++, run };
    this.#timers.add(timer);
    return timer;
  }

  clearTimer(timer: Timer): void {
    this.#timers.delete(timer as PendingTimer);
  }

  get pending(): number {
    return this.#timers.size;
  }

  /** Moves on by `ms`, firing each timer at its own time. */
  advance(ms: number): void {
    const end = this.#now + ms;
    for (;;) {
      const next = this.#next();
      if (next === undefined || next.at > end) break;
      this.#timers.delete(next);
      this.#now = Math.max(this.#now, next.at);
      next.run();
    }
    this.#now = end;
  }

  /** Moves to the next timer and fires it. False when there is none. */
  tick(): boolean {
    const next = this.#next();
    if (next === undefined) return false;
    this.advance(Math.max(next.at - this.#now, 0));
    return true;
  }

  #next(): PendingTimer | undefined {
    let first: PendingTimer | undefined;
    for (const timer of this.#timers) {
      if (first === undefined || timer.at < first.at || (timer.at === first.at && timer.order < first.order))
        first = timer;
    }
    return first;
  }
}
