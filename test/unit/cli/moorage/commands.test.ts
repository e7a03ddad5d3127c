// Each command sends the documented request with the author's key, and prints the answer for a person and for a program.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, test } from 'vitest';
import { createAuthorToken, createAuthorKey } from '../../../../lib/ownership-file.ts';
import { accepted, cases } from '../../../support/moorage-requests.ts';
import {
  type Answer,
  type LoopbackApi,
  MoorageHome,
  type ProgramRun,
  refuse,
  startLoopbackApi,
} from '../../../support/moorage-program.ts';

const key = createAuthorKey();
const home = new MoorageHome();
let api: LoopbackApi;

const commit = 'a1b2c3d4e5'.repeat(4);
const live = (slug: string): object => ({
  status: 'live',
  message: `The app is live at https://${slug}.moorage.test.`,
  repo: `https://git.test/octo/${slug}`,
  slug,
  url: `https://${slug}.moorage.test`,
  status_url: `https://moorage.test/api/submit-status/octo/${slug}`,
  log_url: `https://moorage.test/api/submit-status/octo/${slug}/log`,
  commit,
  newest_commit: commit,
  since: '2026-11-01T08:00:00.123Z',
  plan: { strategy: 'node', framework: 'Express', reason: 'package.json.' },
  components: [{ name: 'web', kind: 'web', ready: true }],
});
const release = (digits: string, serving: boolean): object => ({
  commit: digits.repeat(20),
  ready_at: '2026-11-01T08:00:00Z',
  good: true,
  serving,
});
const app = {
  slug: 'hello',
  repository: 'https://git.test/octo/hello',
  suspended: false,
  releases: [release('ab', true), { ...release('cd', false), pinned: true }],
};

/** Writes server-sent events, and then ends or breaks the connection. */
const stream =
  (events: readonly [id: string, name: string, data: object][], breaks = false): Answer =>
  (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const text = events
      .map(([id, name, data]) => `event: ${name}\nid: ${id}\ndata: ${JSON.stringify(data)}\n\n`)
      .join('');
    response.write(text, () => (breaks ? response.destroy() : response.end()));
  };

beforeAll(async () => {
  api = await startLoopbackApi({});
});
afterAll(() => {
  api.close();
  home.remove();
});
beforeEach(() => {
  api.requests.length = 0;
  for (const name of Object.keys(api.answers)) Reflect.deleteProperty(api.answers, name);
  Object.assign(api.answers, {
    'GET /api/submit-status/octo/hello': live('hello'),
    'GET /api/projects/hello': { slug: 'hello', status_url: 'https://moorage.test/api/submit-status/octo/hello' },
    'GET /api/apps/hello': app,
  });
});

async function run(args: readonly string[], input = ''): Promise<ProgramRun> {
  return home.run(args, { input, environment: { MOORAGE_API: api.url, MOORAGE_KEY: key } });
}

/** Lines of the requests, each of which must carry the key. */
function listRequests(): string[] {
  assert.deepEqual([...new Set(api.requests.map(({ authorization }) => authorization))], [`Bearer ${key}`]);
  return api.requests.map(({ line, body }) => `${line}${body === undefined ? '' : ` ${JSON.stringify(body)}`}`);
}

test.each(cases)('%s', async (line, input, request, answer) => {
  api.answers[request.split(' {')[0] ?? ''] = answer;
  const { code, stdout, stderr } = await run(line.split(' '), input);
  assert.deepEqual([code, stdout, stderr], [0, 'Accepted.\n', '']);
  assert.equal(listRequests().at(-1), request);
  const json = await run([...line.split(' '), '--json'], input);
  assert.deepEqual([json.code, JSON.parse(json.stdout)], [0, answer]);
});

