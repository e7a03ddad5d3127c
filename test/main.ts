// Runs the checks in stages and closes with one line that counts them all: `N passed, N failed`.
import { execa } from 'execa';
import { runProjects } from './projects.ts';
import { stages, type Stage, type TestStage, type ToolStage } from './stages.ts';
import { line, nothing, sum, type Tally } from './tally.ts';

const [command = 'check', ...patterns] = process.argv.slice(2);

/** What a command says is shown as it comes when it runs alone, and in one piece when it runs beside others. */
async function runTools({ commands }: ToolStage): Promise<Tally> {
  const alone = commands.length === 1;
  const ended = await Promise.all(
    commands.map(async ([file = '', ...rest]) => {
      const result = await execa(file, rest, {
        reject: false,
        stdin: 'ignore',
        all: true,
        ...(alone ? { stdout: 'inherit', stderr: 'inherit' } : {}),
      });
      if (!alone && result.all !== undefined) process.stdout.write(`${result.all}\n`);
      return result.exitCode === 0 ? [] : [[file, ...rest].join(' ')];
    }),
  );
  const failures = ended.flat();
  return { ...nothing, passed: ended.length - failures.length, failed: failures.length, failures };
}

/** Patterns of the command line replace those of a stage, and name files that need not have changed. */
function runTests(stage: TestStage): Promise<Tally> {
  if (patterns.length === 0) return runProjects({ ...stage, patterns: stage.patterns ?? [] });
  return runProjects({ ...stage, patterns, onlyRelated: false });
}

async function runStage(stage: Stage): Promise<Tally> {
  const started = performance.now();
  process.stdout.write(`\n== ${stage.name}\n`);
  const tally = stage.kind === 'tools' ? await runTools(stage) : await runTests(stage);
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  process.stdout.write(`== ${stage.name}: ${line(tally)} in ${seconds} s\n`);
  return tally;
}

let total = nothing;
for (const group of stages(command)) {
  const wanted = group.filter(
    (stage) => patterns.length === 0 || (stage.kind === 'tests' && stage.patterns === undefined),
  );
  const tallies = await Promise.all(wanted.map(runStage));
  total = sum(total, ...tallies);
  if (wanted.some(({ gate }, index) => gate && (tallies[index]?.failed ?? 1) > 0)) break;
}
process.stdout.write(`\n${total.failures.map((name) => `failed: ${name}\n`).join('')}${line(total)}\n`);
process.exit(total.failed > 0 || total.passed === 0 ? 1 : 0);
