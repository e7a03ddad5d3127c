// A commit comes out of a mirror as it is, and Dockerfiles are kept apart from what only sounds like one.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished, test } from 'vitest';
import { addLicense, checkOut, hideDockerfiles, isDockerfile, NotBroughtIn } from '../../corpus/checkout.ts';

const files = { 'app.py': 'first\n', Dockerfile: 'FROM a\n', 'web/docker-compose.yml': 'services: {}\n' };

/** A mirror with one repository, and its only commit. */
async function mirrorOf(): Promise<{ mirror: string; commit: string }> {
  const mirror = await mkdtemp(join(tmpdir(), 'moorage-mirror-'));
  onTestFinished(() => rm(mirror, { recursive: true, force: true }));
  const repository = join(mirror, 'one+two', 'repo');
  for (const [path, text] of Object.entries(files)) {
    await mkdir(join(repository, path, '..'), { recursive: true });
    await writeFile(join(repository, path), text);
  }
  const git = (...args: string[]): string => execFileSync('git', args, { cwd: repository, encoding: 'utf8' }).trim();
  git('init', '--quiet');
  git('add', '--all');
  git('-c', 'user.name=a', '-c', 'user.email=a@b.invalid', 'commit', '--quiet', '--message', 'one');
  return { mirror, commit: git('rev-parse', 'HEAD') };
}

test('a commit is checked out under its own name, and removed after', async () => {
  const { mirror, commit } = await mirrorOf();
  const source = await checkOut({ repo: 'one/two', commit }, mirror);
  assert.equal(await readFile(join(source.folder, 'app.py'), 'utf8'), 'first\n');
  const head = execFileSync('git', ['rev-parse', 'HEAD'], { cwd: source.folder, encoding: 'utf8' });
  assert.equal(head.trim(), commit);
  assert.equal(execFileSync('git', ['status', '--porcelain'], { cwd: source.folder, encoding: 'utf8' }), '');
  assert.deepEqual(source.missing, []);
  assert.deepEqual(await hideDockerfiles(source.folder), ['Dockerfile']);
  assert.ok(existsSync(join(source.folder, 'web/docker-compose.yml')));
  await source.remove();
  assert.ok(!existsSync(source.folder));
});

test('a file that the mirror lacks is named, and the rest is there', async () => {
  const { mirror, commit } = await mirrorOf();
  const repository = join(mirror, 'one+two', 'repo');
  const blob = execFileSync('git', ['rev-parse', 'HEAD:app.py'], { cwd: repository, encoding: 'utf8' }).trim();
  await rm(join(repository, '.git/objects', blob.slice(0, 2), blob.slice(2)), { force: true });
  const source = await checkOut({ repo: 'one/two', commit }, mirror);
  assert.deepEqual(source.missing, ['app.py']);
  assert.ok(existsSync(join(source.folder, 'Dockerfile')));
  await source.remove();
});

test('a commit that is not there is not brought in', async () => {
  const { mirror } = await mirrorOf();
  await assert.rejects(checkOut({ repo: 'one/two', commit: '0'.repeat(40) }, mirror), NotBroughtIn);
});

test('what is a Dockerfile', () => {
  for (const path of [
    'Dockerfile',
    'a/dockerfile',
    'Dockerfile.dev',
    'x.Dockerfile',
    'Containerfile',
    'api.dockerfile',
  ])
    assert.ok(isDockerfile(path), path);
  for (const path of ['docker-compose.yml', 'dockerfile.js', 'lib/dockerfile.ex', 'Dockerfile.md', 'README.md'])
    assert.ok(!isDockerfile(path), path);
});

test.each(['LICENSE', 'licence.md', 'COPYING', 'LICENSE-MIT', 'UNLICENSE'])(
  'a licence file is added once, and not next to %s',
  async (name) => {
    const folder = await mkdtemp(join(tmpdir(), 'moorage-license-'));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    await writeFile(join(folder, 'licenses.json'), '[]');
    assert.equal(await addLicense(folder), true);
    assert.match(await readFile(join(folder, 'LICENSE'), 'utf8'), /Apache License/);
    assert.equal(await addLicense(folder), false);
    await rm(join(folder, 'LICENSE'));
    await writeFile(join(folder, name), 'terms');
    assert.equal(await addLicense(folder), false);
    assert.equal(await readFile(join(folder, name), 'utf8'), 'terms');
  },
);