test('notifications list shows who gets what, and remove finds a contact by the beginning of its id', async () => {
  const id = '3f9c0a12'.repeat(4);
  api.answers['GET /api/apps/hello/notifications'] = {
    events: ['live', 'crashed'],
    mail: { sent: true, to: 'm…@example.org', events: ['live', 'crashed'] },
    contacts: [{ id, to: 'o…@example.org', sent: false, reason: 'The address is not confirmed yet.' }],
    webhook: { url: 'https://hooks.test/', events: ['crashed'] },
    deliveries: [
      {
        at: '2026-11-01T08:00:00Z',
        type: 'live',
        channel: 'mail',
        to: 'm…@example.org',
        state: 'delivered',
        attempts: 1,
      },
    ],
  };
  const { code, stdout } = await run(['notifications', 'list', 'hello']);
  assert.equal(code, 0);
  assert.equal(
    stdout,
    `mail                   m…@example.org
events of mails        all
contact 3f9c0a12       o…@example.org: The address is not confirmed yet.
webhook                https://hooks.test/
events of the webhook  crashed

TIME                  EVENT  CHANNEL  TO              STATE      ATTEMPTS
2026-11-01 08:00:00Z  live   mail     m…@example.org  delivered  1
`,
  );
  api.answers[`DELETE /api/apps/hello/notifications/contacts/${id}`] = accepted;
  assert.equal((await run(['notifications', 'remove', '3f9c', '-a', 'hello'])).code, 0);
  assert.equal((await run(['notifications', 'remove', 'ffff', '-a', 'hello'])).code, 2);
});

test('hook --replace gets a new secret, and says until when the old one is valid', async () => {
  api.answers['POST /api/apps/hello/push-hook-secret/replace'] = {
    ...{ url: 'https://moorage.test/hook', secret: 's3cret', setup: { github: 'Settings.' } },
    previous_valid_until: '2026-11-02T08:00:00.000Z',
  };
  const { stdout } = await run(['hook', 'hello', '--replace']);
  assert.match(stdout, /secret +s3cret\nprevious valid until +2026-11-02T08:00:00\.000Z\n/);
  assert.match(listRequests().at(-1) ?? '', /replace \{"end_previous":false\}$/);
});

test('notifications webhook shows the secret once', async () => {
  api.answers['PUT /api/apps/hello/notifications/webhook'] = { url: 'https://hooks.test/', secret: 'whsec_x' };
  const { stdout } = await run(['notifications', 'webhook', 'https://hooks.test/', '--event', 'live', '-a', 'hello']);
  assert.equal(stdout, 'url     https://hooks.test/\nsecret  whsec_x\n');
  const [request] = listRequests().slice(-1);
  assert.equal(request, 'PUT /api/apps/hello/notifications/webhook {"url":"https://hooks.test/","events":["live"]}');
});

test('status prints fields, and the whole answer as JSON', async () => {
  const { code, stdout } = await run(['status', 'hello']);
  assert.equal(code, 0);
  assert.equal(
    stdout,
    `hello  live
  url         https://hello.moorage.test
  repository  https://git.test/octo/hello
  commit      a1b2c3d4e5a1
  since       2026-11-01 08:00:00Z
  plan        node, Express

The app is live at https://hello.moorage.test.

NAME  KIND  READY  MESSAGE
web   web   yes
`,
  );
  assert.deepEqual(listRequests(), ['GET /api/projects/hello', 'GET /api/submit-status/octo/hello']);
  assert.deepEqual(JSON.parse((await run(['status', 'octo/hello', '--json'])).stdout), live('hello'));
});

test('the app may be left out in a clone of its repository, whose credentials are not sent', async () => {
  const folder = join(home.folder, 'clone');
  mkdirSync(folder);
  const git = (...args: string[]): void => void execFileSync('git', ['-C', folder, ...args], { stdio: 'ignore' });
  git('init', '--quiet');
  const options = { folder, environment: { MOORAGE_API: api.url, MOORAGE_KEY: key } };
  const none = await home.run(['open'], options);
  assert.deepEqual([none.code, /which app\?/.test(none.stderr)], [2, true]);
  git('remote', 'add', 'origin', 'https://bot:hunter2@git.test/octo/hello.git');
  assert.equal((await home.run(['open'], options)).stdout, 'https://hello.moorage.test\n');
  git('remote', 'set-url', 'origin', 'git@git.test:octo/hello.git');
  assert.equal((await home.run(['open'], options)).code, 0);
  assert.deepEqual(
    listRequests(),
    Array.from({ length: 2 }, () => 'GET /api/submit-status/octo/hello?host=git.test'),
  );
});

test('open starts a browser on a terminal', async () => {
  const programs = join(home.folder, 'programs');
  mkdirSync(programs);
  for (const name of ['xdg-open', 'open']) {
    writeFileSync(join(programs, name), `#!/bin/sh\necho "$1" > '${programs}/opened'\n`);
    chmodSync(join(programs, name), 0o755);
  }
  const environment = { MOORAGE_API: api.url, PATH: `${programs}:${process.env['PATH'] ?? ''}` };
  await home.run(['open', 'hello'], { environment, terminal: 80 });
  assert.equal(readFileSync(join(programs, 'opened'), 'utf8'), 'https://hello.moorage.test\n');
});

