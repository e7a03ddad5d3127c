// The system that Python runs on: arguments, a clock, random bytes, standard input and output, and nothing else. Every
// other WASI call returns "not supported", so there is no file, no network and no way out to guard.
import { randomFillSync } from 'node:crypto';

// The part of WebAssembly that is used here: TypeScript declares it only together with the whole browser.
export interface Memory {
  /** A new buffer after each growth. */
  readonly buffer: ArrayBuffer;
}

/** Compiled code, which can be sent to a thread. */
export interface Module {
  readonly [Symbol.toStringTag]: 'WebAssembly.Module';
}

export type Imports = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

interface Api {
  compile(bytes: Uint8Array): Promise<Module>;
  instantiate(module: Module, imports: Imports): Promise<{ readonly exports: Readonly<Record<string, unknown>> }>;
  readonly Module: { imports(module: Module): readonly { readonly name: string }[] };
}

export const webAssembly = (globalThis as unknown as { readonly WebAssembly: Api }).WebAssembly;

/** Receives the output of Python. */
export type Write = (stream: 'stdout' | 'stderr', bytes: Uint8Array) => void;

export interface SystemOptions {
  readonly args: readonly string[];
  /** All of standard input. */
  readonly input: Uint8Array;
  /** Called once, when Python has read standard input to its end. */
  readonly onInputRead: () => void;
  readonly write: Write;
}

/** Thrown to leave the program. */
export class Exit extends Error {
  override readonly name = 'Exit';
}

/** Numbers of WASI preview 1. */
const errno = { success: 0, badDescriptor: 8, invalid: 28, notSupported: 52, notSeekable: 70 } as const;
const characterDevice = 2;
/** Random bytes are generated in steps of this size: all in one step would block the process. */
const maxRandom = 65_536;

export class System {
  readonly #args: readonly Uint8Array[];
  readonly #input: Uint8Array;
  readonly #onInputRead: () => void;
  readonly #write: Write;
  readonly #sleeper = new Int32Array(new SharedArrayBuffer(4));
  #memory: Memory = { buffer: new ArrayBuffer(0) };
  #read = 0;
  #ended = false;

  constructor({ args, input, onInputRead, write }: SystemOptions) {
    this.#args = args.map((text) => new TextEncoder().encode(`${text}\0`));
    this.#input = input;
    this.#onInputRead = onInputRead;
    this.#write = write;
  }

  /** The imports of the module. */
  imports(module: Module): Imports {
    const known = this.#createCalls();
    const functions = webAssembly.Module.imports(module).map(({ name }): [string, () => number] => [
      name,
      known[name] ?? (() => errno.notSupported),
    ]);
    return { wasi_snapshot_preview1: Object.fromEntries(functions) };
  }

  set memory(memory: Memory) {
    this.#memory = memory;
  }

