// Runs the checks in stages and closes with one line that counts them all: `N passed, N failed`.
import { globSync } from 'node:fs';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import { execa } from 'execa';
import { stages, type Stage } from './stages.ts';

interface Tally {
  passed: number;
  failed: number;
  skipped: number;
}

const [command = 'check', ...patterns] = process.argv.slice(2);

/**
 * A file that hangs ends its stage, as a failure. Forcing files to exit would lose results that are not yet passed on.
 */
const stageLimitMs = 30 * 60_000;

/** What a command says is shown as it comes when it runs alone, and in one piece when it runs beside others. */
async function runTools(stage: Extract<Stage, { kind: 'tools' }>): Promise<Tally> {
  const alone = stage.commands.length === 1;
  const ended = await Promise.all(
    stage.commands.map(async ([file = '', ...rest]) => {
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
  return { passed, failed: ended.length - passed, skipped: 0 };
}

async function runTests(stage: Extract<Stage, { kind: 'tests' }>): Promise<Tally> {
  const wanted = (file: string): boolean => patterns.length === 0 || patterns.some((pattern) => file.includes(pattern));
  const files = globSync(stage.files, { exclude: stage.exclude }).filter(wanted).sort();
  const tally: Tally = { passed: 0, failed: 0, skipped: 0 };
  if (files.length === 0) return tally;
  const signal = AbortSignal.timeout(stageLimitMs);
  const summaries: unknown[] = [];
  const stream = run({ files, concurrency: stage.concurrency, timeout: stage.timeoutMs, signal });
  stream.on('test:summary', (summary) => {
    if (summary.file !== undefined) return;
    summaries.push(summary);
    tally.passed += summary.counts.passed;
    tally.failed += summary.counts.tests - summary.counts.passed - summary.counts.skipped - summary.counts.todo;
    tally.skipped += summary.counts.skipped + summary.counts.todo;
  });
  for await (const text of stream.compose(new spec())) process.stdout.write(String(text));
  if (summaries.length === 0 || signal.aborted) tally.failed += 1;
  return tally;
}

const total: Tally = { passed: 0, failed: 0, skipped: 0 };
for (const stage of stages(command)) {
  if (patterns.length > 0 && stage.kind === 'tools') continue;
  const started = performance.now();
  process.stdout.write(`\n== ${stage.name}\n`);
  const tally = stage.kind === 'tools' ? await runTools(stage) : await runTests(stage);
  total.passed += tally.passed;
  total.failed += tally.failed;
  total.skipped += tally.skipped;
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  process.stdout.write(`== ${stage.name}: ${tally.passed} passed, ${tally.failed} failed in ${seconds} s\n`);
  if (tally.failed > 0 && stage.gate) break;
}
const skipped = total.skipped > 0 ? `, ${total.skipped} skipped` : '';
process.stdout.write(`\n${total.passed} passed, ${total.failed} failed${skipped}\n`);
process.exitCode = total.failed > 0 || total.passed === 0 ? 1 : 0;
