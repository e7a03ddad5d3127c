// A small pool of worker processes: limited in number and memory, with a bounded queue in which callers take turns; idle
// ones are kept for the next task of their module.
import { Problem } from '../../../../lib/problem.ts';
import { toolLimit } from '../../problems.ts';
import { busy } from './busy.ts';
import { memoryBudgetMb, ownMemoryMb } from './shared-resources.ts';
import { keyOf, WorkerProcess, type ProcessOptions } from './worker-process.ts';
import { Turns, type Turn } from './turns.ts';
import { usualMb, usualMs, type WorkerCall, type WorkerTask, type Workers } from './workers.ts';

export interface PoolOptions {
  /** Tasks that run at once; default 2. */
  readonly size?: number;
  /** Tasks of one caller that run at once; default one less than run in all, so that no caller has every worker. */
  readonly perCaller?: number;
  /** Tasks that may wait; default 64. When there are more, the newest of the caller who has most is refused. */
  readonly waiting?: number;
  /** How long a task may wait; default 30 000. */
  readonly maxWaitMs?: number;
  /** Processes that are kept without work, beside those that are slow to start; default 3. */
  readonly idle?: number;
  /** How long they are kept; default 60 000. */
  readonly idleMs?: number;
  /** Memory of all processes together, in MB; default what the container's limit leaves beside this process. */
  readonly budgetMb?: number;
}

/** Between two looks at the memory of processes, while some work. */
const lookMs = 100;

export function createWorkers(options: PoolOptions = {}): Workers {
  return new WorkerPool(options);
}

class WorkerPool implements Workers {
  readonly #size: number;
  readonly #maxWaiting: number;
  readonly #maxIdle: number;
  readonly #idleMs: number;
  readonly #maxWaitMs: number;
  readonly #turns: Turns;
  readonly #idle: WorkerProcess[] = [];
  readonly #busy = new Set<WorkerProcess>();
  /** Those that have not ended yet, killed ones included. */
  readonly #all = new Set<WorkerProcess>();
  readonly #sweep: NodeJS.Timeout;
  readonly #budgetMb: number;
  #running = 0;
  /** What the tasks that run may take, by their own word. */
  #promisedMb = 0;
  #look: NodeJS.Timeout | undefined;
  #closed = false;

