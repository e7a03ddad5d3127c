// Runs a function of a module in a thread of its own, with a limit of time and of memory, so that hostile input can at most lose its own call.

export interface WorkerTask {
  /** Module whose default export is `(input) => Promise<output>`; input and output are structured-cloned. */
  readonly module: URL;
  readonly input: unknown;
  /** Default 20 000. */
  readonly timeoutMs?: number;
  /** Heap of the thread; default 256. */
  readonly memoryMb?: number;
  readonly signal?: AbortSignal;
}

export interface Workers {
  /** @throws Problem (tool-limit) when time or memory ran out; what the module throws otherwise. The caller parses the output with zod. */
  run(task: WorkerTask): Promise<unknown>;
  close(): Promise<void>;
}
