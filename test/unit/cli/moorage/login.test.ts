// Logging in: where keys come from, where they are kept, and that neither they nor secrets are ever shown.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'vitest';
import { Config } from '../../../../cli/moorage/config.ts';
import { UsageError } from '../../../../lib/command-line.ts';
import { createAuthorToken, createAuthorKey, formatAuthorKeyLine } from '../../../../lib/ownership-file.ts';
import { type LoopbackApi, MoorageHome, refuse, startLoopbackApi } from '../../../support/moorage-program.ts';

const key = createAuthorKey();
const issued = createAuthorKey();
const main = join(import.meta.dirname, '../../../../cli/moorage/main.ts');
let home: MoorageHome;
let api: LoopbackApi;

const status = (slug: string): object => ({
  ...{ status: 'live', message: 'Live.', slug, repo: `https://git.test/octo/${slug}` },
  ...{ url: `https://${slug}.test`, log_url: 'https://moorage.test/log' },
});

beforeEach(async () => {
  home = new MoorageHome();
  api = await startLoopbackApi({
    'GET /api/projects': { projects: [] },
    'GET /api/apps/hello': { slug: 'hello', releases: [] },
    'GET /api/submit-status/octo/hello': status('hello'),
    'GET /api/submit-status/octo/other': status('other'),
    'POST /api/apps/hello/keys': {
      key: issued,
      file: '.moorage-owner',
      line: formatAuthorKeyLine(issued, 'git.test/octo/hello'),
      repository: 'https://git.test/octo/hello',
      message: 'Commit it.',
    },
  });
});
afterEach(() => {
  api.close();
  home.remove();
});

const readConfig = (): unknown => JSON.parse(readFileSync(home.configFile, 'utf8'));
const kept = (secret: string): object => ({ current: api.url, installations: { [api.url]: { key: secret } } });

/** Neither output may contain a key. */
function assertNoKey({ stdout, stderr }: { stdout: string; stderr: string }): void {
  assert.doesNotMatch(`${stdout}${stderr}`, /mak-/);
}

test('a key from standard input is tried, and kept with mode 0600', async () => {
  const run = await home.run(['login', 'octo/hello', '--api', api.url], { input: `${key}\n` });
  assert.deepEqual(
    [run.code, run.stdout],
    [0, `Stored the key for ${api.url} in ${home.configFile}.\nIt opens hello.\n`],
  );
  assertNoKey(run);
  assert.deepEqual(readConfig(), kept(key));
  assert.deepEqual(
    [statSync(home.configFile).mode & 0o777, statSync(join(home.configFile, '..')).mode & 0o777],
    [0o600, 0o700],
  );
  assert.deepEqual(api.requests.at(-1)?.authorization, `Bearer ${key}`);
  // The installation and the key are known from now on.
  assert.equal((await home.run(['releases', 'hello'])).code, 0);
  assert.deepEqual(api.requests.at(-1)?.authorization, `Bearer ${key}`);
});

test('a key from a file replaces the one before, also in a file that others could read', async () => {
  mkdirSync(join(home.configFile, '..'), { recursive: true });
  writeFileSync(home.configFile, JSON.stringify(kept(issued)));
  chmodSync(home.configFile, 0o644);
  writeFileSync(join(home.folder, 'key'), `${key}\n`);
  assert.equal((await home.run(['login', '--key-file', 'key'])).code, 0);
  assert.deepEqual([readConfig(), statSync(home.configFile).mode & 0o777], [kept(key), 0o600]);
});

test('a token is kept like a key, if it opens the app', async () => {
  const token = createAuthorToken();
  const { code, stderr } = await home.run(['login', 'hello', '--api', api.url], { input: `${token}\n` });
  assert.deepEqual([code, stderr], [0, '']);
  assert.deepEqual(readConfig(), kept(token));
  api.answers['GET /api/apps/hello'] = refuse(404, 'app-private', 'Nothing to show', 'A wrong key.');
  const other = await home.run(['login', 'hello', '--api', api.url], { input: `${createAuthorToken()}\n` });
  assert.deepEqual([other.code, /does not open hello/.test(other.stderr)], [1, true]);
});

