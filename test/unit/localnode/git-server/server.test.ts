// The git server against real git: who may read, who may push, what is refused. Builds read as the pipeline does.
import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, test } from 'vitest';
import { fetchCommit } from '../../../../controller/pipeline/clone/fetch.ts';
import { resolveRevision } from '../../../../controller/steps/source/source.ts';
import { createGit } from '../../../../lib/git/git.ts';
import { createReadToken } from '../../../../lib/git/read-token.ts';
import { parseRepository } from '../../../../lib/repository.ts';
import { CommandError, run, waitFor } from '../../../../localnode/shell.ts';
import { gitServerFiles } from '../../../../localnode/images/catalog.ts';
import { isAnswering, probe } from '../../../../localnode/node/daemons/probe.ts';
import { findFreePort } from '../../../support/free-port.ts';

const folder = await mkdtemp(join(tmpdir(), 'moorage-git-'));
const work = join(folder, 'work');
let server: ChildProcess;
let base = '';
/** Where builds and the operator read. */
let builds = '';
const readSecret = 'secret-of-the-git-server-0123456789-abcdef';

const git = (...args: string[]): Promise<string> =>
  run('git', ['-c', 'user.name=a', '-c', 'user.email=a@b.test', ...args], {
    env: { GIT_TERMINAL_PROMPT: '0', GIT_CONFIG_GLOBAL: '/dev/null', GIT_ASKPASS: 'true' },
  });

beforeAll(async () => {
  const port = await findFreePort();
  const buildsPort = await findFreePort();
  await writeFile(join(folder, 'password'), 'secret\n');
  await writeFile(join(folder, 'readSecret'), `${readSecret}\n`);
  const env = {
    ...process.env,
    PORT: String(port),
    REPOSITORIES: join(folder, 'repositories'),
    PASSWORD_FILE: join(folder, 'password'),
    BUILDS_PORT: String(buildsPort),
    READ_SECRET_FILE: join(folder, 'readSecret'),
  };
  // Like its image: without the rest of the project, so an import that the image lacks fails here too.
  const image = join(folder, 'image');
  for (const file of gitServerFiles) await cp(join(import.meta.dirname, '../../../..', file), join(image, file));
  server = spawn(process.execPath, [join(image, 'localnode/git-server/server.ts')], { env, stdio: 'inherit' });
  base = `http://127.0.0.1:${port}`;
  builds = `http://localhost:${buildsPort}`;
  await waitFor('the git server', () => isAnswering(`${base}/healthz`), { seconds: 20, every: 20 });
  await git('init', '--quiet', '--initial-branch=main', work);
  await writeFile(join(work, 'file'), 'hello');
  await git('-C', work, 'add', '.');
  await git('-C', work, 'commit', '--quiet', '-m', 'first');
});

afterAll(async () => {
  server.kill();
  await rm(folder, { recursive: true });
});

const withPassword = (password: string): string => base.replace('//', `//x:${password}@`);

test('a push with the password creates the repository, and anyone can clone it', async () => {
  await git('-C', work, 'push', '--quiet', `${withPassword('secret')}/local/app.git`, 'main');
  const commit = await git('-C', work, 'rev-parse', 'HEAD');
  assert.equal((await git('ls-remote', `${base}/local/app.git`, 'refs/heads/main')).split('\t')[0], commit);
  await git('clone', '--quiet', '--depth=1', `${base}/local/app.git`, join(folder, 'clone'));
  assert.deepEqual((await readdir(join(folder, 'clone'))).sort(), ['.git', 'file']);
});

test('rejects a push without the password or with a wrong one, and creates nothing', async () => {
  await assert.rejects(git('-C', work, 'push', '--quiet', `${base}/local/none.git`, 'main'), CommandError);
  await assert.rejects(
    git('-C', work, 'push', '--quiet', `${withPassword('wrong')}/local/none.git`, 'main'),
    CommandError,
  );
  const refused = await probe(`${base}/local/none.git/info/refs?service=git-receive-pack`);
  assert.equal(refused.status, 401);
  assert.match(refused.body, /\.moorage\/git-password/);
  assert.equal((await probe(`${base}/local/none.git/info/refs?service=git-upload-pack`)).status, 404);
});

/** Fetches a commit as the clone of a pipeline does, with a token. */
async function fetchAsBuild(name: string, commit: string, token: string | undefined): Promise<string> {
  const url = `${builds}/local/${name}`;
  const store = await mkdtemp(join(folder, 'store-'));
  const credential = token === undefined ? undefined : { url, token };
  const slowTransfer = { bytesPerSecond: 1, seconds: 10 };
  const own = createGit({ folder: store, gitFolder: store, insecure: true, slowTransfer, credential });
  const limits = { repositoryBytes: 1_000_000, files: 10, fileBytes: 1_000_000 };
  return fetchCommit(own, store, { repo: url, commit, limits }).then(
    () => 'fetched',
    (error: unknown) => String(error),
  );
}

