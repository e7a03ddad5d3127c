// A measurement of plans continues in its folder, and does not ask the same version of a planner twice.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { onTestFinished, test, vi } from 'vitest';
import type { Entry } from '../../../corpus/corpus.ts';
import { plan } from '../../../corpus/plan/plan.ts';

async function createFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'moorage-plans-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** A mirror with one repository, and the commit in it. */
async function createMirror(name: string): Promise<{ mirror: string; commit: string }> {
  const mirror = await createFolder();
  const folder = join(mirror, name.replace('/', '+'));
  await mkdir(folder);
  await writeFile(join(folder, 'index.html'), '<h1>shop</h1>');
  const git = (...args: string[]): string =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b.c', ...args], { cwd: folder, encoding: 'utf8' });
  git('init', '--quiet');
  git('add', '.');
  git('commit', '--quiet', '--message', 'shop');
  return { mirror, commit: git('rev-parse', 'HEAD').trim() };
}

/** A planner that counts how often it is asked, and wants more than there is. */
async function createRailpack(log: string): Promise<string> {
  const folder = await createFolder();
  const program = join(folder, 'railpack');
  const text = `#!/bin/sh\n[ "$1" = --version ] && { echo 1.2.3; exit; }\necho "$@" >> ${log}\necho "No version available for php 8" >&2\nexit 1\n`;
  await writeFile(program, text);
  await chmod(program, 0o755);
  return folder;
}

test('continues in the same folder, judges again, and asks nobody twice', async () => {
  const out = await createFolder();
  const log = join(out, 'asked.txt');
  const programs = await createRailpack(log);
  vi.stubEnv('PATH', `${programs}${delimiter}/usr/bin${delimiter}/bin`);
  onTestFinished(() => {
    vi.unstubAllEnvs();
  });
  const { mirror, commit } = await createMirror('a/shop');
  const entry = { repo: 'a/shop', commit, stack: 'static', year: 2026, hasDockerfile: false } as const;
  const files: Entry = { ...entry, expected: { strategy: 'static', serves: '.' } };
  const refusal: Entry = { ...entry, expected: { refuse: 'it has no app' } };
  const options = { mirror, out, hide: true, note: 'Measured on a train.', say: () => undefined };
  const first = await plan([files], options);
  assert.deepEqual(
    first.map(({ planner, judgment }) => [planner, judgment.verdict]),
    [
      ['moorage', 'right'],
      ['railpack', 'refused'],
    ],
  );
  const second = await plan([refusal], options);
  assert.equal(second.find(({ planner }) => planner === 'railpack')?.judgment.verdict, 'right');
  assert.equal((await readFile(log, 'utf8')).trim().split('\n').length, 1);
  const page = await readFile(join(out, 'plan.md'), 'utf8');
  assert.match(page, /^Measured on a train\.$/m);
  assert.match(page, /\| railpack 1\.2\.3 \| 1 \| 1 \(100 %\) \| 0 \(0 %\) \| 0 \(0 %\) \| 1 \| 1 \|/);
  // Plans of the files as they are count apart.
  await plan([files], { ...options, hide: false });
  assert.equal((await readFile(log, 'utf8')).trim().split('\n').length, 2);
});
