// How many streams of tasks one caller has open in this process: each costs little, and nobody needs many.

const maxPerCaller = 20;

export class OpenStreams {
  /** By caller; one without any is not in it. */
  readonly #open = new Map<string, number>();

  /** @returns what to call once the stream is over; undefined when this caller has too many */
  take(caller: string): (() => void) | undefined {
    const open = this.#open.get(caller) ?? 0;
    if (open >= maxPerCaller) return undefined;
    this.#open.set(caller, open + 1);
    return () => {
      const left = (this.#open.get(caller) ?? 1) - 1;
      if (left === 0) this.#open.delete(caller);
      else this.#open.set(caller, left);
    };
  }
}
