// One run of CPython (WebAssembly), in a thread of its own: a thread that never comes back can be ended, and what it has
// written until then is known.
import { readFileSync } from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';
import { Exit, System } from './wasi.ts';
import { webAssembly, type Memory, type Module } from './webassembly.ts';

export interface Run {
  readonly module: Module;
  /** JSON for boot.py. */
  readonly task: string;
}

/** What the thread says. `ended` comes last, if it comes. */
export type Said =
  | { readonly kind: 'begun' }
  | { readonly kind: 'wrote'; readonly stream: 'stdout' | 'stderr'; readonly bytes: Uint8Array }
  | { readonly kind: 'ended'; /** Of memory: it never shrinks. */ readonly bytes: number };

const boot = readFileSync(new URL('boot.py', import.meta.url), 'utf8');
const { module, task } = workerData as Run;
const say = (said: Said): void => {
  parentPort?.postMessage(said);
};
const system = new System({
  // Isolated, without site packages and cached code.
  args: ['python', '-I', '-S', '-B', '-X', 'utf8', '-c', boot],
  input: new TextEncoder().encode(task),
  begun: () => {
    say({ kind: 'begun' });
  },
  write: (stream, bytes) => {
    say({ kind: 'wrote', stream, bytes: bytes.slice() });
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
say({ kind: 'ended', bytes: memory.buffer.byteLength });
