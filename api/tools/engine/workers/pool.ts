// A pool of worker processes, limited in number and memory, with a bounded queue in which callers take turns. Idle
// processes are kept for the next task of their module.
import { Problem } from '../../../../lib/problem.ts';
import { toolLimit } from '../../problems.ts';
import {
  createBusyProblem,
  defaultMemoryMb,
  defaultTimeoutMs,
  type WorkerCall,
  type WorkerTask,
  type Workers,
} from './workers.ts';
import {
  computeMemoryBudgetMb,
  measureMemoryMb,
  toProcessKey,
  WorkerProcess,
  type ProcessOptions,
} from './worker-process.ts';

export interface PoolOptions {
  /** Concurrent tasks; default 2. */
  readonly size?: number;
  /** Concurrent tasks per caller; default one less than `size`, so that no caller occupies every worker. */
  readonly perCaller?: number;
  /** Tasks that may wait; default 64. Beyond that, the newest task of the caller with the most waiting tasks is rejected. */
  readonly waiting?: number;
  /** How long a task may wait; default 30 000. */
  readonly maxWaitMs?: number;
  /** How long a process may take to start, also on a busy machine; default 15 000. */
  readonly startMs?: number;
  /** Idle processes that are kept, in addition to those that are slow to start; default 3. */
  readonly idle?: number;
  /** How long they are kept; default 60 000. */
  readonly idleMs?: number;
  /** Memory of all processes together, in MB; default: what the container's limit leaves. */
  readonly budgetMb?: number;
}

