// Reads the command line of `attack`.
import { UsageError, type parseCommandLine } from '../../lib/command-line.ts';

export interface Arguments {
  /** A kubeconfig context: the cluster that is attacked, if it is not the local one. */
  readonly context: string | undefined;
  /** Address of its API. */
  readonly url: string | undefined;
  /** Namespace of the release. */
  readonly namespace: string;
  /** Only attacks whose name has this word. */
  readonly only: string | undefined;
}

/** Give it to `readCommandLine`, with `readArguments`. */
export const commandLine = {
  usage: `usage: npm run attack -- [--only WORD]
       npm run attack -- --url URL [--context NAME] [--namespace NAME] [--only WORD]

Repeats known attacks on an installation that you operate, and reports of each whether it holds.

  --url URL         address of the API, like https://apps.example.org; default: the local cluster
  --context NAME    kubeconfig context of that cluster, with the rights of its operator
  --namespace NAME  namespace of the release (moorage-system)
  --only WORD       only attacks whose name has this word

Apps named attack-… are submitted and removed again. exit codes: 0 nothing open, 1 something open, 64 wrong usage`,
  options: {
    url: { type: 'string' },
    context: { type: 'string' },
    namespace: { type: 'string', default: 'moorage-system' },
    only: { type: 'string' },
  },
} as const;

/** @throws UsageError, with a message for the person who typed it */
export function readArguments({ values }: ReturnType<typeof parseCommandLine<typeof commandLine.options>>): Arguments {
  const { url, context, namespace, only } = values;
  if (url !== undefined && !URL.canParse(url)) throw new UsageError(`--url must be a URL, not "${url}"`);
  if (context !== undefined && url === undefined)
    throw new UsageError('--context requires --url: the address of the API on that cluster');
  return { url, context, namespace, only };
}
