// Names the transports of MCP, and decides which of those that a program's code can speak its start command speaks.
import type { mcpTransports } from '../../../../crds/values.ts';
import type { LanguageName } from '../../../../crds/languages.ts';
import type { Certainty } from '../recipe.ts';

export type McpTransport = (typeof mcpTransports)[number];

/** A program of the repository that is an MCP server. */
export interface McpProgram {
  readonly language: LanguageName;
  /** Name among the servers of the repository: a command, or its file. */
  readonly name: string;
  /** The file that starts it. */
  readonly file: string;
  /** Go: folder of its package main. Node: that of its package in a workspace. */
  readonly folder?: string;
  /** Start command, as shell text; the language's planner runs it in the app's folder. */
  readonly command: string;
  readonly speaks: Speech;
  /** Where it listens, unless it only speaks stdio. */
  readonly listening?: McpListening;
  /** Path at which it answers MCP; the usual one of its library if the code names none. */
  readonly path?: string;
  /** The command belongs to the project, which has to be installed first (Python). */
  readonly ofProject?: true;
  /** Packages that the command needs and the author may not have listed (Python). */
  readonly needs?: readonly string[];
}

export interface McpListening {
  /** Port that it listens on, regardless of $PORT. */
  readonly port?: number | undefined;
  /** Only its own container reaches it, or it rejects host names other than localhost. */
  readonly isLocal: boolean;
}

/** What the code of a program shows of its transports. */
export interface Speech {
  readonly transports: readonly McpTransport[];
  /** What it speaks without options. */
  readonly byDefault: McpTransport;
  readonly certainty: Certainty;
  /** The end of a sentence that begins with the name of the file. */
  readonly because: string;
  /** How each transport is chosen at the start, as shell text around the command; absent: it cannot be. */
  readonly choice?: TransportChoice | undefined;
}

/** An option of the command line, a variable, or a command for each, that chooses the transport. */
export interface TransportChoice {
  readonly kind: 'option' | 'variable' | 'command';
  readonly name: string;
  /** How the code spells each transport. */
  readonly spellings: ReadonlyMap<McpTransport, string>;
}

const names: Readonly<Record<string, McpTransport>> = {
  stdio: 'stdio',
  sse: 'sse',
  http: 'streamable-http',
  streamable: 'streamable-http',
  streamablehttp: 'streamable-http',
  httpstream: 'streamable-http',
  httpstreamable: 'streamable-http',
  shttp: 'streamable-http',
};

/** Reads a transport as code and manifests spell it: `streamable-http`, `streamableHttp`, `httpStream`, `STDIO`. */
export function parseTransport(text: string | undefined): McpTransport | undefined {
  const plain = (text ?? '').toLowerCase().replace(/[\s_-]/g, '');
  return Object.hasOwn(names, plain) ? names[plain] : undefined;
}

/** Names of variables that choose the transport. */
export const transportVariable = /(?:^|_)(?:TRANSPORT(?:_TYPE|_MODE)?|MCP_MODE|SERVER_MODE)$/;

/** Reads a switch that turns on another transport than stdio: `--http`, `--use-sse`. */
export function parseSwitch(text: string): McpTransport[] {
  const transport = parseTransport(/^--(?:use-|enable-)?([\w-]{1,20})$/.exec(text)?.[1]);
  return transport === undefined || transport === 'stdio' ? [] : [transport];
}

/** Finds how texts of the code spell each transport. */
export function findSpellings(
  used: readonly McpTransport[],
  texts: readonly string[],
): ReadonlyMap<McpTransport, string> {
  return new Map(
    used.flatMap((transport) => {
      const text = texts.find((each) => parseTransport(each) === transport);
      return text === undefined ? [] : [[transport, text] as const];
    }),
  );
}

/** What was found in the sources of one program, whatever their language. */
export interface SpeechEvidence {
  /** Transports that the code uses, with the word or call that shows each. */
  readonly used: ReadonlyMap<McpTransport, string>;
  /** Defaults of the option or variable that chooses the transport, as the code spells them. */
  readonly defaults: readonly string[];
  readonly choice?: TransportChoice | undefined;
  /** A switch turns another transport on: `--http`, `--sse`. */
  readonly switches: readonly McpTransport[];
}

/** Decides what a program speaks without options; undefined if its code speaks none. */
export function decideSpeech({ used, defaults, choice, switches }: SpeechEvidence): Speech | undefined {
  const transports = [...used.keys()];
  const [first, ...more] = transports;
  if (first === undefined) return undefined;
  if (more.length === 0)
    return {
      transports,
      byDefault: first,
      certainty: 'likely',
      because: `starts it over ${describe(first, used)}`,
      choice,
    };
  const known = [...new Set(defaults.map(parseTransport))].filter((each) => each !== undefined);
  const [only] = known;
  if (known.length === 1 && only !== undefined)
    return {
      transports: used.has(only) ? transports : [only, ...transports],
      byDefault: only,
      certainty: 'likely',
      because: `starts it over ${only} by default`,
      choice,
    };
  const unswitched = transports.filter((each) => !switches.includes(each));
  const [rest] = unswitched;
  if (switches.length > 0 && unswitched.length === 1 && rest !== undefined)
    return {
      transports,
      byDefault: rest,
      certainty: 'likely',
      because: `starts it over ${describe(rest, used)} unless an option asks for another transport`,
      choice,
    };
  const byDefault = used.has('stdio') ? 'stdio' : used.has('streamable-http') ? 'streamable-http' : first;
  return {
    transports,
    byDefault,
    certainty: 'guessed',
    because: `can start it over ${transports.join(' and ')}`,
    choice,
  };
}

function describe(transport: McpTransport, used: ReadonlyMap<McpTransport, string>): string {
  const evidence = used.get(transport);
  return evidence === undefined ? transport : `${transport} (${evidence})`;
}

/** A program with a command for each transport does nothing without one. */
export function decideCommandSpeech(commands: ReadonlyMap<McpTransport, string>): Speech {
  const transports = [...commands.keys()];
  const byDefault = commands.has('stdio') ? 'stdio' : (transports[0] ?? 'stdio');
  return {
    transports,
    byDefault,
    certainty: 'likely',
    because: `has a command for ${transports.join(' and ')}`,
    choice: { kind: 'command', name: '', spellings: commands },
  };
}

/** Adds to a start command what makes it speak a transport; undefined if nothing does. */
export function chooseTransport(
  command: string,
  { byDefault, choice }: Speech,
  wanted: McpTransport,
): string | undefined {
  const spelling = choice?.spellings.get(wanted);
  if (choice?.kind === 'command' && spelling !== undefined) return `${command} ${spelling}`;
  if (wanted === byDefault) return command;
  if (choice === undefined || spelling === undefined) return undefined;
  return choice.kind === 'option' ? `${command} ${choice.name} ${spelling}` : `${choice.name}=${spelling} ${command}`;
}
