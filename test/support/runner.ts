// Runs files of test/fixtures/runner in a process of its own, and says what was counted.
import { join } from 'node:path';
import { runProjects } from '../projects.ts';

const [limitMs = '', ...patterns] = process.argv.slice(2);
const root = join(import.meta.dirname, '../fixtures/runner');
const tally = await runProjects({
  projects: ['broken'],
  patterns,
  limitMs: Number(limitMs),
  options: { root },
});
process.stdout.write(`\n${JSON.stringify(tally)}\n`, () => process.exit(0));
