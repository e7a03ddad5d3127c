// A git that trusts nothing: no configuration of its user, no protocol but https, and an end to all that it starts.
import assert from 'node:assert/strict';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, test } from 'vitest';
import { createGit, type Git } from '../../../../lib/git/git.ts';

let folder = '';
let git: Git;
const path = process.env['PATH'] ?? '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'moorage-git-'));
  git = createGit({ folder, insecure: false, slowTransfer: { bytesPerSecond: 1024, seconds: 30 } });
});
afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
});

/** Runs a shell script as if it were git. */
async function instead<Result>(script: string, body: () => Promise<Result>): Promise<Result> {
  const binary = join(folder, 'git');
  await writeFile(binary, `#!/bin/sh\n${script}\n`);
  await chmod(binary, 0o755);
  process.env['PATH'] = `${folder}:${path}`;
  try {
    return await body();
  } finally {
    process.env['PATH'] = path;
    await rm(binary);
  }
}

test('returns an exit code instead of throwing', async () => {
  const { code, stderr } = await git(['rev-parse', '--verify', 'HEAD']);
  assert.equal(code, 128);
  assert.match(stderr, /not a git repository/);
});

test('reports failure if a signal ended git', async () => {
  assert.equal((await instead('kill -9 $$', () => git(['version']))).code, 137);
});

test('reads neither configuration nor variables of the user', async () => {
  await writeFile(join(folder, '.gitconfig'), '[alias]\n  evil = !echo evil\n');
  process.env['GIT_CONFIG_GLOBAL'] = join(folder, '.gitconfig');
  process.env['GIT_SSH'] = '/bin/evil';
  try {
    assert.notEqual((await git(['evil'])).code, 0);
    const { stdout } = await instead('env', () => git(['version']));
    assert.doesNotMatch(stdout, /evil|\.gitconfig/);
    assert.match(stdout, /^GIT_CONFIG_GLOBAL=\/dev\/null$/m);
  } finally {
    delete process.env['GIT_CONFIG_GLOBAL'];
    delete process.env['GIT_SSH'];
  }
});

for (const address of [
  'file:///etc',
  '/etc',
  'ext::sh -c id',
  'ssh://localhost/x',
  'http://localhost:9/x',
  'git://localhost/x',
]) {
  test(`nothing is asked of ${address}`, async () => {
    const { code, stderr } = await git(['ls-remote', '--', address]);
    assert.notEqual(code, 0);
    assert.match(stderr, /transport '\w+' not allowed/);
  });
}

test('keeps only the end of the output', async () => {
  const { stdout } = await instead('yes 0123456 | head -c 4000000; echo end', () =>
    git(['version'], { keepBytes: 1000 }),
  );
  assert.equal(Buffer.byteLength(stdout), 1000);
  assert.ok(stdout.endsWith('end\n'));
});

test('ends git and its children if the signal aborts or the reader throws', async () => {
  const tick = 'while :; do date +%s%N > tick; sleep 0.02; done';
  for (const stop of ['signal', 'reader']) {
    await instead(`(${tick}) & echo begun; ${tick}`, async () => {
      const controller = new AbortController();
      const running = git(['version'], {
        signal: controller.signal,
        onStdout() {
          if (stop === 'reader') throw new Error('enough');
          controller.abort(new Error('enough'));
        },
      });
      await assert.rejects(running, /enough/);
    });
    await sleep(100);
    const last = await readFile(join(folder, 'tick'), 'utf8').catch(() => '');
    await sleep(150);
    assert.equal(await readFile(join(folder, 'tick'), 'utf8').catch(() => ''), last, `it still runs after the ${stop}`);
  }
});

test('ends git if it writes a file above the limit', async () => {
  const { code } = await instead('head -c 100000 /dev/zero > large', () => git(['version'], { fileBytes: 1000 }));
  assert.notEqual(code, 0);
  assert.ok((await readFile(join(folder, 'large'))).length <= 1000);
});

test('limits the memory of git', async () => {
  const small = createGit({
    folder,
    insecure: false,
    slowTransfer: { bytesPerSecond: 1024, seconds: 30 },
    memoryBytes: 64 * 1024 * 1024,
  });
  const { code, stderr } = await instead('head -c 200000000 /dev/zero | sort', () => small(['version']));
  assert.notEqual(code, 0);
  assert.match(stderr, /memory/);
});
