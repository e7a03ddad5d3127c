// Runs the checks in stages and closes with one line that counts them all: `N passed, N failed`.
import { execa } from 'execa';
import { createVitest } from 'vitest/node';
import { stages, type Stage } from './stages.ts';
import { line, nothing, sum, TallyReporter, tallyOf, type Tally } from './tally.ts';

const [command = 'check', ...patterns] = process.argv.slice(2);

/** What a command says is shown as it comes when it runs alone, and in one piece when it runs beside others. */
async function runTools({ commands }: Extract<Stage, { kind: 'tools' }>): Promise<Tally> {
  const alone = commands.length === 1;
  const ended = await Promise.all(
    commands.map(async ([file = '', ...rest]) => {
      const result = await execa(file, rest, {
        reject: false,
        stdin: 'ignore',
        all: true,
        ...(alone ? { stdout: 'inherit', stderr: 'inherit' } : {}),
      });
      if (!alone) process.stdout.write(`${result.all ?? ''}\n`);
      return result.exitCode === 0;
    }),
  );
  const passed = ended.filter(Boolean).length;
  return { ...nothing, passed, failed: ended.length - passed };
}

/** A stage that does not end within its limit has failed, and nothing can follow: its workers may still be at work. */
async function runTests({ project, limitMs }: Extract<Stage, { kind: 'tests' }>): Promise<Tally> {
  const reporter = new TallyReporter();
  const vitest = await createVitest({ project, watch: false, passWithNoTests: true, reporters: ['default', reporter] });
  const limit = Promise.withResolvers<'hung'>();
  const timer = setTimeout(limit.resolve, limitMs, 'hung');
  const ended = await Promise.race([vitest.start([...patterns]), limit.promise]);
  clearTimeout(timer);
  if (ended === 'hung') {
    process.stdout.write(`${project} did not end within ${limitMs / 60_000} minutes\n`);
    return sum(tallyOf(vitest.state.getTestModules()), { ...nothing, failed: 1 });
  }
  await vitest.close();
  return reporter.tally;
}

let total = nothing;
for (const stage of stages(command)) {
  if (patterns.length > 0 && stage.kind === 'tools') continue;
  const started = performance.now();
  process.stdout.write(`\n== ${stage.name}\n`);
  const tally = stage.kind === 'tools' ? await runTools(stage) : await runTests(stage);
  total = sum(total, tally);
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  process.stdout.write(`== ${stage.name}: ${line(tally)} in ${seconds} s\n`);
  if (tally.failed > 0 && stage.gate) break;
}
process.stdout.write(`\n${line(total)}\n`);
process.exit(total.failed > 0 || total.passed === 0 ? 1 : 0);
