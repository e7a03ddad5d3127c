// One run of CPython (WebAssembly), in its own thread: a thread that never returns can be terminated, and its output
// until then is known.
import { readFileSync } from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';
import { Exit, System, webAssembly, type Memory, type Module } from './wasi.ts';

export interface InterpreterTask {
  readonly module: Module;
  /** JSON for boot.py. */
  readonly task: string;
}

/** Messages of the thread. `ended` is the last one, but can be missing. */
export type InterpreterMessage =
  | { readonly kind: 'begun' }
  | { readonly kind: 'wrote'; readonly stream: 'stdout' | 'stderr'; readonly bytes: Uint8Array }
  | { readonly kind: 'ended'; /** Size of the memory, which never shrinks. */ readonly bytes: number };

const boot = readFileSync(new URL('boot.py', import.meta.url), 'utf8');
const { module, task } = workerData as InterpreterTask;
const send = (message: InterpreterMessage): void => {
  parentPort?.postMessage(message);
};
const system = new System({
  // Isolated, without site packages and cached code.
  args: ['python', '-I', '-S', '-B', '-X', 'utf8', '-c', boot],
  input: new TextEncoder().encode(task),
  onInputRead: () => {
    send({ kind: 'begun' });
  },
  write: (stream, bytes) => {
    send({ kind: 'wrote', stream, bytes: bytes.slice() });
  },
});
const instance = await webAssembly.instantiate(module, system.imports(module));
const memory = instance.exports['memory'] as Memory;
system.memory = memory;
try {
  (instance.exports['_start'] as () => void)();
} catch (error) {
  if (!(error instanceof Exit)) throw error;
}
send({ kind: 'ended', bytes: memory.buffer.byteLength });
