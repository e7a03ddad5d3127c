// One worker process: started with limits, given one task at a time, killed when a task does not end well.
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { setPriority, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Problem } from '../../../../lib/problem.ts';
import { toolFailed, toolLimit, unprocessable } from '../../problems.ts';
import { busy } from './busy.ts';
import { cpuWaitMs } from './shared-resources.ts';
import { outputOf, reply, type Reply } from './messages.ts';
import { timeLimit } from '../../../../lib/values.ts';

/** The program's own folder. */
export const programFolder = join(import.meta.dirname, '..', '..', '..', '..');
/** What a worker may read of it: code, but not what `npm start` and `npm run up` keep there. */
const readable = ['api', 'lib', 'node_modules', 'package.json'].map((name) => join(programFolder, name));
const main = join(import.meta.dirname, 'worker-main.ts');

/**
 * Limits of the system that Node has no options for: memory of any kind, processor time (for one whose parent was
 * killed), no core dumps; a stack of 8 MB, of which V8
 * may take half, since parsers of what is deeply nested recurse; and when a machine runs out of memory, this process
 * goes first.
 */
const limited =
  'ulimit -c 0; ulimit -s 8192 2>/dev/null; ulimit -t 300; ulimit -d "$0" 2>/dev/null; (echo 1000 > /proc/self/oom_score_adj) 2>/dev/null; exec "$@"';
/** What Node itself reserves before any work, mostly stacks that are never touched. */
const reservedMb = 640;
/** Loading a module takes well under a second; more on a busy machine, which is no fault of the call. */
const startMs = 15_000;
/**
 * A task that had less than 40 % of a processor for its time ran out of it because of the machine, not because of its input.
 * Three endless tasks on two processors have 67 % each.
 */
const starvedShare = 0.6;
/** Below this a wait says nothing of the machine: any process may wait for a second. */
const leastStarvedMs = 3_000;
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
  /** When it last became free, for whoever chooses which to end. */
  freeSince = 0;
  /** Fulfilled once it has ended, or could not be started. */
  readonly gone: Promise<void>;
  readonly warm: boolean;
  readonly #child: ChildProcess;
  /** Of one that starts a program: where that writes, removed with it. */
  readonly #folder: string | undefined;
  readonly #memoryMb: number;
  /** Its first message says that it has loaded its module: from then on, the time of a task counts. */
  readonly #ready: Promise<unknown>;
  #stderr = '';
  #usable = true;
  #killed = false;
  #endedFor: Problem | undefined;

  constructor(options: ProcessOptions) {
    const { module, memoryMb, quickStart, startsProgram, warm } = options;
    this.key = keyOf(options);
    this.warm = warm;
    this.#memoryMb = memoryMb;
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
        // A group of its own, so that what it starts ends with it.
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
    // Work of strangers waits for the work of the API.
    if (this.#child.pid !== undefined) setPriority(this.#child.pid, 5);
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

  /** Waits until it has loaded its module. @throws Problem (tool-busy) when that takes too long */
  async started(signal: AbortSignal | undefined): Promise<void> {
    await this.#attended(() => this.#within(startMs, signal, () => this.#ready, notStarted));
  }

  /** Runs one task. Not to be called again before it is done. @throws what `Workers.run` says */
  async run(input: unknown, timeoutMs: number, signal: AbortSignal | undefined): Promise<unknown> {
    return this.#attended(async () => {
      await this.#within(startMs, signal, () => this.#ready, notStarted);
      const waitedMs = cpuWaitMs(this.pid);
      const late = (): Problem =>
        cpuWaitMs(this.pid) - waitedMs > Math.max(timeoutMs * starvedShare, leastStarvedMs)
          ? busy('This replica has too little processor time for the call at the moment. Try again in 5 seconds.')
          : new Problem(toolLimit, `The call took longer than ${timeoutMs / 1000} s and was stopped.`, {
              members: { limit: 'time', limit_ms: timeoutMs },
            });
      const answer = await this.#within(timeoutMs, signal, (stop) => this.#answer(input, stop), late);
      if (answer.spent) this.kill();
      if (answer.kind === 'failed' && outOfMemory.test(answer.message)) throw this.#tooMuch();
      return outputOf(answer);
    });
  }

  /** Waits for the process, which keeps this one alive meanwhile. */
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
    // When it cannot be sent, nobody waits for the answer.
    answered.catch(() => undefined);
    this.#send(input);
    const [message] = (await answered) as unknown[];
    return reply.parse(message);
  }

  /** Waits for an event of the process, as long as it lives and there is time; then it is killed. */
  async #within<Value>(
    ms: number,
    signal: AbortSignal | undefined,
    event: (stop: AbortSignal) => Promise<Value>,
    late: () => Problem,
  ): Promise<Value> {
    const ended = new AbortController();
    const stop = AbortSignal.any([ended.signal, timeLimit(ms), ...(signal === undefined ? [] : [signal])]);
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

  /** `why`: reported to the caller that waits for its work. */
  kill(why?: Problem): void {
    this.#usable = false;
    this.#endedFor ??= why;
    this.#killed = true;
    this.#endGroup();
    this.#child.kill('SIGKILL');
  }

  /** What it has started. */
  #endGroup(): void {
    if (this.#folder === undefined || this.#child.pid === undefined) return;
    try {
      process.kill(-this.#child.pid, 'SIGKILL');
    } catch {
      // Nothing of the group is left.
    }
  }

  async #removeFolder(): Promise<undefined> {
    if (this.#folder === undefined) return;
    // A process that is ending may still write.
    const options = { recursive: true, force: true, maxRetries: 5, retryDelay: 100 };
    await rm(this.#folder, options).catch(() => undefined);
  }

  /** Ends it and waits until it is gone. */
  async end(): Promise<void> {
    this.#child.ref();
    this.kill();
    await this.gone;
  }

  /** A worker without work keeps no process alive. */
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
    if (this.#killed) return busy('This replica is shutting down. Try again.');
    if (by === 'SIGKILL' || outOfMemory.test(this.#stderr)) return this.#tooMuch();
    return new Problem(toolFailed, 'The engine of this tool crashed.', {
      cause: new Error(`worker ended by ${by ?? `code ${code ?? '?'}`}: ${this.#stderr}`),
    });
  }
}

function notStarted(): Problem {
  return busy(`A worker did not start within ${startMs / 1000} s. Try again in 5 seconds.`);
}

/** Processes with the same key can stand in for one another. */
export function keyOf({ module, memoryMb, quickStart, startsProgram }: ProcessOptions): string {
  return `${memoryMb} ${quickStart ? 'quick' : 'usual'} ${startsProgram ? 'program' : 'alone'} ${module.href}`;
}
