// `npm run up`, `down` and `status`: reads the command line and runs the command on the chosen target.
import { readCommandLine } from '../lib/command-line.ts';
import { commandLine, readArguments, type Arguments } from './arguments.ts';
import { printLine } from './report.ts';
import { StepError } from '../localnode/steps.ts';
import { pickTarget } from './targets.ts';

async function main(args: Arguments): Promise<number> {
  const target = await pickTarget(args);
  if (args.command === 'up') await target.up();
  if (args.command === 'down') await target.down();
  if (args.command !== 'status') return 0;
  const problems = await target.status();
  for (const problem of problems) printLine(`  -> ${problem}`);
  printLine(problems.length === 0 ? 'everything is running' : 'not everything is running');
  return problems.length === 0 ? 0 : 1;
}

const args = readCommandLine(commandLine, readArguments);
try {
  process.exitCode = await main(args);
} catch (error) {
  const message = error instanceof Error ? error.message : String(error);
  // A step that failed has been shown in full where it failed.
  const text =
    error instanceof StepError
      ? `step "${error.step}" failed: fix the cause and run the same command again; finished steps are skipped`
      : message;
  process.stderr.write(`\n${text}\n`);
  process.exitCode = 1;
}
