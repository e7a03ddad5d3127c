// Who is next at the workers: callers take turns, and none has more at once than his share, so that whoever brings many
// tasks waits behind his own.

/** A task that waits for a worker. */
export interface Turn {
  /** Whose task it is. */
  readonly owner: string;
  readonly memoryMb: number;
  readonly start: () => void;
  readonly refuse: (reason: unknown) => void;
}

export interface TurnsOptions {
  /** Tasks of one caller that run at once. */
  readonly perCaller: number;
  /** Tasks that may wait. */
  readonly maxWaiting: number;
}

export class Turns {
  readonly #options: TurnsOptions;
  /** What waits, by caller; whose turn it is stands first. A caller without any is not in it. */
  readonly #waiting = new Map<string, Turn[]>();
  /** Tasks that run, by caller; a caller without any is not in it. */
  readonly #running = new Map<string, number>();

  constructor(options: TurnsOptions) {
    this.#options = options;
  }

  add(turn: Turn): void {
    const own = this.#waiting.get(turn.owner);
    if (own === undefined) this.#waiting.set(turn.owner, [turn]);
    else own.push(turn);
  }

  remove(turn: Turn): void {
    const own = this.#waiting.get(turn.owner) ?? [];
    const at = own.indexOf(turn);
    if (at >= 0) own.splice(at, 1);
    if (own.length === 0) this.#waiting.delete(turn.owner);
  }

  /** Starts what waits, a task of each caller in turn, as long as the next one fits. */
  startNext(fits: (turn: Turn) => boolean): void {
    for (let next = this.#next(); next !== undefined && fits(next); next = this.#next()) {
      const own = this.#waiting.get(next.owner) ?? [];
      this.remove(next);
      // Behind everybody else.
      if (this.#waiting.delete(next.owner)) this.#waiting.set(next.owner, own);
      this.#running.set(next.owner, (this.#running.get(next.owner) ?? 0) + 1);
      next.start();
    }
  }

  /** A task of this caller has ended. */
  ended(owner: string): void {
    const left = (this.#running.get(owner) ?? 1) - 1;
    if (left === 0) this.#running.delete(owner);
    else this.#running.set(owner, left);
  }

  /** When too many wait: removes the newest task of the caller who has most. @returns it */
  overflow(): Turn | undefined {
    const queues = [...this.#waiting.values()];
    if (queues.reduce((sum, { length }) => sum + length, 0) <= this.#options.maxWaiting) return undefined;
    // Of two with as many, the one who came later.
    const newest = queues.reduce((most, own) => (own.length >= most.length ? own : most)).at(-1);
    if (newest !== undefined) this.remove(newest);
    return newest;
  }

  /** Removes all. @returns them */
  clear(): Turn[] {
    const all = [...this.#waiting.values()].flat();
    this.#waiting.clear();
    return all;
  }

  #next(): Turn | undefined {
    for (const [owner, own] of this.#waiting)
      if ((this.#running.get(owner) ?? 0) < this.#options.perCaller) return own[0];
    return undefined;
  }
}