/** Interval at which the memory of processes is checked while tasks run. */
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
  readonly #startMs: number;
  readonly #turns: Turns;
  readonly #idle: WorkerProcess[] = [];
  readonly #busy = new Set<WorkerProcess>();
  /** All processes that have not ended yet, including killed ones. */
  readonly #all = new Set<WorkerProcess>();
  readonly #sweep: NodeJS.Timeout;
  readonly #budgetMb: number;
  #running = 0;
  /** Sum of the memory limits of running tasks. */
  #promisedMb = 0;
  #look: NodeJS.Timeout | undefined;
  #closed = false;

  constructor({
    size = 2,
    perCaller = Math.max(1, size - 1),
    waiting = 64,
    maxWaitMs = 30_000,
    startMs = 15_000,
    idle = 3,
    idleMs = 60_000,
    budgetMb = computeMemoryBudgetMb(),
  }: PoolOptions) {
    this.#turns = new Turns({ perCaller, maxWaiting: waiting });
    this.#budgetMb = budgetMb;
    this.#size = size;
    this.#maxWaiting = waiting;
    this.#maxWaitMs = maxWaitMs;
    this.#startMs = startMs;
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
      timeoutMs = defaultTimeoutMs,
      memoryMb = defaultMemoryMb,
      quickStart = false,
      startsProgram = false,
      warm = false,
    }: WorkerTask,
    call: WorkerCall,
  ): Promise<unknown> {
    await pauseClock(call, this.#slot(memoryMb, call));
    let worker: WorkerProcess | undefined;
    try {
      worker = this.#take({ module, memoryMb, quickStart, startsProgram, warm });
      this.#busy.add(worker);
      await pauseClock(call, worker.waitForStart(call.signal));
      return await worker.run(load === undefined ? input : await load(), timeoutMs, call.signal);
    } finally {
      if (worker !== undefined) {
        this.#busy.delete(worker);
        this.#keep(worker);
      }
      // Also when no process could be started: its slot would never become free again.
      this.#leave(memoryMb, call.owner);
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#sweep);
    clearInterval(this.#look);
    for (const turn of this.#turns.clear()) turn.refuse(createBusyProblem('This replica is shutting down. Try again.'));
    // This includes processes that were killed just before.
    await Promise.all([...this.#all].map((worker) => worker.end()));
  }

  /** Waits for a slot. */
  async #slot(memoryMb: number, { owner, signal }: WorkerCall): Promise<void> {
    signal?.throwIfAborted();
    if (this.#closed) throw createBusyProblem('This replica is shutting down. Try again.');
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
      leave(createBusyProblem(`No worker became free within ${this.#maxWaitMs / 1000} s. Try again in 5 seconds.`));
    }, this.#maxWaitMs);
    signal?.addEventListener('abort', gone, { once: true });
    this.#turns.add(turn);
    this.#startNext();
    this.#turns
      .overflow()
      ?.refuse(
        createBusyProblem(
          `${this.#running} calls are in progress and ${this.#maxWaiting} are waiting. Try again in 5 seconds.`,
        ),
      );
    await promise.finally(() => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', gone);
    });
  }

  /** A task with a limit above the whole budget runs alone. */
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
    this.#turns.finish(owner);
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
   * A task's limit does not bound native memory well. If all processes exceed the budget, idle ones are ended first, then
   * the largest.
   */
  #watch(): void {
    const having = [...this.#idle, ...this.#busy].map((worker) => ({ worker, has: measureMemoryMb(worker.pid) }));
    let total = having.reduce((sum, { has }) => sum + has, 0);
    for (const { worker, has } of having) {
      if (total <= this.#budgetMb || this.#busy.has(worker)) continue;
      this.#end(worker);
      total -= has;
    }
    if (total <= this.#budgetMb) return;
    const largest = having.filter(({ worker }) => this.#busy.has(worker)).sort((a, b) => b.has - a.has)[0];
    largest?.worker.kill(createMemoryProblem(largest.worker, largest.has));
  }

  #take(options: ProcessOptions): WorkerProcess {
    const key = toProcessKey(options);
    const at = this.#idle.findLastIndex((worker) => worker.key === key && worker.usable);
    const [found] = at < 0 ? [] : this.#idle.splice(at, 1);
    if (found !== undefined) return found;
    const started = new WorkerProcess(options, this.#startMs);
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

  /** One idle process of each module that is slow to start is kept indefinitely. */
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
 * Pauses the call's time limit: neither the queue nor the start of a process counts as its work, however busy the machine
 * is.
 */
async function pauseClock(call: WorkerCall, wait: Promise<void>): Promise<void> {
  await (call.waiting?.(wait) ?? wait);
}

function createMemoryProblem({ memoryMb }: WorkerProcess, has: number): Problem {
  if (has <= memoryMb)
    return createBusyProblem(
      'The calls in progress need more memory than this replica has, so this call was stopped. Try again in 5 seconds.',
    );
  return new Problem(toolLimit, `The call needed more than ${memoryMb} MB of memory and was stopped.`, {
    members: { limit: 'memory', limit_mb: memoryMb },
  });
}

/** A task that waits for a worker. */
export interface Turn {
  /** The caller of the task. */
  readonly owner: string;
  readonly memoryMb: number;
  readonly start: () => void;
  readonly refuse: (reason: unknown) => void;
}

export interface TurnsOptions {
  /** Concurrent tasks per caller. */
  readonly perCaller: number;
  /** Tasks that may wait. */
  readonly maxWaiting: number;
}

/** The queue: callers take turns within a limit per caller, so that a caller with many tasks delays only their own. */
export class Turns {
  readonly #options: TurnsOptions;
  /** Waiting tasks by caller, in the order of turns. Callers without any are removed. */
  readonly #waiting = new Map<string, Turn[]>();
  /** Running tasks by caller. Callers without any are removed. */
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

  /** Starts waiting tasks, one of each caller in turn, while the next one fits. */
  startNext(fits: (turn: Turn) => boolean): void {
    for (let next = this.#next(); next !== undefined && fits(next); next = this.#next()) {
      const own = this.#waiting.get(next.owner) ?? [];
      this.remove(next);
      // This caller goes to the end of the order.
      if (this.#waiting.delete(next.owner)) this.#waiting.set(next.owner, own);
      this.#running.set(next.owner, (this.#running.get(next.owner) ?? 0) + 1);
      next.start();
    }
  }

  /** Records that a task of this caller has ended. */
  finish(owner: string): void {
    const left = (this.#running.get(owner) ?? 1) - 1;
    if (left === 0) this.#running.delete(owner);
    else this.#running.set(owner, left);
  }

  /** If too many tasks wait, removes and returns the newest task of the caller with the most. */
  overflow(): Turn | undefined {
    const queues = [...this.#waiting.values()];
    if (queues.reduce((sum, { length }) => sum + length, 0) <= this.#options.maxWaiting) return undefined;
    // If two callers have as many, the later one.
    const newest = queues.reduce((most, own) => (own.length >= most.length ? own : most)).at(-1);
    if (newest !== undefined) this.remove(newest);
    return newest;
  }

  /** Removes and returns all waiting tasks. */
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
