// Private repositories over SSH, at a real OpenSSH server: what the operator reads with a deploy key, and what a clone does.
import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterAll, beforeAll, test } from 'vitest';
import { listPreviewReferences } from '../../../controller/previews/previews.ts';
import { pipelineInput, type PipelineInput, toWorkspacePaths } from '../../../controller/pipeline/contract.ts';
import { clone } from '../../../controller/pipeline/clone/clone.ts';
import { resolveRevision, type RevisionResult } from '../../../controller/steps/source/source.ts';
import { deriveDeployKey, findSshRemote, parseHostKey } from '../../../lib/git/deploy-keys.ts';
import { createGit, type GitAccess } from '../../../lib/git/git.ts';
import { readRemoteFile } from '../../../lib/git/remote-file.ts';
import { markPrivate, parseRepository, type Repository } from '../../../lib/repository.ts';
import { createLookupRoutes } from '../../../controller/steps/source/lookups.ts';
import { createLookupClient, lookupPath } from '../../../lib/git/lookup.ts';
import { findFreePort, listen } from '../../support/free-port.ts';
import { startSshGitServer, type SshGitServer } from '../../support/git/ssh-server.ts';

const secret = 'secret-of-the-deploy-keys-0123456789';
let server: SshGitServer;
let access: GitAccess;
let commit: string;

beforeAll(async () => {
  server = await startSshGitServer();
  access = createAccess(server.hostKey);
  commit = await server.commit('me/private', { 'app.py': 'print(1)\n', '.moorage-owner': 'a line\n' });
  await server.commit('me/other', { 'other.txt': 'x\n' });
  await server.addDeployKey(deriveDeployKey(parse('me/private'), secret).publicKey, 'me/private');
});
afterAll(() => server.stop());

function createAccess(...lines: string[]): GitAccess {
  return { deployKeys: { secret, hostKeys: lines.map((line) => parseHostKey(line) ?? assert.fail(line)) } };
}

/** A private repository of the server. */
function parse(path: string): Repository {
  return markPrivate(parseRepository(`https://127.0.0.1/${path}`, { allowed: ['127.0.0.1'], insecure: [] }), true);
}

function describe(result: RevisionResult): string {
  return result.ok ? result.commit : `${result.final ? 'final' : 'retried'} ${result.reason}: ${result.message}`;
}

test('resolves the default branch, a branch, and a file of the newest commit', async () => {
  const repository = parse('me/private');
  assert.deepEqual(await resolveRevision({ repository }, access), { ok: true, commit, reference: 'refs/heads/main' });
  assert.deepEqual(await resolveRevision({ repository, revision: 'main' }, access), {
    ...{ ok: true, commit, reference: 'refs/heads/main' },
  });
  const read = (name: string): Promise<string | undefined> =>
    readRemoteFile({ repository, commit, name, maximumBytes: 100, access });
  assert.equal(await read('.moorage-owner'), 'a line\n');
  assert.equal(await read('absent'), undefined);
  const branches = { pullRequests: false, branches: ['*'], limit: 3 };
  const listing = await listPreviewReferences({ repository, previews: branches }, access);
  assert.deepEqual(listing, { ok: true, references: [{ name: 'refs/heads/main', commit }] });
});

test('a deploy key opens no other repository of its server', async () => {
  assert.match(describe(await resolveRevision({ repository: parse('me/other') }, access)), /^final DeployKeyRefused: /);
  const foreign = deriveDeployKey(parse('me/private'), secret);
  const remote = findSshRemote(parse('me/other'), access.deployKeys?.hostKeys ?? []) ?? assert.fail();
  const git = createGit({
    ...{ folder: '/', insecure: false, slowTransfer: { bytesPerSecond: 1, seconds: 10 } },
    ssh: { privateKey: foreign.privateKey, knownHosts: remote.knownHosts },
  });
  const { code, stderr } = await git(['ls-remote', '--', remote.url]);
  assert.equal(code, 128);
  assert.match(stderr, /Repository not found/);
});

