// Runs other programs, and turns a failure into an error that shows the command and the end of what it said.
import { execa } from 'execa';

export interface RunOptions {
  cwd?: string;
  env?: Record<string, string>;
  input?: string;
  /** A file to send both output streams to; nothing is returned then. */
  log?: string;
  signal?: AbortSignal;
}

export class CommandError extends Error {
  override name = 'CommandError';
  readonly exitCode: number | undefined;
  constructor(command: string, exitCode: number | undefined, output: string, log?: string) {
    const tail = output.trim().split('\n').slice(-15).join('\n  ');
    const where = log === undefined ? '' : ` (whole output: ${log})`;
    super(
      `\`${command}\` ended with ${exitCode === undefined ? 'no exit code' : `code ${exitCode}`}${where}\n  ${tail}`,
    );
    this.exitCode = exitCode;
  }
}

/** Runs a program to its end and returns its standard output, trimmed. Throws CommandError unless it exits with 0. */
export async function run(file: string, args: readonly string[], options: RunOptions = {}): Promise<string> {
  const { log, input, cwd, env, signal } = options;
  const output = log === undefined ? 'pipe' : ['pipe' as const, { file: log, append: true as const }];
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
    const said = [result.all, result.message].find((text) => text !== undefined && text !== '') ?? '';
    throw new CommandError([file, ...args].join(' ').slice(0, 300), result.exitCode, said, log);
  }
  return result.stdout.trim();
}

/** True when the program exits with 0, false when it exits with anything else or is not there. */
export async function succeeds(file: string, args: readonly string[]): Promise<boolean> {
  const result = await execa(file, args, { reject: false, stdio: 'ignore' });
  return !result.failed;
}

/** Runs a program whose output a person should see as it comes. */
export async function runVisibly(
  file: string,
  args: readonly string[],
  options: { cwd?: string; env?: Record<string, string> } = {},
): Promise<void> {
  const result = await execa(file, args, { reject: false, stdio: ['ignore', 'inherit', 'inherit'], ...options });
  if (result.failed) throw new CommandError([file, ...args].join(' '), result.exitCode, result.message ?? '');
}