test('on a terminal, it asks for the address, and for the key without an echo', async () => {
  const run = await home.run(['login'], { terminal: 80, input: `${api.url}\n${key}\n` });
  assert.equal(run.code, 0, run.stderr);
  assert.match(run.stderr, /Address of the installation: [^]*Author key \(empty for a new one\): \n$/);
  assertNoKey(run);
  assert.deepEqual(readConfig(), kept(key));
});

test('without a key, it gets one, keeps it and prints the line to commit', async () => {
  const run = await home.run(['login', 'hello', '--api', api.url, '--new-key']);
  assert.equal(run.code, 0, run.stderr);
  assertNoKey(run);
  assert.match(run.stdout, new RegExp(`^ {2}${formatAuthorKeyLine(issued, 'git.test/octo/hello')}$`, 'm'));
  assert.match(run.stdout, /^ {2}echo 'moorage-author-sha256-[0-9a-f]{64}' >> \.moorage-owner$/m);
  assert.deepEqual(readConfig(), kept(issued));
  // The same key opens the next app, by a line of its own.
  const next = await home.run(['login', 'octo/other', '--json'], { input: '' });
  assert.partialDeepStrictEqual(JSON.parse(next.stdout), {
    app: 'other',
    file: '.moorage-owner',
    line: formatAuthorKeyLine(issued, 'git.test/octo/other'),
  });
  assert.deepEqual(readConfig(), kept(issued));
});

test('a key whose line is not committed yet is kept, and its line is printed', async () => {
  api.answers['GET /api/apps/hello'] = refuse(404, 'app-private', 'Nothing to show', 'No.');
  const run = await home.run(['login', 'octo/hello', '--api', api.url], { input: key });
  assert.equal(run.code, 0);
  assert.match(run.stdout, new RegExp(formatAuthorKeyLine(key, 'git.test/octo/hello')));
  assert.deepEqual(readConfig(), kept(key));
});

test('keys of other installations stay, and logout removes one', async () => {
  const other = await startLoopbackApi({ 'GET /api/projects': {} });
  try {
    await home.run(['login', '--api', api.url], { input: key });
    await home.run(['login', '--api', other.url], { input: issued });
    assert.equal((await home.run(['logout'])).stdout.split('.')[0], `Removed the key for ${other.url}`.split('.')[0]);
    assert.deepEqual(readConfig(), { installations: { [api.url]: { key } } });
    assert.match((await home.run(['logout', '--api', other.url])).stdout, /^No key is stored for/);
  } finally {
    other.close();
  }
});

test('the certificate authority: an option, a variable, the last login, then that of the cluster on this machine', async () => {
  const local = join(home.folder, 'local');
  mkdirSync(local);
  const address = 'https://moorage.localhost';
  writeFileSync(
    join(local, 'config.json'),
    JSON.stringify({ baseUrl: address, gitUrl: address, internalGitUrl: address }),
  );
  for (const name of ['ca.crt', 'option', 'variable', 'stored'])
    writeFileSync(join(name === 'ca.crt' ? local : home.folder, name), name);
  const environment = { XDG_CONFIG_HOME: join(home.folder, 'config') };
  const resolveAuthority = async (
    variables: NodeJS.ProcessEnv,
    options: { 'ca-file'?: string } = {},
  ): Promise<unknown> => {
    const config = new Config({ ...environment, ...variables }, home.folder, local);
    const { address: found, authority, local: cluster } = await config.resolveTarget(options);
    assert.deepEqual([found, cluster?.baseUrl], [address, address]);
    return authority?.pem;
  };
  assert.equal(await resolveAuthority({}), 'ca.crt');
  await new Config(environment, home.folder, local).write(address, { caFile: join(home.folder, 'stored') });
  assert.equal(await resolveAuthority({}), 'stored');
  assert.equal(await resolveAuthority({ MOORAGE_CA: 'variable' }), 'variable');
  assert.equal(await resolveAuthority({ MOORAGE_CA: 'variable' }, { 'ca-file': 'option' }), 'option');
  await assert.rejects(resolveAuthority({ MOORAGE_CA: 'none' }), UsageError);
});

