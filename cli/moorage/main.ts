// `moorage`: the program with which authors run their apps.
import product from '../../package.json' with { type: 'json' };
import { UsageError } from '../../lib/command-line.ts';
import { paths } from '../../localnode/paths.ts';
import type { ReconnectOptions } from '../submit/api-client.ts';
import { Fault } from '../submit/installation.ts';
import { Api } from './client.ts';
import { commands } from './commands.ts';
import { Config } from './config.ts';
import { reportError, Terminal, type TerminalStreams } from './output.ts';
import {
  type CommonValues,
  exitCodes,
  formatUsage,
  renderFamily,
  renderHelp,
  renderOverview,
  selectCommand,
  type Selection,
  type Session,
} from './program.ts';

/** What the program uses of its process. */
export interface ProgramContext {
  readonly streams: TerminalStreams;
  readonly environment: NodeJS.ProcessEnv;
  /** The folder in which it was called. */
  readonly folder: string;
  /** What `up` wrote about the cluster on this machine. */
  readonly localFolder?: string;
  readonly reconnect?: ReconnectOptions;
}

/** Runs a command line. Resolves with the exit code. */
export async function runProgram(args: readonly string[], context: ProgramContext): Promise<number> {
  const terminal = new Terminal(context.streams, context.environment, args.includes('--json'));
  let usage = 'usage: moorage COMMAND [ARGUMENTS] [OPTIONS]';
  try {
    if (args[0] === '--version') {
      terminal.printResult({ version: product.version }, () => product.version);
      return exitCodes.ok;
    }
    const isHelp = args[0] === 'help' || args.includes('--help') || args.includes('-h');
    const words = args[0] === 'help' ? args.slice(1) : args;
    const selection = selectCommand(commands, words);
    if (selection.command === undefined || isHelp) {
      terminal.printLine(renderSelection(selection));
      return isHelp ? exitCodes.ok : exitCodes.usage;
    }
    usage = `usage: ${formatUsage(selection.command)}`;
    const { common, start } = selection.command.prepare(selection.args);
    return await runSession(common, terminal, context, start);
  } catch (error) {
    if (!(error instanceof UsageError || error instanceof Fault)) throw error;
    return reportError(error, terminal, usage);
  }
}

function renderSelection({ command, family = '' }: Selection): string {
  if (command !== undefined) return renderHelp(command);
  return family === '' ? renderOverview(commands) : renderFamily(commands, family);
}

/** Runs a command, and closes its connections. */
async function runSession(
  common: CommonValues,
  terminal: Terminal,
  { environment, folder, localFolder = paths.local, reconnect = {} }: ProgramContext,
  start: (session: Session) => Promise<number | undefined>,
): Promise<number> {
  const config = new Config(environment, folder, localFolder);
  const open: Api[] = [];
  const session: Session = {
    terminal,
    environment,
    folder,
    config,
    common,
    reconnect,
    connect: async ({ api, key } = {}) => {
      const target = await config.resolveTarget({ ...common, api: api ?? common.api });
      const connected = new Api(key === undefined ? target : { ...target, key }, reconnect);
      open.push(connected);
      return connected;
    },
  };
  try {
    return (await start(session)) ?? exitCodes.ok;
  } finally {
    await Promise.all(open.map(async (each) => each.close()));
  }
}

if (import.meta.main) {
  // A reader such as `head` that has enough is no error.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    process.exit(error.code === 'EPIPE' ? 0 : 1);
  });
  process.exitCode = await runProgram(process.argv.slice(2), {
    streams: process,
    environment: process.env,
    // npm runs scripts in the root of the project, whichever folder it was called in.
    folder: process.env['INIT_CWD'] ?? process.cwd(),
  });
}