test('releases are a table, and a rollback needs a commit', async () => {
  const { stdout } = await run(['releases', 'hello']);
  assert.equal(
    stdout,
    `COMMIT        READY                 STATE
abababababab  2026-11-01 08:00:00Z  serving, good
cdcdcdcdcdcd  2026-11-01 08:00:00Z  pinned, good
`,
  );
  assert.equal((await run(['rollback', 'main', '-a', 'hello'])).code, 2);
});

test('delete asks for the name of the app', async () => {
  api.answers['DELETE /api/apps/hello'] = accepted;
  const environment = { MOORAGE_API: api.url, MOORAGE_KEY: key };
  assert.equal((await run(['delete', 'hello'])).code, 2);
  const other = await home.run(['delete', 'hello'], { environment, terminal: 80, input: 'hallo\n' });
  assert.deepEqual([other.code, listRequestsOrNone()], [1, []]);
  const same = await home.run(['delete', 'hello'], { environment, terminal: 80, input: 'hello\n' });
  assert.deepEqual([same.code, same.stdout, listRequests()], [0, 'Accepted.\n', ['DELETE /api/apps/hello']]);
});

function listRequestsOrNone(): string[] {
  return api.requests.map(({ line }) => line);
}

test('env and settings send what changes, and null for what is removed', async () => {
  const env = [
    { name: 'A', value: '1' },
    { name: 'B', value: '2' },
  ];
  const answer = { slug: 'hello', settings: { env, replicas: 2 }, maximum_replicas: 4 };
  api.answers['GET /api/apps/hello/settings'] = answer;
  api.answers['PUT /api/apps/hello/settings'] = { ...answer, message: 'Changed.' };
  const put = async (...args: string[]): Promise<unknown> => {
    const { code, stderr } = await run([...args, '-a', 'hello']);
    assert.deepEqual([code, stderr], [0, '']);
    return api.requests.at(-1)?.body;
  };
  assert.deepEqual(await put('env', 'set', 'B=x=y', 'C='), {
    env: [env[0], { name: 'B', value: 'x=y' }, { name: 'C', value: '' }],
  });
  assert.deepEqual(await put('env', 'unset', 'A'), { env: [env[1]] });
  assert.deepEqual(await put('settings', '--idle-after', '15m', '--unset', 'replicas'), {
    idleAfter: '15m',
    replicas: null,
  });
  assert.equal((await run(['env', 'unset', 'Z', '-a', 'hello'])).code, 2);
  assert.equal((await run(['settings', 'hello'])).stdout, 'replicas  2\nenv       A, B\n');
  assert.equal((await run(['env', 'list', 'hello'])).stdout, 'NAME  VALUE\nA     1\nB     2\n');
});

test('access shows who may visit, makes a password or a key, and refuses what is none', async () => {
  const keys = [{ name: 'team', created_at: '2026-11-01T08:00:00Z' }];
  api.answers['GET /api/apps/hello/access'] = { slug: 'hello', access: 'key', enforced: true, keys };
  api.answers['PUT /api/apps/hello/access'] = { access: 'password', enforced: false, keys, message: 'Protected.' };
  api.answers['POST /api/apps/hello/access/keys'] = { name: 'ci', key: 'mvk-x', message: 'Send it.' };
  assert.equal((await run(['access', '-a', 'hello'])).stdout, 'access    key\nenforced  yes\nkeys      team\n');
  assert.equal((await run(['access', 'keys', 'hello'])).stdout, 'NAME  CREATED\nteam  2026-11-01 08:00:00Z\n');
  assert.equal((await run(['access', 'add', 'ci', '-a', 'hello'])).stdout, 'mvk-x\nSend it.\n');
  assert.deepEqual(api.requests.at(-1)?.body, { name: 'ci' });
  const { stdout } = await run(['access', 'password', '--generate', '-a', 'hello']);
  const [, password] = /^Protected\.\nPassword: ([\w-]{20})\n$/.exec(stdout) ?? assert.fail(stdout);
  assert.deepEqual(api.requests.at(-1)?.body, { access: 'password', password });
  api.requests.length = 0;
  for (const args of [
    ['oidc'],
    ['private'],
    ['password', 'my secret'],
    ['key', '--generate'],
    ['add', `mvk-${'A'.repeat(43)}`],
  ]) {
    const { code, stderr } = await run(['access', ...args, '-a', 'hello']);
    assert.equal(code, 2, args.join(' '));
    assert.doesNotMatch(stderr, /my secret|mvk-A/);
  }
  assert.match((await run(['access', 'oidc', '-a', 'hello'])).stderr, /not offered: use password, or key/);
  assert.deepEqual(listRequestsOrNone(), []);
});

