// Deploy keys: derived per repository, in the formats of OpenSSH; host keys: those that forges publish, and lines of known_hosts.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { test } from 'vitest';
import {
  deriveDeployKey,
  findDeployKeyPage,
  findSshRemote,
  listHostKeys,
  parseHostKey,
} from '../../../../lib/git/deploy-keys.ts';
import { parseRepository, type Repository } from '../../../../lib/repository.ts';

const run = promisify(execFile);
const secret = 's'.repeat(32);
const hosts = {
  allowed: ['github.com', 'gitlab.com', 'codeberg.org', 'bitbucket.org', 'git.example.org:3000', 'npmjs.com'],
  insecure: [],
};
const parse = (text: string): Repository => parseRepository(text, hosts);
const ed25519 = `ssh-ed25519 ${'A'.repeat(68)}`;

test('derives one key for each repository, whatever its spelling', () => {
  const { publicKey, privateKey } = deriveDeployKey(parse('owner/name'), secret);
  assert.match(publicKey, /^ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI[A-Za-z0-9+/]+ moorage$/);
  assert.match(privateKey, /^-----BEGIN OPENSSH PRIVATE KEY-----\n/);
  for (const same of ['https://github.com/Owner/NAME.git', 'https://github.com/owner/name'])
    assert.equal(deriveDeployKey(parse(same), secret).publicKey, publicKey);
  const others = [
    deriveDeployKey(parse('owner/other'), secret),
    deriveDeployKey(parse('https://gitlab.com/owner/name'), secret),
    deriveDeployKey(parse('owner/name'), 't'.repeat(32)),
  ].map((key) => key.publicKey);
  assert.equal(new Set([publicKey, ...others]).size, 4);
});

test('makes keys that ssh-keygen reads, with the fingerprint that it prints', async () => {
  const { publicKey, privateKey, fingerprint } = deriveDeployKey(parse('owner/name'), secret);
  const folder = await mkdtemp(join(tmpdir(), 'keys-'));
  const file = join(folder, 'key');
  await writeFile(file, privateKey, { mode: 0o600 });
  const derived = await run('ssh-keygen', ['-y', '-f', file]);
  assert.equal(derived.stdout.trim(), publicKey);
  const printed = await run('ssh-keygen', ['-lf', file]);
  assert.equal(printed.stdout.split(' ')[1], fingerprint);
  await rm(folder, { recursive: true });
});

test('knows the Ed25519 host keys that the forges publish', () => {
  // https://api.github.com/meta, docs.gitlab.com/user/gitlab_com, docs.codeberg.org/security/ssh-fingerprint and
  // support.atlassian.com/bitbucket-cloud/docs/configure-ssh-and-two-step-verification
  const published = {
    'github.com': '+DiY3wvvV6TuJJhbpZisF/zLDA0zPMSvHdkr4UvCOqU',
    'gitlab.com': 'eUXGGm1YGsMAS7vkcx6JOJdOGHPem5gQp4taiCfCLB8',
    'codeberg.org': 'mIlxA9k46MmM6qdJOdMnAQpzGxF4WIVVL+fj+wZbw0g',
    'bitbucket.org': 'ybgmFkzwOSotHTHLJgHO0QN8L0xErw6vd0VhFA9m3SM',
  };
  const fingerprints = listHostKeys([]).map(({ host, port, key }) => {
    const digest = createHash('sha256')
      .update(Buffer.from(key.split(' ')[1] ?? '', 'base64'))
      .digest('base64');
    assert.equal(port, 22);
    return [host, digest.replace(/=+$/, '')];
  });
  assert.deepEqual(Object.fromEntries(fingerprints), published);
});

test('finds how a repository is reached over SSH', () => {
  const line = parseHostKey(`[git.example.org]:2222 ${ed25519}`) ?? assert.fail();
  const hostKeys = listHostKeys([line]);
  const github = findSshRemote(parse('owner/name'), hostKeys);
  assert.equal(github?.url, 'ssh://git@github.com:22/owner/name.git');
  assert.match(github.knownHosts, /^github\.com ssh-ed25519 \S+\n$/);
  assert.deepEqual(findSshRemote(parse('https://git.example.org:3000/owner/name'), hostKeys), {
    url: 'ssh://git@git.example.org:2222/owner/name.git',
    knownHosts: `[git.example.org]:2222 ${ed25519}\n`,
  });
  assert.equal(findSshRemote(parse('https://git.example.org:3000/owner/name'), listHostKeys([])), undefined);
  assert.equal(findSshRemote(parse('npm:left-pad'), hostKeys), undefined);
});

test('replaces the built-in key of a forge by one that is set', () => {
  const own = parseHostKey(`github.com ${ed25519}`) ?? assert.fail();
  const remote = findSshRemote(parse('owner/name'), listHostKeys([own]));
  assert.equal(remote?.knownHosts, `github.com ${ed25519}\n`);
});

test.for([
  `github.com,gitlab.com ${ed25519}`,
  `*.example.org ${ed25519}`,
  `@cert-authority git.example.org ${ed25519}`,
  `|1|abc|def ${ed25519}`,
  `[git.example.org]:99999 ${ed25519}`,
  `git.example.org ssh-dss ${'A'.repeat(68)}`,
  `git.example.org ${ed25519}\nother.example.org ${ed25519}`,
  `git.example.org ${ed25519} -oProxyCommand=id`,
  'git.example.org',
])('refuses the host key line %j', (line) => {
  assert.equal(parseHostKey(line), undefined);
});

test('knows where each forge takes deploy keys', () => {
  for (const host of ['github.com', 'gitlab.com', 'codeberg.org', 'bitbucket.org'])
    assert.match(
      findDeployKeyPage(parse(`https://${host}/owner/name`)) ?? '',
      new RegExp(`^https://${host}/owner/name/`),
    );
  assert.equal(findDeployKeyPage(parse('https://git.example.org:3000/owner/name')), undefined);
});
