// Snapshots of folders, which write nothing where they come from, and their pushes, which are retried after a broken connection.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { execa } from 'execa';
import { test, type TestContext } from 'vitest';
import { Fault } from '../../../../cli/submit/installation.ts';
import { takeSnapshot, type Snapshot, pushSnapshot } from '../../../../cli/submit/snapshot.ts';

async function folderWith(t: TestContext, files: Record<string, string>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'moorage-snapshot-test-'));
  t.onTestFinished(() => rm(folder, { recursive: true, force: true }));
  for (const [name, text] of Object.entries(files)) {
    await mkdir(join(folder, name, '..'), { recursive: true });
    await writeFile(join(folder, name), text);
  }
  return folder;
}

const git = async (cwd: string, ...args: string[]): Promise<string> =>
  (
    await execa(
      'git',
      ['-c', 'user.name=T', '-c', 'user.email=t@example.org', '-c', 'init.defaultBranch=main', ...args],
      { cwd },
    )
  ).stdout;

async function repositoryWith(t: TestContext, files: Record<string, string>): Promise<string> {
  const folder = await folderWith(t, files);
  await git(folder, 'init', '--quiet');
  await git(folder, 'add', '.');
  await git(folder, 'commit', '--quiet', '-m', 'first');
  return folder;
}

async function snapshotOf(t: TestContext, folder: string): Promise<Snapshot & { files: string[] }> {
  const snapshot = await takeSnapshot(folder);
  t.onTestFinished(() => snapshot.remove());
  const files = (await git(snapshot.repository, 'ls-tree', '-r', '--name-only', snapshot.commit)).split('\n');
  return { ...snapshot, files };
}

/** A digest of every file below a folder, .git included. */
async function digestOf(folder: string): Promise<string> {
  const hash = createHash('sha256');
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  for (const entry of entries.sort((a, b) => (join(a.parentPath, a.name) < join(b.parentPath, b.name) ? -1 : 1))) {
    hash.update(join(entry.parentPath, entry.name));
    if (entry.isFile()) hash.update(await readFile(join(entry.parentPath, entry.name)));
  }
  return hash.digest('hex');
}

test('a plain folder: .gitignore applies, and the same content gives the same commit', async (t) => {
  const files = {
    'app.py': 'x',
    'sub/.gitignore': '*.log\n',
    'sub/a.log': 'no',
    '.gitignore': 'node_modules\n',
    'node_modules/a.js': 'no',
  };
  const [one, two] = [await snapshotOf(t, await folderWith(t, files)), await snapshotOf(t, await folderWith(t, files))];
  assert.deepEqual(one.files, ['.gitignore', 'app.py', 'sub/.gitignore']);
  assert.equal(one.commit, two.commit);
  assert.equal(one.origin, 'folder');
});

test('a clean repository is its own commit, with its history', async (t) => {
  const folder = await repositoryWith(t, { 'app.py': 'x' });
  const snapshot = await snapshotOf(t, folder);
  assert.equal(snapshot.commit, await git(folder, 'rev-parse', 'HEAD'));
  assert.equal(snapshot.origin, 'commit');
});

test('uncommitted changes: edited, new, deleted, staged; tracked stays though ignored; nothing is written', async (t) => {
  const folder = await repositoryWith(t, { 'edited.txt': '1', 'deleted.txt': '1', 'tracked.log': '1' });
  await writeFile(join(folder, 'edited.txt'), '2');
  await writeFile(join(folder, 'new.txt'), '1');
  await writeFile(join(folder, 'staged.txt'), '1');
  await writeFile(join(folder, '.gitignore'), '*.log\n');
  await writeFile(join(folder, 'ignored.log'), '1');
  await writeFile(join(folder, 'private.txt'), '1');
  await writeFile(join(folder, '.git/info/exclude'), 'private.txt\n');
  await git(folder, 'add', 'staged.txt');
  await rm(join(folder, 'deleted.txt'));
  const before = await digestOf(folder);
  const snapshot = await snapshotOf(t, folder);
  assert.deepEqual(snapshot.files, ['.gitignore', 'edited.txt', 'new.txt', 'staged.txt', 'tracked.log']);
  assert.equal(await git(snapshot.repository, 'show', `${snapshot.commit}:edited.txt`), '2');
  assert.equal(
    await git(snapshot.repository, 'rev-parse', `${snapshot.commit}^`),
    await git(folder, 'rev-parse', 'HEAD'),
  );
  assert.equal(await digestOf(folder), before);
  assert.equal((await snapshotOf(t, folder)).commit, snapshot.commit);
});

test('takes a folder inside a repository alone, with the ignore rules of the whole', async (t) => {
  const folder = await repositoryWith(t, { '.gitignore': '*.log\n', 'other.txt': '1', 'samples/hello/app.py': '1' });
  await writeFile(join(folder, 'samples/hello/new.py'), '1');
  await writeFile(join(folder, 'samples/hello/a.log'), '1');
  const snapshot = await snapshotOf(t, join(folder, 'samples/hello'));
  assert.deepEqual(snapshot.files, ['app.py', 'new.py']);
  assert.equal(snapshot.origin, 'folder');
});