test('secrets list shows the fields that an installation has, and what is missing', async () => {
  api.answers['GET /api/apps/hello/secrets'] = {
    secrets: [{ name: 'API_KEY', version: 3, set_at: '2026-11-01T08:00:00Z' }],
    missing: [{ name: 'MAIL_KEY', reason: 'The app crashed without it.' }],
  };
  assert.equal(
    (await run(['secrets', 'list', 'hello'])).stdout,
    `NAME     VERSION  SET_AT
API_KEY  3        2026-11-01 08:00:00Z

Without a value:
NAME      REASON
MAIL_KEY  The app crashed without it.
`,
  );
});

test('tokens are made with scopes and an end, listed, and revoked by name', async () => {
  const token = createAuthorToken();
  api.answers['POST /api/apps/hello/tokens'] = { id: '0123456789ab', token, message: 'Keep it.' };
  const made = await run(['tokens', 'create', 'My CI', '--scope', 'deploy,logs', '--days', '90', '-a', 'hello']);
  assert.deepEqual([made.code, made.stdout], [0, `${token}\n`]);
  assert.equal(made.stderr, 'Keep it. Its id is 0123456789ab.\n');
  assert.equal(
    listRequests().at(-1),
    'POST /api/apps/hello/tokens {"name":"My CI","expires_in_days":90,"scopes":["deploy","logs"]}',
  );
  const endless = await run(['tokens', 'create', 'My CI', '-a', 'hello']);
  assert.deepEqual([endless.code, /--days is required/.test(endless.stderr)], [2, true]);

  const row = { name: 'My CI', scopes: ['deploy', 'logs'], state: 'active', expires_at: '2027-01-01T00:00:00.000Z' };
  api.answers['GET /api/apps/hello/tokens'] = {
    tokens: [
      { ...row, id: '0123456789ab' },
      { ...row, id: '112233445566', name: 'Twice' },
      { ...row, id: '112233445577', name: 'Twice' },
    ],
  };
  const list = await run(['tokens', 'list', 'hello']);
  assert.match(list.stdout, /\n0123456789ab {2}My CI {2}deploy,logs {2}active {2}2027-01-01 00:00:00Z {2}never\n/);
  api.answers['DELETE /api/apps/hello/tokens/0123456789ab'] = { message: 'My CI is revoked.' };
  assert.equal((await run(['tokens', 'revoke', 'My CI', '-a', 'hello'])).stdout, 'My CI is revoked.\n');
  assert.match((await run(['tokens', 'revoke', 'Twice', '-a', 'hello'])).stderr, /several tokens have this name/);
  assert.match((await run(['tokens', 'revoke', 'None', '-a', 'hello'])).stderr, /no active token/);
});

test('hook, audit and export', async () => {
  api.answers['POST /api/apps/hello/push-hook-secret'] = {
    url: 'https://moorage.test/hooks/hello',
    secret: 's3cret',
    setup: { github: 'Settings.' },
  };
  assert.match(
    (await run(['hook', 'hello'])).stdout,
    /^url {5}https:\/\/moorage\.test\/hooks\/hello\nsecret {2}s3cret\n\n.*\n {2}github {2}Settings\.\n$/,
  );
  const entry = {
    id: '7',
    at: '2026-11-01T08:00:00Z',
    actor: '0123456789ab',
    action: 'restart',
    detail: { n: 1 },
    outcome: 'accepted',
    request: 'r1',
  };
  api.answers['GET /api/apps/hello/audit'] = { entries: [entry], next: '7' };
  const audit = await run(['audit', 'hello', '--limit', '1']);
  assert.match(audit.stdout, /^TIME .*\n2026-11-01 08:00:00Z {2}restart {2}accepted {2}0123456789ab {2}n=1 {5}r1\n$/);
  assert.equal(audit.stderr, 'Older entries: moorage audit hello --before 7\n');
  assert.equal(listRequests().at(-1), 'GET /api/apps/hello/audit?limit=1');
  api.answers['GET /api/apps/hello/export'] = (response) => response.writeHead(200).end('bytes');
  assert.equal((await run(['export', 'hello'])).stdout, 'bytes');
  await run(['export', 'hello', '-o', 'kept']);
  const file = join(home.folder, 'kept');
  assert.deepEqual([readFileSync(file, 'utf8'), statSync(file).mode & 0o777], ['bytes', 0o600]);
});

