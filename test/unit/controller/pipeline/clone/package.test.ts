// A package of a registry, from its name to the files in the workspace, against a registry on loopback: what is hosted is the
// file whose hash was resolved, within the limits of a repository, and nothing of the archive leaves its folder.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtemp, readdir, readFile, readlink, rm, stat } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { pack, type Header } from 'tar-stream';
import { afterEach, beforeEach, test } from 'vitest';
import { clone } from '../../../../../controller/pipeline/clone/clone.ts';
import { Fault, Rejected, type WorkspacePaths } from '../../../../../controller/pipeline/contract.ts';
import { readNotes } from '../../../../../controller/pipeline/handover.ts';
import { resolveRevision, type RevisionResult } from '../../../../../controller/steps/source/source.ts';
import type { RegistryOrigins } from '../../../../../lib/packages.ts';
import { parseRepository } from '../../../../../lib/repository.ts';
import { listen } from '../../../../support/free-port.ts';
import { sampleInput } from '../../../../support/pipeline/sample.ts';

let server: Server;
let origins: RegistryOrigins;
let folder: string;
/** By path: a body, or a status without one. */
let answers: Map<string, Buffer | object | number>;

beforeEach(async () => {
  answers = new Map();
  server = createServer(({ url = '' }, response) => {
    const answer = answers.get(url) ?? 404;
    if (typeof answer === 'number') response.writeHead(answer).end();
    else response.end(Buffer.isBuffer(answer) ? answer : JSON.stringify(answer));
  });
  const origin = `http://127.0.0.1:${await listen(server)}`;
  origins = { npm: origin, pypi: origin, pypiFiles: origin };
  folder = await mkdtemp(join(tmpdir(), 'moorage-package-'));
});
afterEach(async () => {
  server.close();
  await rm(folder, { recursive: true, force: true });
});

type Entry = Partial<Header> & { readonly name: string; readonly text?: string };

async function makeArchive(...entries: readonly Entry[]): Promise<Buffer> {
  const archive = pack();
  for (const { text = '', ...header } of entries)
    archive.entry({ mtime: new Date(1_700_000_000_000), ...header }, text);
  archive.finalize();
  return gzipSync(await buffer(archive));
}

/** Publishes version 1.2.0 of @scope/server at npm. Returns the id of its commit. */
function publishToNpm(archive: Buffer, file = archive): string {
  const hash = createHash('sha512').update(archive).digest();
  const dist = { tarball: `${origins.npm}/server-1.2.0.tgz`, integrity: `sha512-${hash.toString('base64')}` };
  const manifest = { version: '1.2.0', dist };
  answers.set('/@scope%2fserver/latest', manifest);
  answers.set('/@scope%2fserver', { versions: { '1.2.0': manifest }, time: { '1.2.0': '2025-03-01T00:00:00Z' } });
  answers.set('/server-1.2.0.tgz', file);
  return hash.toString('hex').slice(0, 64);
}

/** Publishes version 2.0 of my-server at PyPI, as these files. */
function publishToPypi(archive: Buffer, ...filenames: readonly string[]): string {
  const sha256 = createHash('sha256').update(archive).digest('hex');
  const files = filenames.map((filename) => ({ filename, url: `../../files/${filename}`, hashes: { sha256 } }));
  answers.set('/pypi/my-server/json', { info: { version: '2.0' } });
  answers.set('/simple/my-server/', { files });
  answers.set('/files/my_server-2.0.tar.gz', archive);
  return sha256;
}

const hosts = { allowed: ['github.com', 'npmjs.com', 'pypi.org'], insecure: [] };
const resolve = (text: string, revision?: string): Promise<RevisionResult> =>
  resolveRevision({ repository: parseRepository(text, hosts), revision }, undefined, origins);

const paths = (): WorkspacePaths => ({
  ...{ root: folder, source: join(folder, 'source'), notes: join(folder, 'notes'), builder: '' },
});

async function fetch(text: string, commit: string): Promise<string[]> {
  const { url } = parseRepository(text, hosts);
  await clone(sampleInput({ repo: url, commit }), paths(), { printLine: () => undefined, origins });
  const found = await readdir(paths().source, { recursive: true, withFileTypes: true });
  return found.filter((each) => each.isFile()).map(({ name }) => name);
}

test('resolves the newest version of a package, and unpacks the file that has its hash', async () => {
  const archive = await makeArchive(
    { name: 'package/package.json', text: '{}' },
    { name: 'package/dist/index.js', text: 'run()', mode: 0o755 },
  );
  const commit = publishToNpm(archive);
  assert.deepEqual(await resolve('npm:@scope/server'), { ok: true, commit, reference: '1.2.0' });
  assert.deepEqual((await fetch('npm:@scope/server', commit)).toSorted(), ['index.js', 'package.json']);
  const program = join(paths().source, 'dist/index.js');
  assert.equal(await readFile(program, 'utf8'), 'run()');
  const { mode, mtimeMs } = await stat(program);
  assert.deepEqual([mode & 0o777, mtimeMs], [0o755, Date.parse('2025-03-01T00:00:00Z')]);
  assert.deepEqual(await readNotes(paths().notes, 'clone'), {
    ...{ commit, time: Date.parse('2025-03-01T00:00:00Z') / 1000, submodules: [], package: 'npm' },
  });
});

