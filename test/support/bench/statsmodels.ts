// scipy and statsmodels from PyPI, installed once outside of the tree: the independent implementation of our statistics.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { paths } from '../../../localnode/paths.ts';
import { runExclusively } from '../exclusively.ts';

const packages = ['numpy==2.2.6', 'scipy==1.15.3', 'pandas==2.2.3', 'statsmodels==0.14.4'];

/** Runs a Python script with JSON on its standard input. @returns the JSON that it writes */
export async function runStatsmodels(script: string, input: unknown): Promise<unknown> {
  const python = await runExclusively(install);
  const output = execFileSync(python, [script], {
    input: JSON.stringify(input),
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  });
  return JSON.parse(output);
}

function install(): string {
  const folder = join(paths.cache, 'statsmodels', '0.14.4');
  const complete = join(folder, '.complete');
  const python = join(folder, 'bin', 'python');
  if (existsSync(complete)) return python;
  mkdirSync(folder, { recursive: true });
  execFileSync('python3', ['-m', 'venv', '--clear', folder], { stdio: 'ignore' });
  execFileSync(
    join(folder, 'bin', 'pip'),
    ['install', '-q', '--disable-pip-version-check', '--only-binary', ':all:', ...packages],
    {
      stdio: ['ignore', 'ignore', 'inherit'],
    },
  );
  writeFileSync(complete, '');
  return python;
}
