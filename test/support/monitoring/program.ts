// A program of ours as a process of its own, which a test can end as a machine would and start again at the same ports.
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';

const root = join(import.meta.dirname, '../../..');
const slowClock = pathToFileURL(join(import.meta.dirname, 'slow-clock.ts')).href;

export interface ProgramOptions {
  /** Path of its file in the project, or in `folder`. */
  readonly file: string;
  /** Where it runs, such as the files of an image; default: the project. */
  readonly folder?: string;
  readonly internalPort: number;
  readonly variables: Readonly<Record<string, string>>;
}

export interface Program {
  /** Starts it and waits until it is ready. `behindMs`: its clock is behind by so much, until `setClock`. */
  start(options?: { readonly behindMs?: number }): Promise<void>;
  /** Id of its process. */
  pid(): number;
  /** Sets its clock right. */
  setClock(): void;
  /** Ends it by SIGKILL, as if it had used more memory than it may. */
  stop(): Promise<void>;
}

export function program({ file, folder = root, internalPort, variables }: ProgramOptions): Program {
  let child: ChildProcess | undefined;
  const atExit = (): void => void child?.kill('SIGKILL');
  return {
    async start({ behindMs } = {}) {
      const slow = behindMs === undefined ? [] : ['--import', slowClock];
      const started = spawn(process.execPath, [...slow, join(folder, file)], {
        cwd: folder,
        env: {
          PATH: process.env['PATH'],
          HOME: process.env['HOME'],
          NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
          ...variables,
          MOORAGE_INTERNAL_PORT: String(internalPort),
          LOG_LEVEL: 'error',
          ...(behindMs === undefined ? {} : { SLOW_CLOCK_MS: String(behindMs) }),
        },
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      const written: string[] = [];
      for (const stream of [started.stdout, started.stderr])
        stream.on('data', (chunk: Buffer) => written.push(chunk.toString()));
      child = started;
      process.once('exit', atExit);
      await ready(started, internalPort, () => `${file} is not ready: ${written.join('')}`);
    },
    pid: () => child?.pid ?? 0,
    setClock() {
      child?.kill('SIGUSR2');
    },
    async stop() {
      process.off('exit', atExit);
      if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
    },
  };
}

/** Longer than a start on a busy machine takes. */
const patienceMs = 240_000;

async function ready(child: ChildProcess, port: number, why: () => string): Promise<void> {
  const end = Date.now() + patienceMs;
  for (;;) {
    if (child.exitCode !== null || child.signalCode !== null || Date.now() > end) throw new Error(why());
    // A connection that is accepted and never answered must not be waited for.
    const signal = AbortSignal.timeout(5_000);
    const answer = await fetch(`http://127.0.0.1:${port}/readyz`, { signal }).catch(() => undefined);
    if (answer?.ok === true) return;
    await sleep(50);
  }
}
