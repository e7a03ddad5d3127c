// Reading one file of a repository over git's smart HTTP, from servers that can filter and from those that cannot.
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, test } from 'vitest';
import { readRemoteFile } from '../../../../lib/git/remote-file.ts';
import { readRepository, RepositoryError } from '../../../../lib/repository.ts';

const run = promisify(execFile);
let folder: string;
let server: Server;
let host: string;
let sent = 0;

async function git(...args: string[]): Promise<string> {
  const identity = ['-c', 'user.name=a', '-c', 'user.email=a@localhost'];
  const { stdout } = await run('git', [...identity, '-C', join(folder, 'work'), ...args], {
    env: { PATH: process.env['PATH'], HOME: folder, GIT_CONFIG_NOSYSTEM: '1' },
  });
  return stdout.trim();
}

/** Runs `git http-backend` as a CGI program. */
function serve(request: IncomingMessage, response: ServerResponse): void {
  const { pathname, search } = new URL(request.url ?? '/', 'http://localhost');
  const child = spawn('git', ['http-backend'], {
    env: {
      PATH: process.env['PATH'],
      HOME: folder,
      GIT_PROJECT_ROOT: folder,
      GIT_HTTP_EXPORT_ALL: '1',
      GIT_PROTOCOL: String(request.headers['git-protocol'] ?? ''),
      REQUEST_METHOD: request.method,
      PATH_INFO: pathname,
      QUERY_STRING: search.slice(1),
      CONTENT_TYPE: request.headers['content-type'] ?? '',
      ...(request.headers['content-encoding'] === undefined
        ? {}
        : { HTTP_CONTENT_ENCODING: request.headers['content-encoding'] }),
    },
  });
  request.pipe(child.stdin);
  const chunks: Buffer[] = [];
  child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
  child.on('close', () => {
    const all = Buffer.concat(chunks);
    const end = all.indexOf('\r\n\r\n');
    const headers = all.subarray(0, end).toString().split('\r\n');
    const status = /^Status: (\d+)/.exec(headers.find((line) => line.startsWith('Status:')) ?? '')?.[1] ?? '200';
    for (const line of headers) {
      const [name = '', ...value] = line.split(': ');
      if (name !== 'Status') response.setHeader(name, value.join(': '));
    }
    sent += all.length;
    response.writeHead(Number(status)).end(all.subarray(end + 4));
  });
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'moorage-remote-file-'));
  await run('git', ['init', '--quiet', '--initial-branch=main', join(folder, 'work')]);
  await writeFile(join(folder, 'work', '.moorage-owner'), 'line one\nline two\n');
  await writeFile(join(folder, 'work', 'large'), randomBytes(60 * 1024 * 1024));
  await symlink('/etc/passwd', join(folder, 'work', 'link'));
  await git('add', '.');
  await git('commit', '--quiet', '--message', 'first');
  for (const name of ['filtering', 'plain']) {
    const bare = join(folder, 'owner', name);
    await run('git', ['clone', '--quiet', '--bare', join(folder, 'work'), bare]);
    await run('git', ['-C', bare, 'config', 'uploadpack.allowFilter', String(name === 'filtering')]);
    await run('git', ['-C', bare, 'config', 'uploadpack.allowAnySHA1InWant', String(name === 'filtering')]);
  }
  server = createServer(serve);
  await new Promise<void>((resolve) => server.listen(0, 'localhost', resolve));
  const address = server.address();
  host = `localhost:${typeof address === 'object' && address !== null ? address.port : 0}`;
});
afterAll(async () => {
  server.closeAllConnections();
  server.close();
  await rm(folder, { recursive: true, force: true });
});

async function read(file: string, repository = 'filtering', maximumBytes = 4096): Promise<string | undefined> {
  const parsed = readRepository(`http://${host}/owner/${repository}`, { allowed: [host], insecure: [host] });
  assert.ok(!(parsed instanceof RepositoryError));
  const commit = await git('rev-parse', 'main');
  return readRemoteFile({ repository: parsed, commit, name: file, maximumBytes });
}

test('reads one file without fetching the rest of the repository', async () => {
  sent = 0;
  assert.equal(await read('.moorage-owner'), 'line one\nline two\n');
  assert.ok(sent < 100_000, `${sent} bytes were sent`);
  assert.equal(await read('.moorage-owner', 'filtering', 8), 'line one');
  assert.equal(await read('missing'), undefined);
});

test('attack: reads no file through a symbolic link', async () => {
  assert.equal(await read('link'), undefined);
});

test('attack: a large file of the same name is not kept beyond the limit, and leaves nothing on the disk', async () => {
  const before = (await run('ls', [tmpdir()])).stdout.split('\n').filter((name) => name.startsWith('moorage-file-'));
  await assert.rejects(read('large'), Error);
  const after = (await run('ls', [tmpdir()])).stdout.split('\n').filter((name) => name.startsWith('moorage-file-'));
  assert.deepEqual(after, before);
});

test('a repository that is too large for a server that cannot filter is refused, a small one is read', async () => {
  await assert.rejects(read('.moorage-owner', 'plain'), Error);
  await git('rm', '--quiet', 'large');
  await git('commit', '--quiet', '--message', 'smaller');
  await git('push', '--quiet', join(folder, 'owner', 'plain'), 'main');
  assert.equal(await read('.moorage-owner', 'plain'), 'line one\nline two\n');
});
