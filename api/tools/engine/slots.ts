// Places for calls under way: so many in this process, and so many for one caller, because strangers' work is heavy.
import { Problem } from '../../../lib/problem.ts';
import { tooManyCalls, toolBusy } from '../problems.ts';

export interface GateOptions {
  readonly places: number;
  readonly placesPerCaller: number;
}

export class Gate {
  readonly #options: GateOptions;
  /** Calls under way, by caller; who has none is not in it. */
  readonly #callers = new Map<string, number>();
  #taken = 0;

  constructor(options: GateOptions) {
    this.#options = options;
  }

  get taken(): number {
    return this.#taken;
  }

  /** Takes a place. @returns what gives it back, once. @throws Problem (too-many-calls, tool-busy) */
  enter(caller: string): () => void {
    const { places, placesPerCaller } = this.#options;
    const own = this.#callers.get(caller) ?? 0;
    if (own >= placesPerCaller)
      throw new Problem(
        tooManyCalls,
        `${own} of your calls are under way, which is as many as one caller may have at once; try again in 2 s`,
        { headers: { 'retry-after': '2' } },
      );
    if (this.#taken >= places)
      throw new Problem(toolBusy, 'as many calls are under way as this replica takes at once; try again in 2 s', {
        headers: { 'retry-after': '2' },
      });
    this.#taken += 1;
    this.#callers.set(caller, own + 1);
    let inside = true;
    return () => {
      if (!inside) return;
      inside = false;
      this.#taken -= 1;
      const left = (this.#callers.get(caller) ?? 1) - 1;
      if (left === 0) this.#callers.delete(caller);
      else this.#callers.set(caller, left);
    };
  }
}