test('says what to do while the key is missing at the forge, and continues once it is there', async () => {
  const repository = parse('me/late');
  const newest = await server.commit('me/late', { a: 'x' });
  const refused = await resolveRevision({ repository }, access);
  assert.ok(!refused.ok);
  assert.equal(refused.rule, 'source/deploy-key-refused');
  assert.match(refused.message, /does not accept the deploy key .*Permission denied \(publickey\)/);
  assert.match(refused.fix, /Add the key to the repository/);
  await server.addDeployKey(deriveDeployKey(repository, secret).publicKey, 'me/late');
  assert.equal(describe(await resolveRevision({ repository }, access)), newest);
});

test('attack: a server with another host key gets no request', async () => {
  const stranger = await startSshGitServer();
  try {
    await stranger.commit('me/private', { 'app.py': 'evil' });
    await stranger.addDeployKey(deriveDeployKey(parse('me/private'), secret).publicKey, 'me/private');
    const pinned = server.hostKey.replace(/:\d+/, `:${stranger.port}`);
    const result = await resolveRevision({ repository: parse('me/private') }, createAccess(pinned));
    assert.match(describe(result), /^retried RepositoryUnreachable: .*another SSH host key/);
    assert.doesNotMatch(stranger.readLog(), /Accepted publickey/);
  } finally {
    await stranger.stop();
  }
});

test('without a host key of its server, a private repository is not read', async () => {
  const result = await resolveRevision({ repository: parse('me/private') }, createAccess());
  assert.match(describe(result), /^retried RepositoryUnreachable: .*no SSH host key of 127\.0\.0\.1/);
  assert.match(describe(await resolveRevision({ repository: parse('me/private') })), /no SSH host key/);
});

test('a server that is down is tried again', async () => {
  const port = await findFreePort();
  const down = createAccess(server.hostKey.replace(/:\d+/, `:${port}`));
  assert.match(
    describe(await resolveRevision({ repository: parse('me/private') }, down)),
    /^retried RepositoryUnreachable: .*Connection refused/,
  );
});

test('attack: git with a deploy key speaks SSH alone, and git without one does not', async () => {
  const { privateKey } = deriveDeployKey(parse('me/private'), secret);
  const { url, knownHosts } =
    findSshRemote(parse('me/private'), access.deployKeys?.hostKeys ?? []) ?? assert.fail('no remote');
  const bounds = { folder: '/', insecure: true, slowTransfer: { bytesPerSecond: 1, seconds: 10 } };
  for (const other of ['https://127.0.0.1/me/private', 'http://127.0.0.1/me/private', 'file:///tmp', 'ext::id']) {
    const { code, stderr } = await createGit({ ...bounds, ssh: { privateKey, knownHosts } })([
      'ls-remote',
      '--',
      other,
    ]);
    assert.notEqual(code, 0);
    assert.match(stderr, /not allowed|not supported/, other);
  }
  const { stderr } = await createGit(bounds)(['ls-remote', '--', url]);
  assert.match(stderr, /transport 'ssh' not allowed/);
});

test('leaves no key on the disk', async () => {
  await resolveRevision({ repository: parse('me/private') }, access);
  assert.deepEqual(
    (await readdir(tmpdir())).filter((name) => name.startsWith('moorage-ssh-')),
    [],
  );
});

/** The operator's answers to the API, over HTTP, about repositories of a web server that shows some of them. */
async function serveLookups(
  visible: readonly string[],
  gitAccess: GitAccess = access,
): Promise<{
  readonly lookUp: ReturnType<typeof createLookupClient>;
  readonly toRepository: (path: string) => Repository;
  readonly stop: () => void;
}> {
  const web = createServer((request, response) => {
    const isShown = visible.some((path) => request.url?.startsWith(`/${path}/`) === true);
    response.writeHead(isShown ? 500 : 404).end();
  });
  const webPort = await listen(web);
  const hosts = { allowed: [`127.0.0.1:${webPort}`], insecure: [`127.0.0.1:${webPort}`] };
  const token = 't'.repeat(32);
  const routes = createLookupRoutes({ gitHosts: hosts, gitAccess }, token, pino({ level: 'silent' }));
  const operator = createServer(routes[lookupPath]);
  const operatorPort = await listen(operator);
  return {
    lookUp: createLookupClient({ operatorUrl: `http://127.0.0.1:${operatorPort}`, token }),
    toRepository: (path) => parseRepository(`http://127.0.0.1:${webPort}/${path}`, hosts),
    stop() {
      for (const each of [web, operator]) each.close();
    },
  };
}

