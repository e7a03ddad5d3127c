// The git server against real git: who may read, who may push, what is refused.
import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, test } from 'vitest';
import { CommandError, run } from '../../../../cluster/shell.ts';
import { answers, probe } from '../../../../cluster/node/daemons/probe.ts';
import { waitFor } from '../../../../cluster/wait.ts';
import { freePort } from '../../../support/free-port.ts';

const folder = await mkdtemp(join(tmpdir(), 'moorage-git-'));
const work = join(folder, 'work');
let server: ChildProcess;
let base = '';

const git = (...args: string[]): Promise<string> =>
  run('git', ['-c', 'user.name=a', '-c', 'user.email=a@b.test', ...args], {
    env: { GIT_TERMINAL_PROMPT: '0', GIT_CONFIG_GLOBAL: '/dev/null', GIT_ASKPASS: 'true' },
  });

beforeAll(async () => {
  const port = await freePort();
  await writeFile(join(folder, 'password'), 'secret\n');
  const env = {
    ...process.env,
    PORT: String(port),
    REPOSITORIES: join(folder, 'repositories'),
    PASSWORD_FILE: join(folder, 'password'),
  };
  server = spawn(process.execPath, [join(import.meta.dirname, '../../../../cluster/git-server/server.ts')], {
    env,
    stdio: 'inherit',
  });
  base = `http://127.0.0.1:${port}`;
  await waitFor('the git server', () => answers(`${base}/healthz`), { seconds: 20, every: 20 });
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

test('a push with the password makes the repository, and anyone clones it', async () => {
  await git('-C', work, 'push', '--quiet', `${withPassword('secret')}/local/app.git`, 'main');
  const commit = await git('-C', work, 'rev-parse', 'HEAD');
  assert.equal((await git('ls-remote', `${base}/local/app.git`, 'refs/heads/main')).split('\t')[0], commit);
  await git('clone', '--quiet', '--depth=1', `${base}/local/app.git`, join(folder, 'clone'));
  assert.deepEqual((await readdir(join(folder, 'clone'))).sort(), ['.git', 'file']);
});

test('a push without the password, or with another, is refused and makes nothing', async () => {
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

test('an answer does not begin before its request has ended', async () => {
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

test('more requests than are served at once wait for a slot, and one that goes away leaves it to the next', async () => {
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
  test(`GET ${path} is not answered by git`, async () => {
    assert.equal((await probe(`${base}${path}`)).status, 404);
  });
}
