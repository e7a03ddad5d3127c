// Reads the command line of `up`, `down` and `status`.
import { parseArgs } from 'node:util';

export interface Arguments {
  command: 'up' | 'down' | 'status';
  /** A kubeconfig context: use that cluster rather than making one. */
  context: string | undefined;
  /** Use kind, also where the one-machine node could run. */
  kind: boolean;
  /** A file of chart values for that cluster. */
  values: string | undefined;
  httpsPort: number | undefined;
  httpPort: number | undefined;
  /** With `down`: remove the cache too. */
  purge: boolean;
  help: boolean;
}

export const usage = `usage: npm run up -- [--kind] [--https-port N] [--http-port N]
       npm run up -- --context NAME [--values FILE]
       npm run status
       npm run down -- [--purge]

  --kind           use a kind cluster in Docker, even where the one-machine node can run
  --context NAME   install on a cluster that you have: the kubeconfig context NAME
  --values FILE    chart values for that cluster (see charts/moorage/values.yaml)
  --https-port N   port of the gateway on this machine (443)
  --http-port N    port that redirects to it (80)
  --purge          with down: remove the cache of compiled parts and images as well, and kind's images from Docker`;

export class UsageError extends Error {
  override name = 'UsageError';
}

function port(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const value = Number(text);
  if (!/^\d+$/.test(text) || value < 1 || value > 65_535)
    throw new UsageError(`--${name} is "${text}": give a port between 1 and 65535`);
  return value;
}

const options = {
  context: { type: 'string' },
  kind: { type: 'boolean', default: false },
  values: { type: 'string' },
  'https-port': { type: 'string' },
  'http-port': { type: 'string' },
  purge: { type: 'boolean', default: false },
  help: { type: 'boolean', default: false },
} as const;

function parse(argv: readonly string[]) {
  try {
    return parseArgs({ args: [...argv], options, allowPositionals: true });
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

function readCommand([command, ...rest]: readonly string[]): Arguments['command'] {
  if (command !== 'up' && command !== 'down' && command !== 'status')
    throw new UsageError(`give one of up, down and status, not "${command ?? ''}"`);
  if (rest.length > 0) throw new UsageError(`"${rest[0] ?? ''}" is one word too many`);
  return command;
}

/** Throws UsageError, with a message for the person who typed it. */
export function readArguments(argv: readonly string[]): Arguments {
  const { values, positionals } = parse(argv);
  const command = readCommand(positionals);
  if (values.values !== undefined && values.context === undefined)
    throw new UsageError('--values goes with --context: the local cluster has values of its own');
  if (values.kind && values.context !== undefined)
    throw new UsageError('--kind and --context name two clusters: give one of them');
  const [httpsPort, httpPort] = [port('https-port', values['https-port']), port('http-port', values['http-port'])];
  if (httpsPort !== undefined && httpsPort === httpPort)
    throw new UsageError(`--https-port and --http-port are both ${httpsPort}: give two ports`);
  return {
    command,
    context: values.context,
    kind: values.kind,
    values: values.values,
    httpsPort,
    httpPort,
    purge: values.purge,
    help: values.help,
  };
}
