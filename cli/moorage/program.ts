// Defines what a command of `moorage` is, parses its command line, and renders its help. The same definitions give the
// completion scripts and docs/reference/cli.md.
import type { ParseArgsOptionDescriptor } from 'node:util';
import { parseCommandLine, UsageError } from '../../lib/command-line.ts';
import { findNearestNames } from '../../lib/problem.ts';
import type { ReconnectOptions } from '../submit/api-client.ts';
import type { Api } from './client.ts';
import type { Config } from './config.ts';
import type { Terminal } from './output.ts';

/** An option, as Node parses it, with its help. */
export interface OptionSpec extends ParseArgsOptionDescriptor {
  readonly about: string;
  /** What stands for the value in the help; absent for a flag. */
  readonly value?: string;
  /** All values that are accepted, for completion. */
  readonly choices?: readonly string[];
}
export type OptionSpecs = Readonly<Record<string, OptionSpec>>;

/** An argument that belongs to no option. */
export interface ArgumentSpec {
  /** Upper case, as the help shows it. */
  readonly name: string;
  readonly about: string;
  readonly optional?: boolean;
  /** Takes all further arguments too. */
  readonly rest?: boolean;
  readonly choices?: readonly string[];
}

type Values<Options extends OptionSpecs> = ReturnType<typeof parseCommandLine<Options>>['values'];
export type CommonValues = Values<typeof commonOptions>;

/** What a command works with. */
export interface Session {
  readonly terminal: Terminal;
  readonly environment: NodeJS.ProcessEnv;
  /** The folder in which the program was called. */
  readonly folder: string;
  readonly config: Config;
  readonly common: CommonValues;
  /** How broken streams are resumed. */
  readonly reconnect: ReconnectOptions;
  /**
   * Connects to the installation until the command ends, with another address or key than those that are known if given.
   *
   * @throws UsageError if no installation is known
   */
  readonly connect: (target?: { readonly api?: string | undefined; readonly key?: string }) => Promise<Api>;
}

export const groups = [
  'Get started',
  'Watch',
  'Run',
  'Settings',
  'Notifications',
  'Keys and records',
  'Other',
] as const;

interface CommandDefinition<Options extends OptionSpecs> {
  /** One word, or two for a command of a family such as `secrets set`. */
  readonly name: string;
  readonly group: (typeof groups)[number];
  /** One sentence without a full stop, in the imperative. */
  readonly summary: string;
  /** Further paragraphs of its help. */
  readonly details?: readonly string[];
  readonly arguments?: readonly ArgumentSpec[];
  readonly options?: Options;
  /** Command lines without `moorage`. */
  readonly examples: readonly string[];
  /** What an argument too many is answered with, where it may be a secret that must not be repeated. */
  readonly excess?: string;
  /** Resolves with the exit code; undefined is 0. */
  readonly run: (
    input: { readonly values: Values<Options>; readonly positionals: readonly string[] },
    session: Session,
  ) => Promise<number | undefined>;
}

export interface Command {
  readonly name: string;
  readonly group: (typeof groups)[number];
  readonly summary: string;
  readonly details: readonly string[];
  readonly arguments: readonly ArgumentSpec[];
  readonly options: OptionSpecs;
  readonly examples: readonly string[];
  /** Parses the arguments and returns what is to be run. @throws UsageError */
  readonly prepare: (args: readonly string[]) => {
    readonly common: CommonValues;
    readonly start: (session: Session) => Promise<number | undefined>;
  };
}

/** Options of every command. */
export const commonOptions = {
  api: {
    type: 'string',
    value: 'URL',
    about: 'address of the installation (default: MOORAGE_API, then the last login)',
  },
  'ca-file': {
    type: 'string',
    value: 'FILE',
    about: 'certificate authority to trust (default: MOORAGE_CA, then that of the local cluster)',
  },
  json: {
    type: 'boolean',
    default: false,
    about: 'print JSON; one document per line if the command follows something',
  },
  help: { type: 'boolean', short: 'h', default: false, about: 'print this help' },
} as const satisfies OptionSpecs;

export const exitCodes = {
  ok: 0,
  refused: 1,
  usage: 2,
  unreachable: 3,
} as const;

/** What each exit code means, for the help and the reference. */
export const exitCodeMeanings: readonly (readonly [number, string])[] = [
  [exitCodes.ok, 'done'],
  [exitCodes.refused, 'refused by the API or by the review of a commit, or not possible'],
  [exitCodes.usage, 'wrong command line'],
  [exitCodes.unreachable, 'the installation does not answer'],
];

export function defineCommand<const Options extends OptionSpecs>(definition: CommandDefinition<Options>): Command {
  const { arguments: specs = [], details = [], options, excess, run, ...rest } = definition;
  const all = { ...options, ...commonOptions } as Options & typeof commonOptions;
  const hasRest = excess !== undefined || specs.some((spec) => spec.rest === true);
  const positionals = hasRest ? Number.MAX_SAFE_INTEGER : specs.length;
  return {
    ...rest,
    details,
    arguments: specs,
    options: options ?? {},
    prepare(args) {
      const parsed = parseCommandLine({ options: all, positionals }, args);
      if (excess !== undefined && parsed.positionals.length > specs.length) throw new UsageError(excess);
      const missing = specs.find((spec, index) => spec.optional !== true && parsed.positionals[index] === undefined);
      if (missing !== undefined) throw new UsageError(`${missing.name} is required: ${missing.about}`);
      const common = parsed.values as unknown as CommonValues;
      const values = parsed.values as unknown as Values<Options>;
      return { common, start: (session) => run({ values, positionals: parsed.positionals }, session) };
    },
  };
}