test('a submission finds a private repository by its key, and says the same of one without a key as of none', async () => {
  const { lookUp, toRepository, stop } = await serveLookups(['me/broken']);
  try {
    const repository = toRepository('me/found');
    const { publicKey, fingerprint } = deriveDeployKey(repository, secret);
    const offered = { publicKey, fingerprint };
    const refused = await lookUp(repository, { via: 'either' });
    assert.ok(!refused.ok && refused.final);
    assert.deepEqual([refused.rule, refused.deployKey], ['source/repository-not-found', offered]);
    // It exists, and the answer is the same.
    const newest = await server.commit('me/found', { '.moorage-owner': `moorage-author-sha256-${'a'.repeat(64)}\n` });
    assert.deepEqual(await lookUp(repository, { via: 'either' }), refused);
    await server.addDeployKey(publicKey, 'me/found');
    const found = { ok: true, commit: newest, reference: 'refs/heads/main', isPrivate: true };
    assert.deepEqual(await lookUp(repository, { via: 'either' }), found);
    assert.deepEqual(await lookUp(markPrivate(repository, true), { keys: true }), {
      ...found,
      authorKeys: ['a'.repeat(64)],
    });
    const publicly = await lookUp(repository);
    assert.ok(!publicly.ok, 'without asking for it, the key is not used');
    const shown = await lookUp(toRepository('me/other'), { via: 'none' });
    assert.ok(!shown.ok && shown.deployKey !== undefined && shown.deployKey.publicKey !== publicKey);
    // Without SSH, it is still known that there is no public repository.
    const withoutSsh = await serveLookups([], createAccess(server.hostKey.replace(/:\d+/, `:${await findFreePort()}`)));
    const unreached = await withoutSsh.lookUp(withoutSsh.toRepository('me/found'), { via: 'either' });
    withoutSsh.stop();
    assert.ok(!unreached.ok && unreached.final && unreached.rule === 'source/repository-not-found');
    assert.match(unreached.message, /could not be reached over SSH \(.*Connection refused/);
    // A server that is down says nothing of whether a repository is private.
    const broken = await lookUp(toRepository('me/broken'), { via: 'either' });
    assert.ok(!broken.ok && !broken.final);
  } finally {
    stop();
  }
});

async function runClone(input: Partial<PipelineInput>, deployKey?: string): Promise<{ root: string; lines: string[] }> {
  const root = await mkdtemp(join(tmpdir(), 'clone-'));
  const lines: string[] = [];
  const limits = { repositoryBytes: 1e7, files: 100, fileBytes: 1e6 };
  const full = pipelineInput.parse({
    ...{ app: 'app', repo: 'https://127.0.0.1/me/private', commit, path: '.', build: {}, image: 'i', push: 'p' },
    ...{ limits, ...input },
  });
  await clone(full, toWorkspacePaths(root, join(root, 'b')), { printLine: (line) => lines.push(line), deployKey });
  return { root, lines };
}

test('a pipeline clones with the key of its Secret, and keeps it out of the workspace and the log', async () => {
  const repository = parse('me/private');
  const ssh = findSshRemote(repository, access.deployKeys?.hostKeys ?? []) ?? assert.fail();
  const { privateKey } = deriveDeployKey(repository, secret);
  const { root, lines } = await runClone({ ssh }, privateKey);
  assert.equal(await readFile(join(root, 'source/app.py'), 'utf8'), 'print(1)\n');
  const files = (await readdir(root, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile());
  for (const file of files) {
    const content = await readFile(join(file.parentPath, file.name), 'utf8');
    assert.ok(!content.includes('PRIVATE KEY'), file.name);
  }
  assert.ok(!lines.join('\n').includes('PRIVATE KEY'));
  assert.match(lines[0] ?? '', /^fetching commit [0-9a-f]{40} of https:\/\/127\.0\.0\.1\/me\/private$/);
  await rm(root, { recursive: true });
});

test('a clone without its key is tried again, and one with a refused key too', async () => {
  const ssh = findSshRemote(parse('me/private'), access.deployKeys?.hostKeys ?? []) ?? assert.fail();
  await assert.rejects(runClone({ ssh }), /the deploy key of the repository is missing/);
  await assert.rejects(runClone({ ssh }, deriveDeployKey(parse('me/other'), secret).privateKey), /Permission denied/);
});