  #createCalls(): Readonly<Record<string, (...words: never[]) => number>> {
    return {
      args_sizes_get: (count: number, size: number) => {
        this.#putWord(count, this.#args.length);
        this.#putWord(
          size,
          this.#args.reduce((sum, { length }) => sum + length, 0),
        );
        return errno.success;
      },
      args_get: (pointers: number, to: number) => this.#giveArgs(pointers, to),
      environ_sizes_get: (count: number, size: number) => {
        this.#putWord(count, 0);
        this.#putWord(size, 0);
        return errno.success;
      },
      environ_get: () => errno.success,
      clock_res_get: (_clock: number, to: number) => this.#putLong(to, 1_000n),
      clock_time_get: (clock: number, _precision: bigint, to: number) => this.#putLong(to, readClock(clock)),
      random_get: (to: number, length: number) => this.#random(to, length),
      fd_read: (descriptor: number, vectors: number, count: number, size: number) =>
        descriptor === 0 ? this.#giveInput(vectors, count, size) : errno.badDescriptor,
      fd_write: (descriptor: number, vectors: number, count: number, size: number) =>
        this.#takeOutput(descriptor, vectors, count, size),
      fd_fdstat_get: (descriptor: number, to: number) => this.#describe(descriptor, to),
      fd_filestat_get: (descriptor: number, to: number) => this.#describeFile(descriptor, to),
      fd_seek: () => errno.notSeekable,
      fd_tell: () => errno.notSeekable,
      fd_close: () => errno.success,
      fd_prestat_get: () => errno.badDescriptor,
      fd_prestat_dir_name: () => errno.badDescriptor,
      poll_oneoff: (from: number, to: number, count: number, done: number) => this.#sleep(from, to, count, done),
      sched_yield: () => errno.success,
      proc_exit: (status: number) => {
        throw new Exit(`exit ${status}`);
      },
    };
  }

  #giveArgs(pointers: number, to: number): number {
    let at = to;
    for (const [index, arg] of this.#args.entries()) {
      this.#putWord(pointers + 4 * index, at);
      this.#bytes(at, arg.length).set(arg);
      at += arg.length;
    }
    return errno.success;
  }

  #random(to: number, length: number): number {
    for (let at = 0; at < length; at += maxRandom)
      randomFillSync(this.#bytes(to + at, Math.min(maxRandom, length - at)));
    return errno.success;
  }

  #giveInput(vectors: number, count: number, size: number): number {
    const before = this.#read;
    for (const room of this.#vectors(vectors, count)) {
      const given = this.#input.subarray(this.#read, this.#read + room.length);
      room.set(given);
      this.#read += given.length;
    }
    this.#putWord(size, this.#read - before);
    if (this.#read === before && !this.#ended) {
      this.#ended = true;
      this.#onInputRead();
    }
    return errno.success;
  }

  #takeOutput(descriptor: number, vectors: number, count: number, size: number): number {
    if (descriptor !== 1 && descriptor !== 2) return errno.badDescriptor;
    let written = 0;
    for (const bytes of this.#vectors(vectors, count)) {
      this.#write(descriptor === 1 ? 'stdout' : 'stderr', bytes);
      written += bytes.length;
    }
    this.#putWord(size, written);
    return errno.success;
  }

  #describe(descriptor: number, to: number): number {
    if (descriptor > 2) return errno.badDescriptor;
    this.#bytes(to, 24).fill(0);
    this.#view().setUint8(to, characterDevice);
    // All rights: calls that are not implemented cannot be used anyway.
    this.#view().setBigUint64(to + 8, 0xffff_ffffn, true);
    return errno.success;
  }

  #describeFile(descriptor: number, to: number): number {
    if (descriptor > 2) return errno.badDescriptor;
    this.#bytes(to, 64).fill(0);
    this.#view().setUint8(to + 16, characterDevice);
    return errno.success;
  }

  /** Waits for the first clock subscription; other events never occur. */
  #sleep(from: number, to: number, count: number, done: number): number {
    const view = this.#view();
    const clockEvent = 0;
    for (let index = 0; index < count; index += 1) {
      const at = from + 48 * index;
      if (view.getUint8(at + 8) !== clockEvent) continue;
      const timeout = view.getBigUint64(at + 24, true);
      const absolute = (view.getUint16(at + 40, true) & 1) === 1;
      const left = absolute ? timeout - readClock(view.getUint32(at + 16, true)) : timeout;
      if (left > 0n) Atomics.wait(this.#sleeper, 0, 0, Math.min(Number(left) / 1e6, 60_000));
      this.#bytes(to, 32).fill(0);
      view.setBigUint64(to, view.getBigUint64(at, true), true);
      this.#putWord(done, 1);
      return errno.success;
    }
    return errno.notSupported;
  }

  #vectors(at: number, count: number): Uint8Array[] {
    const view = this.#view();
    return Array.from({ length: count }, (_, index) =>
      this.#bytes(view.getUint32(at + 8 * index, true), view.getUint32(at + 8 * index + 4, true)),
    );
  }

  #view(): DataView {
    return new DataView(this.#memory.buffer);
  }

  #bytes(at: number, length: number): Uint8Array {
    return new Uint8Array(this.#memory.buffer, at >>> 0, length >>> 0);
  }

  #putWord(at: number, value: number): void {
    this.#view().setUint32(at, value, true);
  }

  #putLong(at: number, value: bigint): number {
    this.#view().setBigUint64(at, value, true);
    return errno.success;
  }
}

/** In nanoseconds. */
function readClock(clock: number): bigint {
  return clock === 0 ? BigInt(Date.now()) * 1_000_000n : BigInt(Math.round(performance.now() * 1e6));
}