/** A command with its arguments, or, without one, a family such as `secrets`; the empty family has all commands. */
export interface Selection {
  readonly command: Command | undefined;
  readonly args: readonly string[];
  readonly family?: string;
}

/** Finds the command that a command line names. @throws UsageError for an unknown one */
export function selectCommand(commands: readonly Command[], args: readonly string[]): Selection {
  const [first = '', second = ''] = args;
  const command =
    commands.find(({ name }) => name === `${first} ${second}`) ?? commands.find(({ name }) => name === first);
  if (command !== undefined) return { command, args: args.slice(command.name.split(' ').length) };
  if (['', '--help', '-h'].includes(first)) return { command, args, family: '' };
  if (first.startsWith('-')) throw new UsageError(`unknown option "${first}": options follow the command`);
  const family = commands.filter(({ name }) => name.startsWith(`${first} `));
  if (family.length > 0 && (second === '' || second.startsWith('-'))) return { command, args, family: first };
  throw new UsageError(
    family.length > 0 ? describeUnknown(`${first} ${second}`, family) : describeUnknown(first, commands),
  );
}

function describeUnknown(name: string, commands: readonly Command[]): string {
  const near = findNearestNames(
    name,
    commands.map((command) => command.name),
  );
  return `unknown command "${name}"${near.length === 0 ? '' : `. Did you mean ${near.join(' or ')}?`}`;
}

// Help

/** The list of all commands. */
export function renderOverview(commands: readonly Command[]): string {
  const width = Math.max(...commands.map(({ name }) => name.length));
  const sections = groups.flatMap((group) => {
    const rows = commands.filter((command) => command.group === group);
    return rows.length === 0
      ? []
      : [
          `${group}\n${renderRows(
            rows.map(({ name, summary }) => [name, summary]),
            width,
          )}`,
        ];
  });
  return [
    'Run your apps on Moorage from the command line.',
    'usage: moorage COMMAND [ARGUMENTS] [OPTIONS]',
    ...sections,
    `Options of every command\n${renderOptions(commonOptions)}`,
    `APP is the name of an app, OWNER/NAME or the address of its repository. In a clone of the repository, leave it out.
\`moorage COMMAND --help\` has examples. ${formatExitCodes()}`,
  ].join('\n\n');
}

/** The commands of a family such as `secrets`. */
export function renderFamily(commands: readonly Command[], family: string): string {
  const rows = commands.filter(({ name }) => name.startsWith(`${family} `));
  const width = Math.max(...rows.map(({ name }) => name.length));
  return [
    `usage: moorage ${family} COMMAND [ARGUMENTS] [OPTIONS]`,
    renderRows(
      rows.map(({ name, summary }) => [name, summary]),
      width,
    ),
    `\`moorage ${family} COMMAND --help\` has examples.`,
  ].join('\n\n');
}

export function renderHelp(command: Command): string {
  const { summary, details, arguments: specs, options, examples } = command;
  return [
    `${summary}.`,
    `usage: ${formatUsage(command)}`,
    ...details,
    ...(specs.length === 0 ? [] : [`Arguments\n${renderRows(specs.map(({ name, about }) => [name, about]))}`]),
    `Options\n${renderOptions({ ...options, ...commonOptions })}`,
    `Examples\n${examples.map((example) => `  $ ${formatExample(example)}`).join('\n')}`,
  ].join('\n\n');
}

/** One line, without the options of every command. */
export function formatUsage({ name, arguments: specs, options }: Command): string {
  const parts = specs.map(({ name: argument, optional = false, rest = false }) => {
    const text = `${argument}${rest ? '…' : ''}`;
    return optional ? `[${text}]` : text;
  });
  return [
    'moorage',
    name,
    ...parts,
    ...Object.entries(options).map(([option, spec]) => `[${formatOption(option, spec)}]`),
  ].join(' ');
}

/** An example as it is typed. One with a pipe or a redirection has `moorage` where it belongs. */
export function formatExample(example: string): string {
  return example.includes('moorage ') ? example : `moorage ${example}`;
}

/** An option with its short form and its value. */
export function formatOption(name: string, { short, value }: OptionSpec): string {
  return `${short === undefined ? '' : `-${short}, `}--${name}${value === undefined ? '' : ` ${value}`}`;
}

export function formatExitCodes(): string {
  return `Exit codes: ${exitCodeMeanings.map(([code, meaning]) => `${code} ${meaning}`).join('; ')}.`;
}

function renderOptions(options: OptionSpecs): string {
  return renderRows(Object.entries(options).map(([name, spec]) => [formatOption(name, spec), spec.about]));
}

const helpWidth = 100;

/** Two columns; the second one is wrapped. */
function renderRows(
  rows: readonly (readonly [string, string])[],
  width = Math.max(...rows.map(([name]) => name.length)),
): string {
  const start = ' '.repeat(width + 4);
  return rows
    .flatMap(([name, text]) =>
      wrapText(text, helpWidth - start.length).map((line, index) =>
        index === 0 ? `  ${name.padEnd(width)}  ${line}` : `${start}${line}`,
      ),
    )
    .join('\n');
}

function wrapText(text: string, width: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last === undefined || last.length + word.length + 1 > width) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines;
}
