// Runs a program with bounded memory for its output, and kills it when its signal aborts.
import { spawn } from 'node:child_process';
import { OutputTail } from '../../lib/child-process.ts';

export interface RunOptions {
  /** The complete environment: nothing is inherited. */
  readonly env: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly signal?: AbortSignal;
  /** Receives every chunk of stdout. If it throws, the program is killed and {@link run} throws the error. */
  readonly onStdout?: (chunk: Buffer) => void;
  readonly onStderr?: (chunk: Buffer) => void;
  /** Maximum number of bytes to keep from the end of stdout and stderr each. Default 1 MiB. */
  readonly keepBytes?: number;
}

export interface RunResult {
  /** Exit code; null if a signal ended the program. */
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program to its end. @throws if it cannot be started, if `onStdout` throws, or if `signal` aborts */
export function run(command: string, args: readonly string[], options: RunOptions): Promise<RunResult> {
  options.signal?.throwIfAborted();
  const keep = options.keepBytes ?? 1024 * 1024;
  const [stdout, stderr] = [new OutputTail(keep), new OutputTail(keep)];
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      env: { ...options.env },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    });
    let failure: unknown;
    const end = (reason: unknown): void => {
      failure ??= reason;
      killGroup(child.pid);
    };
    const onAbort = (): void => {
      end(options.signal?.reason ?? new Error('stopped'));
    };
    const pipe =
      (tail: OutputTail, sink?: (chunk: Buffer) => void) =>
      (chunk: Buffer): void => {
        tail.add(chunk);
        try {
          if (failure === undefined) sink?.(chunk);
        } catch (error) {
          end(error);
        }
      };
    options.signal?.addEventListener('abort', onAbort, { once: true });
    child.stdout.on('data', pipe(stdout, options.onStdout));
    child.stderr.on('data', pipe(stderr, options.onStderr));
    child.on('error', (error) => {
      failure ??= error;
    });
    child.on('close', (code, signal) => {
      options.signal?.removeEventListener('abort', onAbort);
      if (failure === undefined) resolve({ code, signal, stdout: stdout.toText(), stderr: stderr.toText() });
      else reject(failure instanceof Error ? failure : new Error('stopped', { cause: failure }));
    });
  });
}

/** Kills a program and everything that it started (it leads its own process group). */
function killGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