  constructor({
    size = 2,
    perCaller = Math.max(1, size - 1),
    waiting = 64,
    maxWaitMs = 30_000,
    idle = 3,
    idleMs = 60_000,
    budgetMb = memoryBudgetMb(),
  }: PoolOptions) {
    this.#turns = new Turns({ perCaller, maxWaiting: waiting });
    this.#budgetMb = budgetMb;
    this.#size = size;
    this.#maxWaiting = waiting;
    this.#maxWaitMs = maxWaitMs;
    this.#maxIdle = idle;
    this.#idleMs = idleMs;
    this.#sweep = setInterval(() => {
      this.#endIdle();
    }, idleMs / 4).unref();
  }

  async run(
    {
      module,
      input,
      load,
      timeoutMs = usualMs,
      memoryMb = usualMb,
      quickStart = false,
      startsProgram = false,
      warm = false,
    }: WorkerTask,
    call: WorkerCall,
  ): Promise<unknown> {
    await pausing(call, this.#slot(memoryMb, call));
    const worker = this.#take({ module, memoryMb, quickStart, startsProgram, warm });
    this.#busy.add(worker);
    try {
      await pausing(call, worker.started(call.signal));
      return await worker.run(load === undefined ? input : await load(), timeoutMs, call.signal);
    } finally {
      this.#busy.delete(worker);
      this.#keep(worker);
      this.#leave(memoryMb, call.owner);
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#sweep);
    clearInterval(this.#look);
    for (const turn of this.#turns.clear()) turn.refuse(busy('This replica is shutting down. Try again.'));
    // Also those that were killed just before.
    await Promise.all([...this.#all].map((worker) => worker.end()));
  }

  /** Waits for a slot. */
  async #slot(memoryMb: number, { owner, signal }: WorkerCall): Promise<void> {
    signal?.throwIfAborted();
    if (this.#closed) throw busy('This replica is shutting down. Try again.');
    const { promise, resolve, reject } = Promise.withResolvers<undefined>();
    const turn: Turn = {
      owner,
      memoryMb,
      start: () => {
        this.#enter(memoryMb);
        resolve(undefined);
      },
      refuse: reject,
    };
    const leave = (reason: unknown): void => {
      this.#turns.remove(turn);
      reject(reason);
      this.#startNext();
    };
    const gone = (): void => {
      leave(signal?.reason);
    };
    const timer = setTimeout(() => {
      leave(busy(`No worker became free within ${this.#maxWaitMs / 1000} s. Try again in 5 seconds.`));
    }, this.#maxWaitMs);
    signal?.addEventListener('abort', gone, { once: true });
    this.#turns.add(turn);
    this.#startNext();
    this.#turns
      .overflow()
      ?.refuse(
        busy(`${this.#running} calls are in progress and ${this.#maxWaiting} are waiting. Try again in 5 seconds.`),
      );
    await promise.finally(() => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', gone);
    });
  }

  /** A task that may take more than there is in all runs alone. */
  #fits(memoryMb: number): boolean {
    return this.#running < this.#size && (this.#running === 0 || this.#promisedMb + memoryMb <= this.#budgetMb);
  }

  #enter(memoryMb: number): void {
    this.#running += 1;
    this.#promisedMb += memoryMb;
    this.#look ??= setInterval(() => {
      this.#watch();
    }, lookMs).unref();
  }

  /** Releases the slot, and starts waiting tasks. */
  #leave(memoryMb: number, owner: string): void {
    this.#turns.ended(owner);
    this.#running -= 1;
    this.#promisedMb -= memoryMb;
    this.#startNext();
    if (this.#running > 0) return;
    clearInterval(this.#look);
    this.#look = undefined;
  }

  #startNext(): void {
    this.#turns.startNext(({ memoryMb }) => this.#fits(memoryMb));
  }

  /**
   * What a task says that it may take does not bound native memory well: when all is too much, idle processes go, then
   * the one that has most.
   */
  #watch(): void {
    const having = [...this.#idle, ...this.#busy].map((worker) => ({ worker, has: ownMemoryMb(worker.pid) }));
    let total = having.reduce((sum, { has }) => sum + has, 0);
    for (const { worker, has } of having) {
      if (total <= this.#budgetMb || this.#busy.has(worker)) continue;
      this.#end(worker);
      total -= has;
    }
    if (total <= this.#budgetMb) return;
    const largest = having.filter(({ worker }) => this.#busy.has(worker)).sort((a, b) => b.has - a.has)[0];
    largest?.worker.kill(tooMuch(largest.worker, largest.has));
  }

  #take(options: ProcessOptions): WorkerProcess {
    const key = keyOf(options);
    const at = this.#idle.findLastIndex((worker) => worker.key === key && worker.usable);
    const [found] = at < 0 ? [] : this.#idle.splice(at, 1);
    if (found !== undefined) return found;
    const started = new WorkerProcess(options);
    this.#all.add(started);
    void started.gone.then(() => this.#all.delete(started));
    return started;
  }

  #keep(worker: WorkerProcess): void {
    if (!worker.usable || this.#closed) {
      worker.kill();
      return;
    }
    worker.freeSince = performance.now();
    this.#idle.push(worker);
    const others = this.#idle.filter((each) => !this.#isKept(each));
    if (others.length > this.#maxIdle && others[0] !== undefined) this.#end(others[0]);
  }

  /** One of each module that is slow to start waits for the next call, however long that takes. */
  #isKept(worker: WorkerProcess): boolean {
    return worker.warm && worker.usable && this.#idle.findLast(({ key }) => key === worker.key) === worker;
  }

  #endIdle(): void {
    const before = performance.now() - this.#idleMs;
    for (const worker of [...this.#idle])
      if (!worker.usable || (worker.freeSince < before && !this.#isKept(worker))) this.#end(worker);
  }

  #end(worker: WorkerProcess): void {
    this.#idle.splice(this.#idle.indexOf(worker), 1);
    worker.kill();
  }
}

/**
 * Stops the clock of the call meanwhile: neither the queue nor the start of a process is its work, however busy the machine
 * is.
 */
async function pausing(call: WorkerCall, wait: Promise<void>): Promise<void> {
  await (call.waiting?.(wait) ?? wait);
}

function tooMuch({ memoryMb }: WorkerProcess, has: number): Problem {
  if (has <= memoryMb)
    return busy(
      'The calls in progress need more memory than this replica has, so this call was stopped. Try again in 5 seconds.',
    );
  return new Problem(toolLimit, `The call needed more than ${memoryMb} MB of memory and was stopped.`, {
    members: { limit: 'memory', limit_mb: memoryMb },
  });
}
