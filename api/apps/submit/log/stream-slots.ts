// The slots of log streams: how many may be open in this process, and how many of them by one caller.
import { Problem } from '../../../../lib/problem.ts';
import { tooManyStreams } from '../problems.ts';

export class StreamSlots {
  readonly #max: number;
  /** The streams of one caller leave some for the others. */
  readonly #maxPerCaller: number;
  readonly #changed: (taken: number) => void;
  /** Slots by caller; a caller without any is not in it. */
  readonly #callers = new Map<string, number>();
  #taken = 0;

  /** `changed` hears how many are taken. */
  constructor(max: number, changed: (taken: number) => void) {
    this.#max = max;
    this.#maxPerCaller = Math.ceil(max / 4);
    this.#changed = changed;
  }

  /** @throws Problem (too-many-streams) when there is none for this caller */
  check(caller: string): void {
    if (this.#taken >= this.#max)
      throw refusal(
        `This replica has reached its limit of ${this.#max} log streams. Try again in 10 seconds, or poll /api/submit-status.`,
      );
    if ((this.#callers.get(caller) ?? 0) >= this.#maxPerCaller)
      throw refusal(
        `You have ${this.#maxPerCaller} log streams open, which is the limit per caller. Close one, or poll /api/submit-status.`,
      );
  }

  /** @returns a function that gives the slot back, once. @throws Problem (too-many-streams) */
  take(caller: string): () => void {
    this.check(caller);
    this.#count(caller, 1);
    let held = true;
    return () => {
      if (held) this.#count(caller, -1);
      held = false;
    };
  }

  #count(caller: string, change: 1 | -1): void {
    this.#taken += change;
    const own = (this.#callers.get(caller) ?? 0) + change;
    if (own === 0) this.#callers.delete(caller);
    else this.#callers.set(caller, own);
    this.#changed(this.#taken);
  }
}

function refusal(detail: string): Problem {
  return new Problem(tooManyStreams, detail, { headers: { 'retry-after': '10' } });
}