test('attack: a key over plain http to another machine is refused before it is sent', async () => {
  const run = await home.run(['login', '--api', 'http://moorage.example.org'], { input: key });
  assert.deepEqual([run.code, /use https for moorage\.example\.org/.test(run.stderr)], [2, true]);
  assertNoKey(run);
  assert.equal(existsSync(home.configFile), false);
});

test.each([
  ['a key as an argument', ['login', key]],
  ['a key after the app', ['login', 'hello', key]],
  ['a key as the app', ['login', '--app', key]],
])('%s is refused and not repeated', async (_name, args) => {
  const run = await home.run([...args, '--api', api.url]);
  assert.deepEqual([run.code, api.requests], [2, []]);
  assert.match(run.stderr, /a key is never an argument/);
  assertNoKey(run);
});

test.each([
  ['NAME=VALUE', ['secrets', 'set', 'API_KEY=hunter2', '-a', 'hello']],
  ['NAME VALUE', ['secrets', 'set', 'API_KEY', 'hunter2', '-a', 'hello']],
])('a secret as %s is refused and not repeated', async (_name, args) => {
  const run = await home.run(args, { environment: { MOORAGE_API: api.url } });
  assert.deepEqual([run.code, api.requests], [2, []]);
  assert.match(run.stderr, /never an argument/);
  assert.doesNotMatch(`${run.stdout}${run.stderr}`, /hunter2/);
});

test('a damaged file is named and never quoted, and what is no key is not repeated', async () => {
  mkdirSync(join(home.configFile, '..'), { recursive: true });
  for (const text of [
    `{"installations": {"x": {"key": ${key}`,
    `{"installations": {"x": {"key": ["${key}"]}}}`,
    `{"${key}": 1}`,
  ]) {
    writeFileSync(home.configFile, text);
    const run = await home.run(['status', 'hello']);
    assert.deepEqual(
      [run.code, run.stderr.startsWith(`error: ${home.configFile} is not valid`)],
      [1, true],
      run.stderr,
    );
    assertNoKey(run);
  }
  writeFileSync(home.configFile, '{}');
  const run = await home.run(['login', '--api', api.url], { input: 'mak-hunter2' });
  assert.deepEqual([run.code, /hunter2/.test(run.stderr)], [1, false]);
});

test('while a secret is set, it is in no process list and in no output', async () => {
  api.answers['PUT /api/apps/hello/secrets/API_KEY'] = (response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).end('{"message": "Set."}');
  };
  const child = spawn(process.execPath, [main, 'secrets', 'set', 'API_KEY', '-a', 'hello'], {
    env: { PATH: process.env['PATH'], HOME: home.folder, MOORAGE_API: api.url, NODE_NO_WARNINGS: '1' },
    cwd: home.folder,
  });
  let printed = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text: Buffer) => (printed += text.toString()));
  await once(child, 'spawn');
  const commandLine = existsSync('/proc')
    ? readFileSync(`/proc/${child.pid ?? 0}/cmdline`, 'utf8')
    : child.spawnargs.join(' ');
  child.stdin.end('hunter2\n');
  const [code] = (await once(child, 'close')) as [number];
  assert.deepEqual([code, printed, commandLine.includes('hunter2')], [0, 'Set.\n', false]);
  assert.deepEqual(api.requests.at(-1)?.body, { value: 'hunter2' });
});
