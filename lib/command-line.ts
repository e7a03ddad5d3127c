// Parses the command line of a program, and prints the usage if it is wrong.
import { parseArgs, type ParseArgsConfig } from 'node:util';

type Options = NonNullable<ParseArgsConfig['options']>;
type ParsedArguments<O extends Options> = ReturnType<
  typeof parseArgs<{ args: string[]; options: O; allowPositionals: true }>
>;

/** The arguments that a program accepts, besides --help and -h. */
export interface CommandLine<O extends Options> {
  /** Printed for --help, and below the message where the command line is wrong. */
  readonly usage: string;
  readonly options: O;
  /** Maximum number of arguments that belong to no option; 0 unless set. */
  readonly positionals?: number;
}

/** Thrown for a command line that the program does not accept. The message is for the person who typed it. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** EX_USAGE of sysexits.h. */
export const usageExitCode = 64;

/**
 * Reads this program's arguments with `read`, which may also throw a UsageError. Prints the usage and exits with 0 if help
 * was requested, with 64 if the command line is wrong.
 */
export function readCommandLine<O extends Options, T>(
  commandLine: CommandLine<O>,
  read: (parsed: ParsedArguments<O>) => T,
  args: readonly string[] = process.argv.slice(2),
): T {
  if (args.includes('--help') || args.includes('-h')) {
    process.stdout.write(`${commandLine.usage}\n`);
    process.exit(0);
  }
  try {
    return read(parseCommandLine(commandLine, args));
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    process.stderr.write(`${error.message}\n\n${commandLine.usage}\n`);
    process.exit(usageExitCode);
  }
}

/** Parses arguments. @throws UsageError */
export function parseCommandLine<O extends Options>(
  { options, positionals: maximum = 0 }: Omit<CommandLine<O>, 'usage'>,
  args: readonly string[],
): ParsedArguments<O> {
  const parsed = parse(options, args);
  const extra = parsed.positionals[maximum];
  if (extra !== undefined) throw new UsageError(`unexpected argument "${extra}"`);
  return parsed;
}

function parse<O extends Options>(options: O, args: readonly string[]): ParsedArguments<O> {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true });
  } catch (error) {
    // Keep the first sentence only: the rest is advice on how to pass a value that begins with a dash.
    const [first = ''] = (error instanceof Error ? error.message : String(error)).split(/\. |\.?\n/);
    throw new UsageError(first.replace(/^[A-Z](?=[a-z])/, (letter) => letter.toLowerCase()));
  }
}

/** Parses an option that is a whole number. @throws UsageError if it is not one, or is out of range */
export function parseWholeNumber(
  option: string,
  text: string,
  range: { minimum?: number; maximum?: number } = {},
): number {
  const { minimum = 1, maximum = Number.MAX_SAFE_INTEGER } = range;
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= minimum && value <= maximum) return value;
  const allowed = range.maximum === undefined ? `of ${minimum} or more` : `from ${minimum} to ${maximum}`;
  throw new UsageError(`${option} must be a whole number ${allowed}, not "${text}"`);
}
