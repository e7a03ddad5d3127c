// Runs git by simple-git, hardened and within bounds of memory, output and time.
import { simpleGit } from 'simple-git';
import { OutputTail } from '../output-tail.ts';
import { gitEnvironment, simpleGitOptions, type GitBounds } from './hardening.ts';

export interface GitOptions extends GitBounds {
  /** The folder that git runs in. */
  readonly folder: string;
}

/** Options of one run. */
export interface GitRunOptions {
  readonly signal?: AbortSignal | undefined;
  /** Sees every piece of stdout; an error that it throws ends git and is thrown by the run. */
  readonly onStdout?: (chunk: Buffer) => void;
  /** Maximum number of bytes kept of stdout and stderr each, from the end; default 64 KiB. */
  readonly keepBytes?: number;
  /** Overrides the bound of the same name for this run. */
  readonly fileBytes?: number;
}

export interface GitResult {
  /** Exit code; 128 and the signal's number when a signal ended git. */
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs git with these arguments. It never throws for an exit code: the caller judges it. */
export type Git = (args: readonly string[], options?: GitRunOptions) => Promise<GitResult>;

/** Makes a git that trusts nothing, in one folder. */
export function createGit(options: GitOptions): Git {
  return (args, runOptions = {}) => {
    const { fileBytes = options.fileBytes } = runOptions;
    return run(args, { ...options, fileBytes }, runOptions);
  };
}

async function run(args: readonly string[], options: GitOptions, runOptions: GitRunOptions): Promise<GitResult> {
  const { signal, onStdout, keepBytes = 64 * 1024 } = runOptions;
  signal?.throwIfAborted();
  const stop = new AbortController();
  const [stdout, stderr] = [new OutputTail(keepBytes), new OutputTail(keepBytes)];
  let code = -1;
  const git = simpleGit({
    ...simpleGitOptions(options),
    baseDir: options.folder,
    abort: signal === undefined ? stop.signal : AbortSignal.any([signal, stop.signal]),
    completion: { onClose: true, onExit: false },
    // It takes a git that a signal ended for one that succeeded, so the code is read here and judged by the caller.
    errors: (_error, result) => {
      code = result.exitCode;
      if (code < 0) stderr.add(Buffer.concat(result.stdErr));
      return undefined;
    },
  });
  const watch = (stream: NodeJS.ReadableStream, tail: OutputTail, sink?: (chunk: Buffer) => void): void => {
    // simple-git keeps all that it is sent, however much that is; its listener gives way to one that does not.
    stream.removeAllListeners('data');
    stream.on('data', (chunk: Buffer) => {
      tail.add(chunk);
      try {
        if (!stop.signal.aborted) sink?.(chunk);
      } catch (error) {
        stop.abort(error);
      }
    });
  };
  git.env(gitEnvironment(options)).outputHandler((_command, out, err) => {
    watch(out, stdout, onStdout);
    watch(err, stderr);
  });
  await git.raw([...args]);
  stop.signal.throwIfAborted();
  signal?.throwIfAborted();
  return { code, stdout: stdout.text(), stderr: stderr.text() };
}