test('attack: a build can read its own repository with its token, and no other', async () => {
  await git('-C', work, 'push', '--quiet', `${withPassword('secret')}/local/other.git`, 'main');
  const commit = (await git('-C', work, 'rev-parse', 'HEAD')).trim();
  const later = new Date(Date.now() + 60_000);
  const own = createReadToken('local/app', readSecret, later);
  assert.equal(await fetchAsBuild('app', commit, own), 'fetched');
  const refused: readonly (readonly [name: string, token: string | undefined])[] = [
    ['app', undefined],
    ['other', own],
    ['app', createReadToken('local/app', readSecret, new Date(Date.now() - 1_000))],
    ['app', createReadToken('local/app', readSecret.toUpperCase(), later)],
    ['app', own.replace(/^1\.\d+/, '1.9999999999')],
    ['app', 'secret'],
  ];
  for (const [name, token] of refused)
    assert.match(await fetchAsBuild(name, commit, token), /could not read Username|Authentication failed|401/, token);
  const push = await fetch(`${builds}/local/app.git/info/refs?service=git-receive-pack`, {
    headers: { authorization: `Basic ${Buffer.from('x:secret').toString('base64')}` },
  });
  assert.equal(push.status, 403);
});

test('the operator reads the newest commit of any repository with the secret, and of none without it', async () => {
  const host = new URL(builds).host;
  const repository = parseRepository(`${builds}/local/app`, { allowed: [host], insecure: [host] });
  const commit = (await git('-C', work, 'rev-parse', 'HEAD')).trim();
  assert.deepEqual(await resolveRevision({ repository }, { readSecret }), {
    ok: true,
    commit,
    reference: 'refs/heads/main',
  });
  const refused = await resolveRevision({ repository });
  assert.equal(refused.ok ? 'found' : refused.reason, 'RepositoryNotFound');
});

test('does not start a response before the request has ended', async () => {
  const { hostname, port } = new URL(base);
  const body = '0000';
  const socket = connect(Number(port), hostname);
  let answer = '';
  socket.on('data', (chunk: Buffer) => {
    answer += chunk.toString('latin1');
  });
  socket.write(
    [
      'POST /local/app.git/git-receive-pack HTTP/1.1',
      `Host: ${hostname}`,
      `Authorization: Basic ${Buffer.from('x:secret').toString('base64')}`,
      'Content-Type: application/x-git-receive-pack-request',
      'Transfer-Encoding: chunked',
      'Connection: close',
      '',
      body.length.toString(16),
      body,
      '',
    ].join('\r\n'),
  );
  // git begins its answer within milliseconds of its start.
  await sleep(1_000);
  assert.equal(answer, '');
  socket.end('0\r\n\r\n');
  await once(socket, 'close');
  assert.match(answer, /^HTTP\/1\.1 200 /);
});

test('queues excess requests, and gives the place of a disconnected one to the next', async () => {
  const { hostname, port } = new URL(base);
  const held = Array.from({ length: 16 }, () => connect(Number(port), hostname));
  for (const socket of held) {
    socket.on('error', () => undefined).resume();
    socket.write(
      [
        'POST /local/app.git/git-upload-pack HTTP/1.1',
        `Host: ${hostname}`,
        'Content-Type: application/x-git-upload-pack-request',
        'Transfer-Encoding: chunked',
        '',
        '1',
        '0',
        '',
      ].join('\r\n'),
    );
  }
  const question = `${base}/local/app.git/info/refs?service=git-upload-pack`;
  const left = new AbortController();
  const gone = fetch(question, { signal: left.signal }).then(
    () => 'answered',
    () => 'gone',
  );
  const statuses: number[] = [];
  const asked = Promise.all(
    Array.from({ length: 20 }, async () => {
      statuses.push((await probe(question)).status);
    }),
  );
  await sleep(1_000);
  assert.deepEqual(statuses, []);
  left.abort();
  assert.equal(await gone, 'gone');
  for (const socket of held) socket.destroy();
  await asked;
  assert.deepEqual(new Set(statuses), new Set([200]));
});

for (const path of [
  '/',
  '/local/app.git/HEAD',
  '/local/app.git/objects/info/packs',
  '/../etc/app.git/info/refs?service=git-upload-pack',
  '/local/..%2f..git/info/refs?service=git-upload-pack',
  '/.x/app.git/info/refs?service=git-upload-pack',
  '/local/a..b.git/info/refs?service=git-upload-pack',
  '/local/app.git/info/refs',
  '/local/app.git/git-upload-pack',
]) {
  test(`does not pass GET ${path} to git`, async () => {
    assert.equal((await probe(`${base}${path}`)).status, 404);
  });
}
