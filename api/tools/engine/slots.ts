// Slots for calls in progress: a limit for this process and one per caller.
import { Problem } from '../../../lib/problem.ts';
import { tooManyCalls, toolBusy } from '../problems.ts';

export interface SlotsOptions {
  readonly maxConcurrent: number;
  readonly maxConcurrentPerCaller: number;
}

export class Slots {
  readonly #options: SlotsOptions;
  /** Calls in progress by caller; a caller without any is not in it. */
  readonly #callers = new Map<string, number>();
  #taken = 0;

  constructor(options: SlotsOptions) {
    this.#options = options;
  }

  get taken(): number {
    return this.#taken;
  }

  /** Takes a slot. @returns a function that releases it, once. @throws Problem (too-many-calls, tool-busy) */
  take(caller: string): () => void {
    const { maxConcurrent, maxConcurrentPerCaller } = this.#options;
    const own = this.#callers.get(caller) ?? 0;
    if (own >= maxConcurrentPerCaller)
      throw new Problem(
        tooManyCalls,
        `You have ${own} calls in progress, which is the limit per caller. Try again in 2 seconds. Calls without a key are counted by network address, those with your own API key for the model router (Authorization: Bearer sk-…) by key.`,
        { headers: { 'retry-after': '2' } },
      );
    if (this.#taken >= maxConcurrent)
      throw new Problem(toolBusy, 'This replica has reached its limit of concurrent calls. Try again in 2 seconds.', {
        headers: { 'retry-after': '2' },
      });
    this.#taken += 1;
    this.#callers.set(caller, own + 1);
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      this.#taken -= 1;
      const left = (this.#callers.get(caller) ?? 1) - 1;
      if (left === 0) this.#callers.delete(caller);
      else this.#callers.set(caller, left);
    };
  }
}
