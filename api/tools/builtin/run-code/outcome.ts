// The outcome of running code, in any language, the text that it wrote, and the limits of time and memory, which the
// tool and its worker processes share.

/** A task of a worker process. */
export interface CodeTask {
  readonly code: string;
  readonly input: unknown;
  /** How long the code may run. */
  readonly limitMs?: number;
}

export const defaultLimitMs = 5_000;

const cpuCheckMs = 500;

/**
 * Calls `end` once this process has used so much more CPU time than at the call. Returns a function that stops the watch.
 */
export function limitCpuTime(limitMs: number, end: () => void): () => void {
  const before = process.cpuUsage();
  const timer = setInterval(() => {
    const { user, system } = process.cpuUsage(before);
    if ((user + system) / 1000 <= limitMs) return;
    clearInterval(timer);
    end();
  }, cpuCheckMs);
  return () => {
    clearInterval(timer);
  };
}

export interface Fault {
  readonly name: string;
  readonly message: string;
  readonly line: number | null;
  readonly stack: string;
}

export interface Outcome {
  readonly ok: boolean;
  readonly value: unknown;
  readonly value_type: string;
  readonly value_text: string;
  readonly error: Fault | null;
}

export interface Log {
  readonly level: string;
  readonly text: string;
}

export function createFailure(error: Fault): Outcome {
  return { ok: false, value: null, value_type: 'undefined', value_text: '', error };
}

/** Collects the text of streams up to a maximum: consecutive text of one stream is one entry. */
export class Logs {
  truncated = false;
  readonly #entries: { level: string; text: string }[] = [];
  #left: number;

  constructor(maxCharacters: number) {
    this.#left = maxCharacters;
  }

  add(level: string, text: string): void {
    const kept = text.slice(0, this.#left);
    this.#left -= kept.length;
    if (kept.length < text.length) this.truncated = true;
    if (kept === '') return;
    const last = this.#entries.at(-1);
    if (last?.level === level) last.text += kept;
    else this.#entries.push({ level, text: kept });
  }

  /** Each entry without its final line end. */
  get entries(): readonly Log[] {
    return this.#entries.map(({ level, text }) => ({ level, text: text.replace(/\n$/, '') }));
  }
}

/** Memory of the Python interpreter. */
export const pythonMb = 128;
/** Memory of its process, including the thread around the interpreter and the compiled code. */
export const processMb = 256;
