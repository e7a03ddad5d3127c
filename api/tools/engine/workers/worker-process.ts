// One worker process: starts with limits, runs one task at a time, and is killed if a task does not end well.
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { getPriority, setPriority, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { Problem, type ProblemType, type FieldError } from '../../../../lib/problem.ts';
import { toolFailed, toolLimit, unprocessable, toolBusy } from '../../problems.ts';
import { createBusyProblem } from './workers.ts';
import { createTimeLimit } from '../../../../lib/values.ts';

/** Root folder of this program. */
export const programFolder = join(import.meta.dirname, '..', '..', '..', '..');
/** Workers may read the code, but not the data that `npm start` and `npm run up` store in the root folder. */
const readable = ['api', 'lib', 'node_modules', 'package.json'].map((name) => join(programFolder, name));
const main = join(import.meta.dirname, 'worker-main.ts');

/**
 * System limits that Node has no options for: total memory, CPU time (in case the parent is killed), no core dumps, and a
 * stack of 8 MB, of which V8 may use half, because parsers recurse on deeply nested input. If the machine runs out of
 * memory, the kernel kills this process first.
 */
const limited =
  'ulimit -c 0; ulimit -s 8192 2>/dev/null; ulimit -t 300; ulimit -d "$0" 2>/dev/null; (echo 1000 > /proc/self/oom_score_adj) 2>/dev/null; exec "$@"';
/** Address space that Node reserves before any work, mostly stacks that are never used. */
const reservedMb = 640;
/**
 * Most that a busy machine adds to the time of a task. It ends before the time limit of the whole call, which is at least
 * 10 s longer than that of a task.
 */
const longestExtraMs = 8_000;
/** Shorter waits do not show that the machine is busy: any process may wait for a second. */
const leastExtraMs = 3_000;
/** A task that had less of its time was stopped because of the machine, not because of its input. */
const fullShare = 0.9;
const outOfMemory =
  /out of memory|allocation failed|invalid (\w+ )?(size|length)|bad_alloc|memory allocation of|(failed to|cannot) allocate|unable to grow/i;

export interface ProcessOptions {
  readonly module: URL;
  readonly memoryMb: number;
  readonly quickStart: boolean;
  readonly startsProgram: boolean;
  readonly warm: boolean;
}

export class WorkerProcess {
  readonly key: string;
  /** When it last became free: the pool ends the longest idle process first. */
  freeSince = 0;
  /** Resolves when the process has ended or could not be started. */
  readonly gone: Promise<void>;
  readonly warm: boolean;
  readonly #child: ChildProcess;
  /** If it starts a program: the folder where the program writes, removed at the end. */
  readonly #folder: string | undefined;
  readonly #memoryMb: number;
  readonly #startMs: number;
  /** The first message reports that the module is loaded. A task's time counts from then on. */
  readonly #ready: Promise<unknown>;
  #stderr = '';
  #usable = true;
  #killed = false;
  #endedFor: Problem | undefined;

  /**
   * @param startMs How long the process may take to load its module: well under a second, but longer on a busy machine,
   *   which is not the call's fault.
   */
  constructor(options: ProcessOptions, startMs: number) {
    const { module, memoryMb, quickStart, startsProgram, warm } = options;
    this.key = toProcessKey(options);
    this.warm = warm;
    this.#memoryMb = memoryMb;
    this.#startMs = startMs;
    this.#folder = startsProgram ? mkdtempSync(join(tmpdir(), 'moorage-worker-')) : undefined;
    this.#child = spawn(
      '/bin/sh',
      [
        '-c',
        limited,
        String((reservedMb + 2 * memoryMb) * 1024),
        process.execPath,
        `--max-old-space-size=${memoryMb}`,
        '--stack-size=3600',
        ...(quickStart ? ['--liftoff-only'] : []),
        `--wasm-max-mem-pages=${memoryMb * 16}`,
        '--permission',
        ...[...readable, dirname(fileURLToPath(module))].map((path) => `--allow-fs-read=${path}`),
        '--allow-addons',
        '--allow-worker',
        ...(startsProgram ? ['--allow-child-process'] : []),
        '--disable-warning=SecurityWarning',
        main,
        module.href,
        String(memoryMb),
      ],
      {
        stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
        serialization: 'advanced',
        env: this.#folder === undefined ? {} : { HOME: this.#folder, TMPDIR: this.#folder },
        cwd: programFolder,
        // A separate process group, so that the programs it starts end with it.
        detached: startsProgram,
      },
    );
    this.#child.stderr
      ?.setEncoding('utf8')
      .on('data', (text: string) => (this.#stderr = (this.#stderr + text).slice(-8_000)));
    this.#ready = new Promise((resolve) => this.#child.once('message', resolve));
    const { promise, resolve } = Promise.withResolvers<undefined>();
    this.gone = promise;
    for (const event of ['error', 'exit'])
      this.#child.on(event, () => {
        this.#usable = false;
        this.#endGroup();
        void this.#removeFolder().then(resolve);
      });
    // Hostile input must not slow down the API. Where this process has a lower priority already, raising it is not allowed.
    if (this.#child.pid !== undefined && getPriority() < 5) setPriority(this.#child.pid, 5);
    this.#rest();
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  get memoryMb(): number {
    return this.#memoryMb;
  }

  /** Whether it can take a task. */
  get usable(): boolean {
    return this.#usable && this.#child.connected;
  }

  /** Waits until the module is loaded. @throws Problem (tool-busy) if that takes too long */
  async waitForStart(signal: AbortSignal | undefined): Promise<void> {
    await this.#attended(() => this.#start(signal));
  }

  /** Runs one task. Do not call this again before the task ends. @throws as `Workers.run` */
  async run(input: unknown, timeoutMs: number, signal: AbortSignal | undefined): Promise<unknown> {
    return this.#attended(async () => {
      await this.#start(signal);
      const limit = createTaskLimit(this.pid, timeoutMs);
      const late = (): Problem =>
        limit.measureSpentMs() < timeoutMs * fullShare
          ? createBusyProblem(
              'This replica has too little processor time for the call at the moment. Try again in 5 seconds.',
            )
          : new Problem(toolLimit, `The call took longer than ${timeoutMs / 1000} s and was stopped.`, {
              members: { limit: 'time', limit_ms: timeoutMs },
            });
      const answer = await this.#within(limit.signal, signal, (stop) => this.#answer(input, stop), late);
      if (answer.spent) this.kill();
      if (answer.kind === 'failed' && outOfMemory.test(answer.message)) throw this.#tooMuch();
      return readOutput(answer);
    });
  }

  #start(signal: AbortSignal | undefined): Promise<unknown> {
    const late = (): Problem =>
      createBusyProblem(`A worker did not start within ${this.#startMs / 1000} s. Try again in 5 seconds.`);
    return this.#within(createTimeLimit(this.#startMs), signal, () => this.#ready, late);
  }

  /** Waits for the process and keeps this one alive until then. */
  async #attended<Value>(wait: () => Promise<Value>): Promise<Value> {
    const { exitCode, signalCode } = this.#child;
    if (exitCode !== null || signalCode !== null) throw this.#death(exitCode, signalCode);
    this.#child.ref();
    this.#child.channel?.ref();
    try {
      return await wait();
    } finally {
      this.#rest();
    }
  }

  async #answer(input: unknown, signal: AbortSignal): Promise<Reply> {
    const answered = once(this.#child, 'message', { signal });
    // If the input cannot be sent, nothing awaits this promise.
    answered.catch(() => undefined);
    this.#send(input);
    const [message] = (await answered) as unknown[];
    return reply.parse(message);
  }

  /** Waits for an event of the process. Kills the process if the limit or the signal aborts. */
  async #within<Value>(
    limit: AbortSignal,
    signal: AbortSignal | undefined,
    event: (stop: AbortSignal) => Promise<Value>,
    late: () => Problem,
  ): Promise<Value> {
    const ended = new AbortController();
    const stop = AbortSignal.any([ended.signal, limit, ...(signal === undefined ? [] : [signal])]);
    try {
      const exited = once(this.#child, 'close', { signal: stop }).then(([code, by]) => {
        throw this.#death(code as number | null, by as string | null);
      });
      return await Promise.race([event(stop), exited]);
    } catch (error) {
      if (!stop.aborted) throw error;
      const problem = late();
      this.kill();
      signal?.throwIfAborted();
      throw problem;
    } finally {
      ended.abort();
    }
  }

  #send(input: unknown): void {
    try {
      this.#child.send({ input }, () => undefined);
    } catch (error) {
      throw new Problem(unprocessable, 'The input is nested too deeply.', { cause: error });
    }
  }

  /** `why`: reported to the caller of the current task. */
  kill(why?: Problem): void {
    this.#usable = false;
    this.#endedFor ??= why;
    this.#killed = true;
    this.#endGroup();
    this.#child.kill('SIGKILL');
  }

  /** Kills the programs that the process has started. */
  #endGroup(): void {
    if (this.#folder === undefined || this.#child.pid === undefined) return;
    try {
      process.kill(-this.#child.pid, 'SIGKILL');
    } catch {
      // The group has no processes left.
    }
  }

  async #removeFolder(): Promise<undefined> {
    if (this.#folder === undefined) return;
    // Processes that are ending may still write.
    const options = { recursive: true, force: true, maxRetries: 5, retryDelay: 100 };
    await rm(this.#folder, options).catch(() => undefined);
  }

  /** Kills the process and waits until it has ended. */
  async end(): Promise<void> {
    this.#child.ref();
    this.kill();
    await this.gone;
  }

  /** An idle worker must not keep this process alive. */
  #rest(): void {
    this.#child.unref();
    this.#child.channel?.unref();
    (this.#child.stderr as { unref?: () => void } | null)?.unref?.();
  }

  #tooMuch(): Problem {
    return new Problem(toolLimit, `The call needed more than ${this.#memoryMb} MB of memory and was stopped.`, {
      cause: new Error(this.#stderr),
      members: { limit: 'memory', limit_mb: this.#memoryMb },
    });
  }

  #death(code: number | null, by: string | null): Problem {
    if (this.#endedFor !== undefined) return this.#endedFor;
    if (this.#killed) return createBusyProblem('This replica is shutting down. Try again.');
    if (by === 'SIGKILL' || outOfMemory.test(this.#stderr)) return this.#tooMuch();
    return new Problem(toolFailed, 'The engine of this tool crashed.', {
      cause: new Error(`worker ended by ${by ?? `code ${code ?? '?'}`}: ${this.#stderr}`),
    });
  }
}

/** Processes with the same key are interchangeable. */
export function toProcessKey({ module, memoryMb, quickStart, startsProgram }: ProcessOptions): string {
  return `${memoryMb} ${quickStart ? 'quick' : 'usual'} ${startsProgram ? 'program' : 'alone'} ${module.href}`;
}

/** Field errors as they arrive from a worker process or a stored job. */
export const fieldErrors: z.ZodType<FieldError[]> = z.array(
  z.object({
    in: z.enum(['body', 'path', 'query', 'header', 'argument']),
    field: z.string(),
    message: z.string(),
    fix: z.string(),
  }),
);

const problem = z.object({
  type: z.object({ slug: z.string(), status: z.int().min(400).max(599), title: z.string(), description: z.string() }),
  detail: z.string(),
  members: z.record(z.string(), z.unknown()),
  errors: fieldErrors,
});

const common = {
  /** It has used so many resources that a new process should take the next task. */
  spent: z.boolean(),
};

export const reply = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('done'), output: z.unknown(), ...common }),
  z.object({ kind: z.literal('refused'), problem, ...common }),
  z.object({ kind: z.literal('failed'), message: z.string(), stack: z.string(), ...common }),
]);
export type Reply = z.output<typeof reply>;

/** Returns a reply's output. @throws what the module threw */
export function readOutput(message: Reply): unknown {
  if (message.kind === 'done') return message.output;
  if (message.kind === 'refused') {
    const { type, detail, members, errors } = message.problem;
    // A worker must not choose response headers.
    if (type.slug === toolBusy.slug) throw createBusyProblem(detail);
    throw new Problem(type satisfies ProblemType, detail, { members, errors });
  }
  const error = new Error(message.message);
  error.stack = message.stack;
  throw error;
}

interface TaskLimit {
  readonly signal: AbortSignal;
  /** Time that the task has had so far, without what it waited for a CPU. */
  measureSpentMs(): number;
}

/** Aborts when a task has had its time. What its process waits for a CPU meanwhile does not count, up to a limit. */
function createTaskLimit(pid: number | undefined, timeoutMs: number): TaskLimit {
  const startedAt = performance.now();
  const waitedBeforeMs = measureCpuWaitMs(pid);
  const latestAt = startedAt + timeoutMs + Math.min(Math.max(2 * timeoutMs, leastExtraMs), longestExtraMs);
  const controller = new AbortController();
  // Less than before: the thread or child that had waited longest has ended.
  const measureWaitedMs = (): number => Math.max(0, measureCpuWaitMs(pid) - waitedBeforeMs);
  const measureSpentMs = (): number => performance.now() - startedAt - measureWaitedMs();
  const check = (): void => {
    const leftMs = Math.min(timeoutMs - measureSpentMs(), latestAt - performance.now());
    if (leftMs < 1) controller.abort(new DOMException('The task had its time', 'TimeoutError'));
    else setTimeout(check, leftMs).unref();
  };
  check();
  return { signal: controller.signal, measureSpentMs };
}

const mb = 1_048_576;
/** Reserved for the API's process, if it starts the workers itself. */
const apiMb = 512;
const leastMb = 256;
/** If nothing limits this process. */
const usualMb = 1_024;

export interface MemoryBudgetOptions {
  /** Reserved for the process that starts the workers; default: what the API needs. */
  readonly ownMb?: number;
  /** Limit of the container, in bytes. */
  readonly constrained?: number;
}

/** What the container's memory limit leaves for workers, in MB. If a container exceeds it, all its processes end. */
export function computeMemoryBudgetMb({
  ownMb = apiMb,
  constrained = process.constrainedMemory(),
}: MemoryBudgetOptions = {}): number {
  // Without a limit, the system reports an impossibly large number.
  if (constrained === 0 || constrained > 2 ** 50) return usualMb;
  return Math.max(leastMb, Math.floor(constrained / mb) - ownMb);
}

/**
 * Private memory of a process and its children in MB, without the program's shared pages. 0 for an ended process and on
 * systems other than Linux.
 */
export function measureMemoryMb(pid: number | undefined): number {
  try {
    const status = readFileSync(`/proc/${pid ?? 0}/status`, 'utf8');
    const own = Number(/^RssAnon:\s+(\d+) kB/m.exec(status)?.[1] ?? 0) / 1_024;
    return own + listChildren(pid ?? 0).reduce((sum, child) => sum + measureMemoryMb(child), 0);
  } catch {
    return 0;
  }
}

/**
 * How long the thread that waited longest has waited for a CPU since it started, in ms, of a process and its children: a
 * task may run in a thread, or in a program that its process started. 0 for an ended process and on systems other than
 * Linux.
 */
export function measureCpuWaitMs(pid: number | undefined): number {
  try {
    const folder = `/proc/${pid ?? 0}/task`;
    const waits = readdirSync(folder).map((thread) => {
      const [, waited = '0'] = readFileSync(join(folder, thread, 'schedstat'), 'utf8').split(' ');
      return Number(waited) / 1e6;
    });
    return Math.max(...waits, ...listChildren(pid ?? 0).map(measureCpuWaitMs));
  } catch {
    return 0;
  }
}

/** Linux lists child processes per thread. */
function listChildren(pid: number): number[] {
  try {
    return readdirSync(`/proc/${pid}/task`)
      .flatMap((thread) => readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8').split(' '))
      .filter(Boolean)
      .map(Number);
  } catch {
    return [];
  }
}
