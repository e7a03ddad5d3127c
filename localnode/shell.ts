// Runs other programs, reports a failure with the command and the end of its output, and waits for conditions.
import { setTimeout as sleep } from 'node:timers/promises';
import { execa } from 'execa';

export interface RunOptions {
  cwd?: string;
  env?: Record<string, string>;
  input?: string;
  /** A file that receives both output streams as well. */
  log?: string;
  /** Receives each line of both output streams as it arrives. */
  onLine?: (line: string) => void;
  signal?: AbortSignal;
}

export class CommandError extends Error {
  override name = 'CommandError';
  readonly exitCode: number | undefined;
  constructor(command: string, exitCode: number | undefined, output: string, log?: string) {
    const lines = output.trim().split('\n');
    // A program may run on for long after the disk is full, and end with another message.
    const full = lines.slice(0, -15).find((line) => /no space left on device/i.test(line));
    const tail = [...(full === undefined ? [] : [full.trim(), '...']), ...lines.slice(-15)].join('\n  ');
    const where = log === undefined ? '' : ` (full output: ${log})`;
    super(
      `\`${command}\` ${exitCode === undefined ? 'did not exit by itself' : `exited with code ${exitCode}`}${where}\n  ${tail}`,
    );
    this.exitCode = exitCode;
  }
}

/** Runs a program to its end and returns its standard output, trimmed. Throws CommandError unless it exits with 0. */
export async function run(file: string, args: readonly string[], options: RunOptions = {}): Promise<string> {
  const { log, input, cwd, env, signal, onLine } = options;
  const output = [
    'pipe' as const,
    ...(log === undefined ? [] : [{ file: log, append: true as const }]),
    ...(onLine === undefined ? [] : [watchLines(onLine)]),
  ];
  const result = await execa(file, args, {
    reject: false,
    all: true,
    ...(cwd === undefined ? {} : { cwd }),
    ...(env === undefined ? {} : { env }),
    ...(input === undefined ? { stdin: 'ignore' as const } : { input }),
    ...(signal === undefined ? {} : { cancelSignal: signal }),
    stdout: output,
    stderr: output,
    maxBuffer: 64 * 1024 * 1024,
  });
  if (result.failed) {
    const text = [result.all, result.message].find((each) => each !== undefined && each !== '') ?? '';
    throw new CommandError([file, ...args].join(' ').slice(0, 300), result.exitCode, text, log);
  }
  return result.stdout.trim();
}

/** Passes each line through unchanged, and to `onLine`. */
function watchLines(onLine: (line: string) => void) {
  return function* (line: unknown): Generator<unknown, void, void> {
    if (typeof line === 'string') onLine(line);
    yield line;
  };
}

/** Returns true if the program exits with 0, false if it exits with another code or does not exist. */
export async function canRun(file: string, args: readonly string[]): Promise<boolean> {
  const result = await execa(file, args, { reject: false, stdio: 'ignore' });
  return !result.failed;
}

/** Runs a program and shows its output to the user. */
export async function runVisibly(
  file: string,
  args: readonly string[],
  options: { cwd?: string; env?: Record<string, string> } = {},
): Promise<void> {
  const result = await execa(file, args, { reject: false, stdio: ['ignore', 'inherit', 'inherit'], ...options });
  if (result.failed) throw new CommandError([file, ...args].join(' '), result.exitCode, result.message ?? '');
}

export interface WaitOptions {
  /** Seconds after which to give up. */
  seconds: number;
  /** Milliseconds between two checks; default 250. */
  every?: number;
  /** Called once after the timeout, for a hint on the cause. */
  readHint?: () => Promise<string>;
}

/**
 * Calls `look` until it returns a value other than false or undefined. An error counts as "not yet". Throws after the
 * timeout, and names the awaited condition.
 */
export async function waitFor<T>(
  condition: string,
  look: () => Promise<T | false | undefined>,
  options: WaitOptions,
): Promise<T> {
  const end = Date.now() + options.seconds * 1000;
  let last = '';
  for (;;) {
    try {
      const value = await look();
      if (value !== false && value !== undefined) return value;
    } catch (error) {
      last = error instanceof Error ? error.message : String(error);
    }
    if (Date.now() >= end) break;
    await sleep(options.every ?? 250);
  }
  const hint = options.readHint === undefined ? '' : await options.readHint();
  throw new Error(
    [`timed out after ${options.seconds} s waiting for ${condition}`, last, hint]
      .filter((line) => line !== '')
      .join('\n  '),
  );
}
