// The command line of `npm run bench:pipeline`, read before anything looks for a cluster.
import { readCommandLine, parseWholeNumber } from '../../lib/command-line.ts';

const usage = `usage: npm run bench:pipeline -- [ROUNDS]

  ROUNDS   how many times to measure (default: 5)`;

export const rounds = readCommandLine({ usage, options: {}, positionals: 1 }, ({ positionals: [text = '5'] }) =>
  parseWholeNumber('ROUNDS', text),
);
