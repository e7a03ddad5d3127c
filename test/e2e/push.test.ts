// Pushes of several megabytes arrive whole through the gateway, by either version of HTTP.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:http2';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeAll, test } from 'vitest';
import { baseUrl } from '../support/cluster.ts';

const pushes = 20;
const authority = '.moorage/ca.crt';
const authorization = `Basic ${Buffer.from(`moorage:${readFileSync('.moorage/git-password', 'utf8').trim()}`).toString('base64')}`;
const host = `git.${baseUrl.hostname}`;
const port = baseUrl.port || '443';
const origin = `https://${host}:${port}`;

let folder = '';

async function git(...args: string[]): Promise<Buffer> {
  const { stdout } = await execa('git', args, {
    cwd: folder,
    encoding: 'buffer',
    stdin: 'ignore',
    env: { GIT_SSL_CAINFO: join(process.cwd(), authority), GIT_TERMINAL_PROMPT: '0' },
  });
  return Buffer.from(stdout);
}

/** A repository of about 5 MB in files of many sizes. */
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'moorage-push-'));
  await git('init', '--quiet', '--initial-branch=main');
  for (const [index, size] of [700_000, 3_000, 150_000, 20_000, 700_000, 1_500_000, 40_000, 900_000].entries()) {
    await writeFile(join(folder, `random-${index}`), randomBytes(size));
    await writeFile(join(folder, `text-${index}`), randomBytes(size / 4).toString('hex'));
  }
  await git('add', '.');
  await git('-c', 'user.name=a', '-c', 'user.email=a@b.test', 'commit', '--quiet', '--message', 'content');
  // Each push sends what is packed here, and compresses nothing again.
  await git('repack', '-a', '-d', '--quiet');
});

afterAll(() => rm(folder, { recursive: true }));

const repository = (index: number): string => `/local-tests/push-${process.pid}-${index}.git`;

/** What a client of git's smart HTTP posts in order to make the commit the head of an empty repository. */
async function pushBody(): Promise<Buffer> {
  const commit = (await git('rev-parse', 'main')).toString().trim();
  const line = `${'0'.repeat(40)} ${commit} refs/heads/main\0 report-status`;
  const pack = await git('pack-objects', '--all', '--stdout', '--quiet');
  return Buffer.concat([Buffer.from(`${(line.length + 4).toString(16).padStart(4, '0')}${line}0000`), pack]);
}

test(`accepts ${pushes} pushes of 5 MB by git over HTTP/1.1`, async () => {
  for (let index = 0; index < pushes; index += 1) {
    await git(
      '-c',
      'http.version=HTTP/1.1',
      '-c',
      `http.curloptResolve=${host}:${port}:127.0.0.1`,
      '-c',
      'http.proxy=',
      '-c',
      `http.extraHeader=Authorization: ${authorization}`,
      'push',
      '--quiet',
      `${origin}${repository(index)}`,
      'main',
    );
  }
});

test(`accepts ${pushes} pushes of 5 MB over HTTP/2`, async () => {
  const body = await pushBody();
  const session = connect(origin, {
    ca: readFileSync(authority),
    lookup: (_host, _options, callback) => {
      callback(null, [{ address: '127.0.0.1', family: 4 }]);
    },
  });
  try {
    for (let index = 0; index < pushes; index += 1) assert.match(await post(index), /unpack ok/);
  } finally {
    session.close();
  }

  function post(index: number): Promise<string> {
    return new Promise((resolve, reject) => {
      const request = session.request({
        ':method': 'POST',
        ':path': `${repository(pushes + index)}/git-receive-pack`,
        authorization,
        'content-type': 'application/x-git-receive-pack-request',
      });
      let answer = '';
      request.on('data', (chunk: Buffer) => {
        answer += chunk.toString('latin1');
      });
      request.on('end', () => {
        resolve(answer);
      });
      request.on('error', reject);
      request.end(body);
    });
  }
});
