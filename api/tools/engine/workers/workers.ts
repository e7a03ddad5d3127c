// Runs a function of a module in a process of its own, with a limit of time and of memory, so that hostile input can at
// most lose its own call.
//
// Processes and not threads: a thread that runs out of memory ends its process as well where V8 or native code has no
// way back (an array that doubles past the limit is enough), and native code cannot be stopped within a thread.

/** Limits of a task that names none. */
export const usualMs = 20_000;
export const usualMb = 256;

export interface WorkerTask {
  /**
   * Module whose default export is `(input) => output`, awaited; input and output are structured-cloned.
   * A Problem that it throws arrives as that Problem. It sees no environment, and reads no files but the program's own.
   */
  readonly module: URL;
  readonly input?: unknown;
  /** Gives the input once a worker is free, in place of `input`: until then it takes no memory here. */
  readonly load?: () => Promise<unknown>;
  /** From when a worker is ready for it; default `usualMs`. */
  readonly timeoutMs?: number;
  /**
   * JavaScript heap, and likewise one memory of WebAssembly; all memory together is at most twice that. Default
   * `usualMb`.
   */
  readonly memoryMb?: number;
  /**
   * WebAssembly is compiled fast and never optimised: for a large module of which each call runs little. Default false.
   */
  readonly quickStart?: boolean;
  /**
   * Its module starts a program, which counts to its memory and ends with it, and has a folder to write to. Default
   * false.
   */
  readonly startsProgram?: boolean;
  /** Its process is slow to start: it is kept while nobody calls, as long as there is room. Default false. */
  readonly warm?: boolean;
}

/** The call that a task is part of; the context of a tool is one. */
export interface WorkerCall {
  /** Whose call it is: callers take turns. */
  readonly owner: string;
  readonly signal?: AbortSignal;
  /** Stops the clock of the call while its task waits for a worker. */
  readonly waiting?: <Value>(wait: Promise<Value>) => Promise<Value>;
}

export interface Workers {
  /**
   * @throws Problem (tool-limit) when time or memory ran out, Problem (tool-busy) when too many wait or it waits too long,
   * Problem (tool-failed) when the process crashed, the signal's reason when aborted; what the module throws otherwise.
   * The caller parses the output with zod.
   */
  run(task: WorkerTask, call: WorkerCall): Promise<unknown>;
  /** Ends all processes; what runs or waits fails. */
  close(): Promise<void>;
}