test('keeps a link of an archive for the review to judge', async () => {
  const commit = publishToNpm(
    await makeArchive(
      { name: 'package/CLAUDE.md', type: 'symlink', linkname: 'AGENTS.md' },
      { name: 'package/AGENTS.md', text: 'text' },
    ),
  );
  await fetch('npm:@scope/server', commit);
  assert.equal(await readlink(join(paths().source, 'CLAUDE.md')), 'AGENTS.md');
});

test('takes the source distribution of a package of PyPI, by any spelling of its name', async () => {
  const archive = await makeArchive({ name: 'my_server-2.0/pyproject.toml', text: '[project]' });
  const commit = publishToPypi(archive, 'my_server-2.0-py3-none-any.whl', 'my_server-2.0.tar.gz');
  for (const [text, version] of [['pypi:My_Server'], ['https://pypi.org/project/my-server/', '2.0']] as const)
    assert.deepEqual(await resolve(text, version), { ok: true, commit, reference: '2.0' });
  assert.deepEqual(await fetch('pypi:my-server', commit), ['pyproject.toml']);
});

test('names the fault of a package that cannot be hosted', async () => {
  const archive = await makeArchive({ name: 'a/b' });
  publishToPypi(archive, 'my_server-2.0-py3-none-any.whl');
  answers.set('/down/latest', 503);
  for (const [text, version, rule, message] of [
    ['npm:absent', undefined, 'source/repository-not-found', /no public package absent/],
    ['npm:absent', '3.0.0', 'source/revision-not-found', /no version 3\.0\.0/],
    ['pypi:my-server', undefined, 'source/package-without-source', /no source distribution/],
    ['pypi:my-server', '3.0', 'source/revision-not-found', /no version 3\.0/],
    ['npm:down', undefined, 'source/repository-unreachable', /status 503/],
  ] as const) {
    const result = await resolve(text, version);
    assert.ok(!result.ok);
    assert.equal(result.rule, rule);
    assert.match(result.message, message);
  }
});

test('attack: refuses a file with another hash, so that what was resolved is what is built', async () => {
  const archive = await makeArchive({ name: 'package/a' });
  const commit = publishToNpm(archive, await makeArchive({ name: 'package/b' }));
  await assert.rejects(fetch('npm:@scope/server', commit), (error) => {
    assert.ok(error instanceof Fault);
    assert.match(error.message, /another hash/);
    return true;
  });
});

test('attack: asks no other server for the file of a package', async () => {
  const archive = await makeArchive({ name: 'package/a' });
  const commit = publishToNpm(archive);
  const manifest = answers.get('/@scope%2fserver/latest') as { dist: object };
  const elsewhere = { ...manifest, dist: { ...manifest.dist, tarball: 'http://127.0.0.1:9/a.tgz' } };
  answers.set('/@scope%2fserver/latest', elsewhere);
  answers.set('/@scope%2fserver', { versions: { '1.2.0': elsewhere } });
  assert.equal((await resolve('npm:@scope/server')).ok, false);
  await assert.rejects(fetch('npm:@scope/server', commit), /no version with the hash/);
});

test.each<readonly [string, readonly Entry[], string]>([
  ['a path outside its folder', [{ name: 'package/../../outside' }], 'package/archive'],
  ['a hard link', [{ name: 'package/a', type: 'link', linkname: '/etc/passwd' }], 'package/archive'],
  [
    'a link below a link',
    ['a', 'a/b'].map((name) => ({ name: `package/${name}`, type: 'symlink' as const, linkname: '/tmp' })),
    'package/archive',
  ],
  [
    'a file below a link',
    [{ name: 'package/a', type: 'symlink', linkname: '/tmp' }, { name: 'package/a/b' }],
    'package/archive',
  ],
  ['a folder of git', [{ name: 'package/.git/config', text: 'x' }], 'package/archive'],
  ['too large a file', [{ name: 'package/a', text: 'x'.repeat(600) }], 'limits/file-bytes'],
  [
    'too many bytes',
    ['a', 'b', 'c'].map((name) => ({ name: `package/${name}`, text: 'x'.repeat(400) })),
    'limits/repository-bytes',
  ],
  ['too many files', Array.from({ length: 11 }, (_, index) => ({ name: `package/${index}` })), 'limits/files'],
])('attack: refuses an archive with %s', async (_, entries, rule) => {
  const commit = publishToNpm(await makeArchive(...entries));
  await assert.rejects(fetch('npm:@scope/server', commit), (error) => {
    assert.ok(error instanceof Rejected, String(error));
    assert.equal(error.findings[0].rule, rule);
    return true;
  });
  assert.deepEqual(await readdir(folder), ['notes', 'source']);
});

test('refuses what is no archive', async () => {
  const commit = publishToNpm(Buffer.from('no archive'));
  await assert.rejects(fetch('npm:@scope/server', commit), /cannot be unpacked/);
});
