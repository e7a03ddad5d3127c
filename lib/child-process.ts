// Runs a program, and bounds what a child process learns from us and how much of its output we keep.
import { spawn } from 'node:child_process';

/** An allow-list, so that no variable that was given to this process reaches another program. */
const inherited = [
  'PATH',
  'HTTP_PROXY',
  'HTTPS_PROXY',
  'NO_PROXY',
  'http_proxy',
  'https_proxy',
  'no_proxy',
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
  'GIT_SSL_CAINFO',
  'TMPDIR',
] as const;

/** The environment of a child process: where to find programs, proxies and certificates, and nothing else. */
export function buildChildEnvironment(variables: NodeJS.ProcessEnv = process.env): Record<string, string> {
  const environment = inherited.flatMap((name) =>
    variables[name] === undefined ? [] : [[name, variables[name]] as const],
  );
  return { LC_ALL: 'C.UTF-8', HOME: '/nonexistent', ...Object.fromEntries(environment) };
}

/** Keeps the last bytes of a stream, so that the memory used for a program that prints without end stays bounded. */
export class OutputTail {
  readonly #limit: number;
  #chunks: Buffer[] = [];
  #bytes = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  add(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    if (this.#bytes > 2 * this.#limit) this.#compact();
  }

  toText(): string {
    this.#compact();
    return Buffer.concat(this.#chunks).toString('utf8');
  }

  #compact(): void {
    const output = Buffer.concat(this.#chunks);
    const tail = output.length > this.#limit ? Buffer.from(output.subarray(output.length - this.#limit)) : output;
    this.#chunks = [tail];
    this.#bytes = tail.length;
  }
}

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