test('takes a folder that the surrounding repository ignores by itself', async (t) => {
  const folder = await repositoryWith(t, { '.gitignore': 'drafts\n', 'a.txt': '1' });
  await mkdir(join(folder, 'drafts'));
  await writeFile(join(folder, 'drafts/app.py'), '1');
  assert.deepEqual((await snapshotOf(t, join(folder, 'drafts'))).files, ['app.py']);
});

test('a shallow clone can be pushed: its snapshot has no missing parents', async (t) => {
  const origin = await repositoryWith(t, { 'a.txt': '1' });
  await writeFile(join(origin, 'a.txt'), '2');
  await git(origin, 'commit', '--quiet', '-am', 'second');
  const clone = join(await folderWith(t, {}), 'clone');
  await git(origin, 'clone', '--quiet', '--depth=1', `file://${origin}`, clone);
  const target = await folderWith(t, {});
  await git(target, 'init', '--quiet', '--bare');
  const snapshot = await snapshotOf(t, clone);
  await git(snapshot.repository, 'push', '--quiet', target, `${snapshot.commit}:refs/heads/main`);
  assert.equal(await git(target, 'show', 'main:a.txt'), '2');
});

test('a repository without a commit, and one with a hostile configuration', async (t) => {
  const folder = await folderWith(t, { 'a.txt': '1' });
  await git(folder, 'init', '--quiet');
  await git(folder, 'config', 'core.fsmonitor', `touch ${join(folder, 'owned')}`);
  assert.deepEqual((await snapshotOf(t, folder)).files, ['a.txt']);
  assert.equal((await readdir(folder)).includes('owned'), false);
});

for (const [name, files] of [
  ['an empty folder', {}],
  ['a folder of ignored files', { '.git/info/x': '', 'a/.gitignore': '*\n' }],
] as const) {
  test(`${name} is a fault`, async (t) => {
    const folder = await folderWith(t, files);
    await assert.rejects(takeSnapshot(folder), (error) => error instanceof Fault && error.message.includes('no file'));
  });
}

test('a shallow clone keeps the tracked files that .gitignore names, and is a commit without a parent', async (t) => {
  const origin = await repositoryWith(t, { 'app.py': 'x' });
  await writeFile(join(origin, '.gitignore'), 'dist/\n');
  await mkdir(join(origin, 'dist'));
  await writeFile(join(origin, 'dist', 'app.js'), 'built');
  await git(origin, 'add', '--force', '.');
  await git(origin, 'commit', '--quiet', '-m', 'second');
  const clone = join(await folderWith(t, {}), 'clone');
  await git(origin, 'clone', '--quiet', '--depth', '1', `file://${origin}`, clone);
  await writeFile(join(clone, 'dist', 'other.js'), 'ignored and not tracked');
  const snapshot = await snapshotOf(t, clone);
  assert.deepEqual(snapshot.files, ['.gitignore', 'app.py', 'dist/app.js']);
  assert.equal(snapshot.origin, 'folder');
  assert.equal(await git(snapshot.repository, 'rev-list', '--count', snapshot.commit), '1');
});

/** Pushes to a server that answers like this. Resolves with how often it was asked, and what was said. */
async function pushTo(t: TestContext, listener: RequestListener): Promise<{ asked: number; fault: unknown }> {
  let asked = 0;
  const server = createServer((request, response) => {
    asked += 1;
    listener(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.onTestFinished(() => void server.close());
  const folder = await mkdtemp(join(tmpdir(), 'moorage-push-test-'));
  t.onTestFinished(() => rm(folder, { recursive: true, force: true }));
  await writeFile(join(folder, 'index.html'), 'x');
  const snapshot = await takeSnapshot(folder);
  t.onTestFinished(() => snapshot.remove());
  const gitUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const fault: unknown = await pushSnapshot(snapshot, 'hello', {
    baseUrl: gitUrl,
    gitUrl,
    internalGitUrl: 'http://git.test',
    authority: undefined,
    gitPassword: 'secret',
  }).catch((error: unknown) => error);
  return { asked, fault };
}

test("tries a push with a broken connection three times, and then shows git's message", async (t) => {
  const { asked, fault } = await pushTo(t, (_, response) => {
    response.writeHead(502).end();
  });
  assert.equal(asked, 3);
  assert.ok(fault instanceof Fault);
  assert.match(fault.message, /check the cluster with `npm run status`.*502/);
});

test('does not retry a rejected push', async (t) => {
  const { asked, fault } = await pushTo(t, (_, response) => {
    response.writeHead(403).end();
  });
  assert.equal(asked, 1);
  assert.ok(fault instanceof Fault);
});
