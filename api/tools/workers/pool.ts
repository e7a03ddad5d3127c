// A small pool of worker processes: so many at once, a bounded queue before them, idle ones kept for the next task of their module.
import { Problem } from '../../../lib/problem.ts';
import { toolBusy } from '../problems.ts';
import { keyOf, WorkerProcess, type ProcessOptions } from './worker-process.ts';
import type { WorkerTask, Workers } from './workers.ts';

export interface PoolOptions {
  /** Tasks that run at once; default 2. */
  readonly size?: number;
  /** Tasks that may wait; default 64. */
  readonly waiting?: number;
  /** Processes that are kept without work; default 3. */
  readonly idle?: number;
  /** How long they are kept; default 60 000. */
  readonly idleMs?: number;
}

interface Waiter {
  readonly start: () => void;
  readonly refuse: (reason: unknown) => void;
}

export function createWorkers(options: PoolOptions = {}): Workers {
  return new WorkerPool(options);
}

class WorkerPool implements Workers {
  readonly #size: number;
  readonly #mostWaiting: number;
  readonly #mostIdle: number;
  readonly #idleMs: number;
  readonly #waiting: Waiter[] = [];
  readonly #idle: WorkerProcess[] = [];
  readonly #busy = new Set<WorkerProcess>();
  readonly #sweep: NodeJS.Timeout;
  #running = 0;
  #closed = false;

  constructor({ size = 2, waiting = 64, idle = 3, idleMs = 60_000 }: PoolOptions) {
    this.#size = size;
    this.#mostWaiting = waiting;
    this.#mostIdle = idle;
    this.#idleMs = idleMs;
    this.#sweep = setInterval(() => { this.#endIdle(); }, idleMs / 4).unref();
  }

  async run({ module, input, timeoutMs = 20_000, memoryMb = 256, quickStart = false, signal }: WorkerTask): Promise<unknown> {
    await this.#place(signal);
    const worker = this.#take({ module, memoryMb, quickStart });
    this.#busy.add(worker);
    try {
      return await worker.run(input, timeoutMs, signal);
    } finally {
      this.#busy.delete(worker);
      this.#keep(worker);
      this.#leave();
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#sweep);
    for (const waiter of this.#waiting.splice(0)) waiter.refuse(busy('this replica is about to end'));
    await Promise.all([...this.#busy, ...this.#idle.splice(0)].map((worker) => worker.end()));
  }

  /** Waits for a place among those that run. */
  async #place(signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted();
    if (this.#closed) throw busy('this replica is about to end');
    if (this.#running < this.#size) {
      this.#running += 1;
      return;
    }
    if (this.#waiting.length >= this.#mostWaiting) throw busy(`${this.#size} calls are being worked on and ${this.#mostWaiting} wait already`);
    const { promise, resolve, reject } = Promise.withResolvers<undefined>();
    const waiter: Waiter = { start: () => { resolve(undefined); }, refuse: reject };
    const leave = (): void => {
      const at = this.#waiting.indexOf(waiter);
      if (at >= 0) this.#waiting.splice(at, 1);
      reject(signal?.reason);
    };
    this.#waiting.push(waiter);
    signal?.addEventListener('abort', leave, { once: true });
    await promise.finally(() => signal?.removeEventListener('abort', leave));
  }

  /** Hands the place to the next, or gives it back. */
  #leave(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#running -= 1;
    else next.start();
  }

  #take(options: ProcessOptions): WorkerProcess {
    const key = keyOf(options);
    const at = this.#idle.findLastIndex((worker) => worker.key === key && worker.usable);
    const [found] = at < 0 ? [] : this.#idle.splice(at, 1);
    return found ?? new WorkerProcess(options);
  }

  #keep(worker: WorkerProcess): void {
    if (!worker.usable || this.#closed) {
      worker.kill();
      return;
    }
    worker.freeSince = performance.now();
    this.#idle.push(worker);
    if (this.#idle.length > this.#mostIdle) this.#idle.shift()?.kill();
  }

  #endIdle(): void {
    const before = performance.now() - this.#idleMs;
    while (this.#idle[0] !== undefined && (this.#idle[0].freeSince < before || !this.#idle[0].usable)) this.#idle.shift()?.kill();
  }
}

function busy(why: string): Problem {
  return new Problem(toolBusy, why, { headers: { 'retry-after': '5' } });
}
