// The time limit of a call: a clock that stands still while the call waits in a queue.

export class TimeLimit {
  readonly #late: () => void;
  #leftMs: number;
  #timer: NodeJS.Timeout | undefined;
  #since = 0;
  #waits = 0;

  /** Starts the clock; `late` is called once when it has run out. */
  constructor(ms: number, late: () => void) {
    this.#leftMs = ms;
    this.#late = late;
    this.#go();
  }

  /** Stops the clock until this is over. Whoever waits limits the wait. */
  async waiting<Value>(wait: Promise<Value>): Promise<Value> {
    this.#waits += 1;
    if (this.#waits === 1) this.#stop();
    try {
      return await wait;
    } finally {
      this.#waits -= 1;
      if (this.#waits === 0) this.#go();
    }
  }

  end(): void {
    this.#waits = Number.POSITIVE_INFINITY;
    this.#stop();
  }

  #go(): void {
    this.#since = performance.now();
    this.#timer = setTimeout(this.#late, Math.max(0, this.#leftMs));
  }

  #stop(): void {
    clearTimeout(this.#timer);
    this.#leftMs -= performance.now() - this.#since;
  }
}
