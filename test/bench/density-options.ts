// The command line of `npm run bench:density`, read before anything looks for a cluster.
import { readCommandLine } from '../../lib/command-line.ts';

const usage = `usage: npm run bench:density -- [COUNTS]

  COUNTS   how many apps are live when a new one is submitted, by comma (default: 1,50,100)

Fills the running cluster with small apps, and removes them at its end.`;

export const counts = readCommandLine(
  { usage, options: {}, positionals: 1 },
  ({ positionals: [text = '1,50,100'] }) => {
    const numbers = text.split(',').map(Number);
    if (numbers.some((each) => !Number.isInteger(each) || each < 1 || each > 200))
      throw new Error('COUNTS is a list of whole numbers from 1 to 200, like 1,50,100');
    return numbers.toSorted((one, other) => one - other);
  },
);
