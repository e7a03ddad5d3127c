// Reads the command line of `up`, `down` and `status`, and defines the target that they act on.
import { type parseCommandLine, UsageError, parseWholeNumber } from '../lib/command-line.ts';
import { selectTools, type ToolServiceName } from './install/tool-services.ts';

export interface Arguments {
  command: 'up' | 'down' | 'status';
  /** A kubeconfig context: use that cluster instead of creating one. */
  context: string | undefined;
  /** Use kind, even where the one-machine node could run. */
  kind: boolean;
  /** A file of chart values for that cluster. */
  values: string | undefined;
  httpsPort: number | undefined;
  httpPort: number | undefined;
  /** Base images to build on demand, by the beginning of their name in the catalog. */
  baseImages: readonly string[];
  /** Services behind tools that a local cluster runs. */
  tools: readonly ToolServiceName[];
  /** With `down`: remove the cache as well. */
  purge: boolean;
}

/** A cluster on which Moorage runs, and what each command does there. */
export interface Target {
  up: () => Promise<void>;
  down: () => Promise<void>;
  /** Prints the state of the installation and returns the problems. */
  status: () => Promise<string[]>;
}

const usage = `usage: npm run up -- [--kind | --base-images LIST] [--tools LIST] [--https-port N] [--http-port N]
       npm run up -- --context NAME [--values FILE]
       npm run status
       npm run down -- [--purge]

  --kind           use a kind cluster in Docker, even where the one-machine node can run
  --context NAME   install on an existing cluster: the kubeconfig context NAME
  --values FILE    chart values for that cluster (see charts/moorage/values.yaml)
  --base-images LIST  make these base images now, rather than when an app first needs them: all, planned
                   (those of the languages that Moorage plans), or names such as golang,java,python-3.12
  --tools LIST     services behind tools to run once Moorage answers: all (the default), none, or some of
                   speech, languagetool, pdftranslator, gotenberg, searxng
  --https-port N   port of the gateway on this machine (443)
  --http-port N    port that redirects to it (80)
  --purge          with down: remove the cache of compiled parts and images as well, and kind's images from Docker`;

/** For `readCommandLine`, together with `readArguments`. */
export const commandLine = {
  usage,
  options: {
    context: { type: 'string' },
    kind: { type: 'boolean', default: false },
    values: { type: 'string' },
    'base-images': { type: 'string' },
    tools: { type: 'string' },
    'https-port': { type: 'string' },
    'http-port': { type: 'string' },
    purge: { type: 'boolean', default: false },
  },
  positionals: 1,
} as const;

type ParsedArguments = ReturnType<typeof parseCommandLine<typeof commandLine.options>>;

/** @throws UsageError, with a message for the person who typed it */
export function readArguments({ values, positionals: [command] }: ParsedArguments): Arguments {
  if (command !== 'up' && command !== 'down' && command !== 'status')
    throw new UsageError(`the command must be up, down or status, not "${command ?? ''}"`);
  const { context, kind, values: file, purge } = values;
  if (file !== undefined && context === undefined)
    throw new UsageError('--values requires --context: the local cluster has its own values');
  if (kind && context !== undefined)
    throw new UsageError('--kind and --context cannot be used together: each selects a cluster');
  return {
    command,
    context,
    kind,
    values: file,
    purge,
    baseImages: readBaseImages(values),
    tools: readTools(values),
    ...readPorts(values),
  };
}

/** On an existing cluster the chart values decide. */
function readTools({ context, tools }: ParsedArguments['values']): readonly ToolServiceName[] {
  if (tools !== undefined && context !== undefined)
    throw new UsageError('--tools is for local clusters: set tools.<service>.enabled in the file of --values');
  return selectTools(tools ?? 'all');
}

/** Only the one-machine node builds base images; elsewhere they come from Docker Hub. */
function readBaseImages({ kind, context, 'base-images': list }: ParsedArguments['values']): readonly string[] {
  if (list === undefined) return [];
  if (kind || context !== undefined)
    throw new UsageError('--base-images is for the one-machine node: other clusters take base images from Docker Hub');
  return list.split(',').map((each) => each.trim());
}

function readPorts(values: ParsedArguments['values']): Pick<Arguments, 'httpsPort' | 'httpPort'> {
  const [httpsPort, httpPort] = [
    readPort('--https-port', values['https-port']),
    readPort('--http-port', values['http-port']),
  ];
  if (httpsPort !== undefined && httpsPort === httpPort)
    throw new UsageError(`--https-port and --http-port must differ; both are ${httpsPort}`);
  return { httpsPort, httpPort };
}

const readPort = (option: string, text: string | undefined): number | undefined =>
  text === undefined ? undefined : parseWholeNumber(option, text, { maximum: 65_535 });