test('logs are printed without control characters, and as one document', async () => {
  const page = {
    lines: [{ at: '2026-11-01T08:00:00.5Z', component: 'web', line: '\u001b[31mred\u001b[0m' }, { line: 'plain' }],
  };
  api.answers['GET /api/apps/hello/logs'] = page;
  const { stdout } = await run([
    'logs',
    'hello',
    '--since',
    '10m',
    '-n',
    '5',
    '--previous',
    '--component',
    'web',
    '--search',
    'a b',
  ]);
  assert.equal(stdout, '2026-11-01 08:00:00Z  web  red\nplain\n');
  assert.equal(
    listRequests().at(-1),
    'GET /api/apps/hello/logs?since=10m&tail=5&previous=true&component=web&search=a+b',
  );
  assert.deepEqual(JSON.parse((await run(['logs', 'hello', '--json'])).stdout), page);
  const crash = {
    at: '2026-11-01T08:00:01.5Z',
    component: 'web',
    pod: 'p',
    restarts: 0,
    exit_code: 137,
    reason: 'OOMKilled',
  };
  api.answers['GET /api/apps/hello/logs'] = { lines: [], crash };
  const { stderr } = await run(['logs', 'hello', '--previous']);
  assert.equal(stderr, 'web ended at 2026-11-01 08:00:01Z with exit code 137 (OOMKilled).\n');
});

test('following logs resumes after the last event, and prints JSON lines', async () => {
  let streams = 0;
  const path = 'GET /api/apps/hello/logs';
  api.answers[path] = (response, request) => {
    streams += 1;
    const first: Answer = stream([['1', 'log', { line: 'one' }]], true);
    const second: Answer = stream([
      ['2', 'log', { line: 'two' }],
      ['3', 'end', { message: 'The app was deleted.' }],
    ]);
    const busy: Answer = refuse(503, 'too-many-streams', 'Too many log streams', 'Wait.');
    const answer = [first, busy, second][(streams - 1) % 3];
    if (typeof answer === 'function') answer(response, request);
  };
  const { code, stdout, stderr } = await run(['logs', 'hello', '--follow']);
  assert.deepEqual([code, stdout, stderr], [1, 'one\ntwo\n', 'The app was deleted.\n']);
  assert.deepEqual(
    api.requests.map(({ line, lastEventId }) => [line, lastEventId]),
    [undefined, '1', '1'].map((id) => [`${path}?follow=true`, id]),
  );
  const json = await run(['logs', 'hello', '-f', '--json']);
  assert.deepEqual(
    json.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as unknown),
    [{ line: 'one' }, { line: 'two' }, { event: 'end', data: { message: 'The app was deleted.' } }],
  );
});

test('build-log and submit show the log of the build', async () => {
  api.answers['GET /api/submit-status/octo/hello/log'] = stream([
    ['1', 'log', { stage: 'build', line: 'step 1' }],
    ['2', 'end', { status: 'live' }],
  ]);
  assert.match((await run(['build-log', 'hello'])).stdout, /^ +build:\n +step 1\n$/);
  const known = { ...live('hello'), status_url: `${api.url}/api/submit-status/octo/hello`, log_url: `${api.url}/log` };
  api.answers['POST /api/submit'] = { ...known, created: false, polled: true };
  api.answers['GET /api/submit-status/octo/hello'] = known;
  const submitted = await run(['submit', 'octo/hello']);
  assert.deepEqual(
    [submitted.code, /submitted before: hello\n.* live\nhttps:/.test(submitted.stdout)],
    [0, true],
    submitted.stdout,
  );
  const json = (await run(['submit', 'octo/hello', '--json'])).stdout.trim().split('\n');
  assert.partialDeepStrictEqual(JSON.parse(json.at(-1) ?? ''), { type: 'verdict', status: 'live', slug: 'hello' });
  const folder = await run(['submit', '.']);
  assert.deepEqual([folder.code, /has no git server for folders/.test(folder.stderr)], [1, true]);
});

