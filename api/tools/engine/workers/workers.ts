// The interface of workers: they run a module's function in a separate process with a time and a memory limit, so that
// hostile input can only break its own call.
//
// Processes, not threads: if a thread runs out of memory where V8 or native code cannot recover (an array that doubles
// past the limit is enough), the whole process ends, and native code in a thread cannot be stopped.
//
// This file does not import zod: a worker process loads it, and starts in half the time without.
import { Problem } from '../../../../lib/problem.ts';
import { toolBusy } from '../../problems.ts';
import type { Reply } from './worker-process.ts';

/** Default limits of a task. */
export const defaultTimeoutMs = 20_000;
export const defaultMemoryMb = 256;

export interface WorkerTask {
  /**
   * Module whose default export is `(input) => output`, awaited; input and output are structured-cloned.
   * A Problem that it throws arrives as that Problem. It has no environment variables and can read only the program's
   * own files.
   */
  readonly module: URL;
  readonly input?: unknown;
  /** Loads the input when a worker is free, instead of `input`: a waiting task then needs no memory here. */
  readonly load?: () => Promise<unknown>;
  /** Counted from when a worker is ready for the task; default `usualMs`. */
  readonly timeoutMs?: number;
  /**
   * Limit of the JavaScript heap, and of each WebAssembly memory; all memory together may be twice that. Default
   * `usualMb`.
   */
  readonly memoryMb?: number;
  /**
   * Compiles WebAssembly fast without optimizing it: for a large module of which each call runs little. Default false.
   */
  readonly quickStart?: boolean;
  /**
   * The module starts a program, which counts to its memory limit, ends with it and has a folder to write to. Default
   * false.
   */
  readonly startsProgram?: boolean;
  /** The process is slow to start, so it is kept while idle, as long as there is room. Default false. */
  readonly warm?: boolean;
}

/** The call that a task is part of. A ToolContext is one. */
export interface WorkerCall {
  /** The caller: callers take turns. */
  readonly owner: string;
  readonly signal?: AbortSignal;
  /** Pauses the call's time limit while its task waits for a worker. */
  readonly waiting?: <Value>(wait: Promise<Value>) => Promise<Value>;
}

export interface Workers {
  /**
   * @throws Problem (tool-limit) if the task exceeds its time or memory limit, Problem (tool-busy) if too many tasks wait or
   * this one waits too long, Problem (tool-failed) if the process crashes, the signal's reason if aborted; otherwise what
   * the module throws.
   * The caller parses the output with zod.
   */
  run(task: WorkerTask, call: WorkerCall): Promise<unknown>;
  /** Ends all processes; running and waiting tasks fail. */
  close(): Promise<void>;
}

/** The problem of a task for which no worker is available now. */
export function createBusyProblem(why: string, options: { readonly cause?: unknown } = {}): Problem {
  return new Problem(toolBusy, why, { headers: { 'retry-after': '5' }, ...options });
}

/** Converts an error to a message, because structured clone would lose the type of a problem. */
export function toErrorReply(error: unknown, spent: boolean): Reply {
  if (error instanceof Problem) {
    return {
      kind: 'refused',
      problem: {
        type: { ...error.type },
        detail: error.message,
        members: { ...error.members },
        errors: [...error.errors],
      },
      spent,
    };
  }
  const { message, stack = '' } = error instanceof Error ? error : new Error(String(error));
  return { kind: 'failed', message: message.slice(0, 2_000), stack: stack.slice(0, 8_000), spent };
}
