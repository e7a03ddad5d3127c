// Folders of several megabytes arrive whole through the gateway, by either version of HTTP.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { execa } from 'execa';
import { baseUrl } from './cluster.ts';

const pushes = 10;
const password = readFileSync('.moorage/git-password', 'utf8').trim();
const host = `git.${baseUrl.host}`;
const port = baseUrl.port || '443';

/** A repository of about 5 MB in files of many sizes. */
async function makeRepository(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'moorage-push-'));
  const git = (...args: string[]): Promise<unknown> => execa('git', ['-c', 'user.name=a', '-c', 'user.email=a@b.test', ...args], { cwd: folder });
  await git('init', '--quiet', '--initial-branch=main');
  for (const [index, size] of [700_000, 3_000, 150_000, 20_000, 700_000, 1_500_000, 40_000, 900_000].entries()) {
    await writeFile(join(folder, `random-${index}`), randomBytes(size));
    await writeFile(join(folder, `text-${index}`), randomBytes(size / 4).toString('hex'));
  }
  await git('add', '.');
  await git('commit', '--quiet', '--message', 'content');
  return folder;
}

for (const version of ['HTTP/1.1', 'HTTP/2']) {
  test(`${pushes} pushes of 5 MB arrive whole by ${version}`, async () => {
    const folder = await makeRepository();
    try {
      const failures: string[] = [];
      for (let index = 0; index < pushes; index += 1) {
        const name = `push-${Date.now()}-${index}`;
        const { exitCode, stderr } = await execa('git', [
          '-c', `http.version=${version}`, '-c', `http.curloptResolve=${host.split(':')[0] ?? ''}:${port}:127.0.0.1`, '-c', 'http.proxy=',
          'push', '--quiet', `https://moorage:${password}@${host}/local-tests/${name}.git`, 'main',
        ], { cwd: folder, env: { GIT_SSL_CAINFO: join(process.cwd(), '.moorage/ca.crt'), GIT_TERMINAL_PROMPT: '0' }, reject: false });
        if (exitCode !== 0) failures.push(stderr);
      }
      assert.deepEqual(failures, []);
    } finally {
      await rm(folder, { recursive: true });
    }
  });
}
