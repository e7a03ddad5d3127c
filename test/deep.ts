// Runs the tests with random input with far more repetitions than `npm test` does, and records the result in
// docs/measured/deep-tests.md. With patterns, only the files whose path contains one; the record is kept as it is.
import { execFileSync } from 'node:child_process';
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import type { Reporter, TestModule } from 'vitest/node';
import { runProjects } from './projects.ts';
import { deepLimitMs } from './support/repetitions.ts';
import { line } from './tally.ts';

const root = join(import.meta.dirname, '..');
const record = join(root, 'docs/measured/deep-tests.md');

/** The test files that choose how often they repeat themselves. */
function findDeepFiles(): string[] {
  return globSync('test/{unit,integration}/**/*.test.ts', { cwd: root })
    .filter((file) => readFileSync(join(root, file), 'utf8').includes("/support/repetitions.ts'"))
    .sort();
}

class RowReporter implements Reporter {
  readonly rows: string[] = [];

  onTestModuleEnd(module: TestModule): void {
    for (const test of module.children.allTests()) {
      const seconds = ((test.diagnostic()?.duration ?? 0) / 1000).toFixed(1);
      const name = test.fullName.replaceAll('|', String.raw`\|`);
      this.rows.push(`| \`${module.relativeModuleId}\` | ${name} | ${test.result().state} | ${seconds} |`);
    }
  }
}

function formatRecord(rows: readonly string[], summary: string): string {
  const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { cwd: root, encoding: 'utf8' }).trim();
  const date = new Date().toISOString().slice(0, 10);
  return `# Deep tests

Written by \`npm run test:deep\`: the tests with random input, with the larger number of repetitions that each of them names. \`npm test\` runs the same tests with the smaller number.

${date}, commit ${commit}, ${availableParallelism()} cores: ${summary}.

| file | test | result | seconds |
|---|---|---|---|
${rows.toSorted().join('\n')}
`;
}

const patterns = process.argv.slice(2);
const files = findDeepFiles().filter(
  (file) => patterns.length === 0 || patterns.some((pattern) => file.includes(pattern)),
);
process.env['DEEP_TESTS'] = 'true';
const reporter = new RowReporter();
const started = performance.now();
const tally = await runProjects({
  projects: ['unit', 'integration'],
  patterns: files,
  limitMs: deepLimitMs,
  reporters: [reporter],
});
const minutes = ((performance.now() - started) / 60_000).toFixed(0);
const summary = `${line(tally)} in ${minutes} min`;
if (patterns.length === 0) writeFileSync(record, formatRecord(reporter.rows, summary));
process.stdout.write(`\n${tally.failures.map((name) => `failed: ${name}\n`).join('')}${summary}\n`);
process.exit(tally.failed > 0 || tally.passed === 0 ? 1 : 0);
