// Schemathesis: installed from PyPI once, and run against a server by its own OpenAPI document.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { z } from 'zod';
import { runExclusively } from '../exclusively.ts';
import { paths } from '../../../localnode/paths.ts';

const version = '4.32.5';

export interface SchemathesisOptions {
  readonly url: string;
  /** The OpenAPI document by which requests are made up. */
  readonly document: unknown;
  /** Most cases of an operation in each phase of random cases. */
  readonly examples: number;
  /** TOML of what differs from the defaults. */
  readonly config: string;
}

export interface SchemathesisResult {
  readonly operations: number;
  readonly cases: number;
  /** What it found, in its own words; empty when all is well. */
  readonly failures: string;
}

/** What it says last. */
const tested = /Tested: (\d+)/;
const generated = /([\d,]+) generated/;

/** Runs every check over every operation, with the same cases each time. */
export async function runSchemathesis({
  url,
  document,
  examples,
  config,
}: SchemathesisOptions): Promise<SchemathesisResult> {
  const program = await runExclusively(install);
  const folder = mkdtempSync(join(tmpdir(), 'moorage-schemathesis-'));
  try {
    writeFileSync(join(folder, 'schemathesis.toml'), config);
    writeFileSync(join(folder, 'openapi.json'), JSON.stringify(document));
    const { all: said, exitCode } = await execa(
      program,
      [
        'run',
        'openapi.json',
        '--url',
        url,
        '--checks',
        'all',
        '--max-examples',
        String(examples),
        '--generation-deterministic',
        '--continue-on-failure',
        '--no-color',
        '--request-timeout',
        '60',
        // Above every limit of the API itself: how fast the machine is says nothing of the contract.
        '--max-response-time',
        '60',
        '--output-sanitize',
        'false',
      ],
      { cwd: folder, reject: false, stdin: 'ignore', all: true },
    );
    const number = (pattern: RegExp): number =>
      z.coerce.number().int().catch(0).parse(pattern.exec(said)?.[1]?.replaceAll(',', ''));
    return {
      operations: number(tested),
      cases: number(generated),
      failures:
        exitCode === 0
          ? ''
          : `it ended with ${exitCode ?? 'no code'}:\n${said
              .split('\n')
              .map((line) => line.slice(0, 500))
              .join('\n')}`,
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function install(): string {
  const folder = join(paths.cache, 'schemathesis', version);
  const program = join(folder, 'bin', 'schemathesis');
  const complete = join(folder, '.complete');
  if (existsSync(complete)) return program;
  mkdirSync(folder, { recursive: true });
  execFileSync('python3', ['-m', 'venv', '--clear', folder], { stdio: ['ignore', 'ignore', 'inherit'] });
  execFileSync(
    join(folder, 'bin', 'pip'),
    ['install', '-q', '--disable-pip-version-check', `schemathesis==${version}`],
    { stdio: ['ignore', 'ignore', 'inherit'] },
  );
  writeFileSync(complete, readFileSync(join(folder, 'pyvenv.cfg')));
  return program;
}
