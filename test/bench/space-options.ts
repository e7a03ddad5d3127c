// The command line of `npm run bench:space`, read before anything is started.
import { readCommandLine, parseWholeNumber } from '../../lib/command-line.ts';

const usage = `usage: npm run bench:space -- [BUILDS] [--keep-all]

  BUILDS       how many builds in a row (default: 200)
  --keep-all   remove nothing, to see what would be taken without it

Builds small images with BuildKit and pushes them to a registry of its own on a disk of 512 MiB. Needs root.`;

export const { builds, keepsAll } = readCommandLine(
  { usage, options: { 'keep-all': { type: 'boolean', default: false } }, positionals: 1 },
  ({ values, positionals: [text = '200'] }) => ({
    builds: parseWholeNumber('BUILDS', text),
    keepsAll: values['keep-all'],
  }),
);