test('verify reports what it cannot check, and plan what it cannot build', async () => {
  writeFileSync(join(home.folder, 'statement.json'), '{"type": "statement"}');
  const verified = await run(['verify', 'statement.json', 'missing.json', '--keys', 'none.json', '--json']);
  assert.equal(verified.code, 1);
  assert.partialDeepStrictEqual(JSON.parse(verified.stdout), { right: false, findings: 2 });
  const empty = join(home.folder, 'empty');
  mkdirSync(empty);
  const planned = await run(['plan', 'empty']);
  assert.deepEqual([planned.code, planned.stdout.split('\n')[0]], [1, 'This cannot be planned.']);
  writeFileSync(join(empty, 'index.html'), '<p>hello</p>');
  const json = await home.run(['plan', '--json'], { folder: empty });
  assert.equal(json.code, 0);
  assert.partialDeepStrictEqual(JSON.parse(json.stdout), { strategy: 'static' });
});

test('a refusal is printed in words with its fix and request id, and as JSON only if asked', async () => {
  api.answers['POST /api/apps/hello/restart'] = refuse(
    403,
    'not-author',
    'Not the author of the app',
    'No line of this key.\u001b[2J',
  );
  const refused = await run(['restart', 'hello']);
  assert.deepEqual(refused, {
    code: 1,
    stdout: '',
    stderr: `error: Not the author of the app
  No line of this key.
  fix: \`moorage login APP\` prints the line of your key: commit it to .moorage-owner and push
  request: req-1
`,
  });
  const json = await run(['restart', 'hello', '--json']);
  assert.deepEqual([json.code, json.stdout], [1, '']);
  assert.partialDeepStrictEqual(JSON.parse(json.stderr), {
    status: 403,
    title: 'Not the author of the app',
    request_id: 'req-1',
  });
});

test.each([
  ['another path', refuse(404, 'not-found', 'Not found', 'There is no endpoint at this path.')],
  ['another method', refuse(405, 'method-not-allowed', 'Method not allowed', 'No.')],
  [
    'the page of a proxy',
    (response: Parameters<ReturnType<typeof refuse>>[0]) => void response.writeHead(404).end('nginx'),
  ],
])('an installation without the endpoint is named: %s', async (_name, answer) => {
  api.answers['GET /api/apps/hello/secrets'] = answer;
  const { code, stderr } = await run(['secrets', 'list', 'hello']);
  assert.equal(code, 1);
  assert.match(
    stderr,
    /^error: this installation does not offer secrets yet \(http:\/\/127\.0\.0\.1:\d+\): ask its operator/,
  );
});

test('an answer of another form names fields, and no value', async () => {
  api.answers['POST /api/apps/hello/push-hook-secret'] = { address: 'x', secret: 's3cret' };
  const { code, stderr } = await run(['hook', 'hello']);
  assert.equal(code, 1);
  assert.match(stderr, /does not know \(url\): use the version/);
  assert.doesNotMatch(stderr, /s3cret/);
});

test('an installation that does not answer is exit code 3', async () => {
  const { code, stderr } = await home.run(['status', 'hello'], { environment: { MOORAGE_API: 'http://127.0.0.1:1' } });
  assert.equal(code, 3);
  assert.match(stderr, /^error: http:\/\/127\.0\.0\.1:1 does not answer \(.*\): check the address and your network\n$/);
});

test.each([
  ['restart hello other', 'unexpected argument "other"'],
  ['restart hello --app other', 'APP and --app name different apps'],
  ['secrets', ''],
  ['logs hello --tail many', '--tail must be a whole number'],
  ['nonsense', 'unknown command "nonsense"'],
  ['statsu', 'unknown command "statsu". Did you mean status?'],
  ['--nonsense', 'unknown option "--nonsense"'],
  ['status a/b/c', 'OWNER/NAME'],
])('wrong usage is exit code 2: %s', async (line, words) => {
  const { code, stderr } = await run(line.split(' '));
  assert.deepEqual([code, stderr.includes(words)], [2, true], stderr);
});
