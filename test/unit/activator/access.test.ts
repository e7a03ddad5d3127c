// Protected apps behind the activator, with real sockets: who is admitted, what the app receives, and what ends a visit.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, request, type IncomingMessage, type Server } from 'node:http';
import type { Socket } from 'node:net';
import { afterEach, beforeAll, beforeEach, test } from 'vitest';
import { createSessions, PasswordChecks, sessionCookie, sessionSeconds } from '../../../activator/access.ts';
import { toAppView } from '../../../activator/directory.ts';
import { createAccessKey, hashAccessKey, hashAccessPassword, type AccessPolicy } from '../../../crds/access.ts';
import type { DomainStatus } from '../../../crds/domains.ts';
import type { KubeObject } from '../../../lib/kubernetes/index.ts';
import { host, probeToken, startActivator, type ActivatorWorld } from '../../support/activator/world.ts';
import { listen } from '../../support/free-port.ts';

const password = 'correct horse battery';
const key = createAccessKey();
let policy: AccessPolicy;
let world: ActivatorWorld;
let app: Server;
/** What the app received. */
let received: IncomingMessage[] = [];
let now = Date.now();

beforeAll(async () => {
  policy = {
    mode: 'password',
    credentials: [{ kind: 'password', hash: await hashAccessPassword(password) }, keyCredential(key)],
  };
});

function keyCredential(text: string): AccessPolicy['credentials'][number] {
  return { kind: 'key', hash: hashAccessKey(text) };
}

beforeEach(async () => {
  [received, now] = [[], Date.now()];
  world = await startActivator({}, undefined, () => now);
  app = createServer((asked, answer) => {
    received.push(asked);
    if (asked.url === '/stream') {
      answer.write('first');
      return;
    }
    answer.setHeader('set-cookie', [`${sessionCookie}=forged; Path=/`, 'own=1']);
    answer.end('the app');
  });
  app.on('upgrade', (asked, socket) => {
    received.push(asked);
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
  });
  world.run({ port: await listen(app) });
  world.show({ access: policy });
});
afterEach(async () => {
  await world.stop();
  app.closeAllConnections();
  app.close();
});

interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

type Headers = Readonly<Record<string, string>>;

async function ask(
  path: string,
  headers: Headers = {},
  { method = 'GET', body }: { method?: string; body?: string } = {},
): Promise<Answer> {
  const asked = request({ port: world.port, method, path, headers: { host, ...headers }, agent: false });
  const answered = once(asked, 'response') as Promise<[IncomingMessage]>;
  asked.end(body);
  const [response] = await answered;
  const chunks: Buffer[] = [];
  for await (const chunk of response as AsyncIterable<Buffer>) chunks.push(chunk);
  return { status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks).toString() };
}

const browser = {
  accept: 'text/html,*/*',
  'sec-fetch-mode': 'navigate',
  'sec-fetch-dest': 'document',
  'sec-fetch-site': 'none',
};
const ownOrigin = { origin: `https://${host}`, 'sec-fetch-site': 'same-origin' };

async function signIn(secret: string, { to = '/', ...headers }: Record<string, string> = {}): Promise<Answer> {
  const form = new URLSearchParams({ secret, to }).toString();
  const type = { 'content-type': 'application/x-www-form-urlencoded' };
  return ask('/.moorage/sign-in', { ...type, ...ownOrigin, ...headers }, { method: 'POST', body: form });
}

/** Signs in, and returns the header Cookie of the session. */
async function beginSession(secret = password): Promise<string> {
  const { status, headers } = await signIn(secret);
  assert.equal(status, 303);
  return headers['set-cookie']?.[0]?.split(';')[0] ?? '';
}

test('a visitor without anything gets the sign-in page in a browser, and a problem elsewhere; the app gets nothing', async () => {
  const page = await ask('/report?year=1', { ...browser, 'accept-language': 'en' });
  assert.deepEqual([page.status, page.headers['content-type']], [401, 'text/html; charset=utf-8']);
  assert.match(page.body, /Hello is protected/);
  assert.match(page.body, /name="to" value="\/report\?year=1"/);
  assert.doesNotMatch(page.body, /<script/);
  assert.match(String(page.headers['content-security-policy']), /default-src 'none'.*frame-ancestors 'none'/);
  assert.match((await ask('/', { ...browser, 'accept-language': 'zh-CN,zh' })).body, /Hello 受访问保护/);
  const problem = await ask('/api', { accept: 'application/json' });
  assert.deepEqual(
    [problem.status, problem.headers['content-type'], problem.headers['moorage-activator']],
    [401, 'application/problem+json', 'locked'],
  );
  assert.match(String(problem.headers['www-authenticate']), /^Bearer/);
  assert.match(problem.body, /access-required/);
  assert.deepEqual(received, []);
  assert.deepEqual(world.activity.report().apps, {});
});

test('the password begins a session that opens the app, which sees neither of them', async () => {
  const entered = await signIn(password, { to: '/report?year=1' });
  assert.deepEqual([entered.status, entered.headers.location], [303, '/report?year=1']);
  const [cookie = ''] = entered.headers['set-cookie'] ?? [];
  assert.match(cookie, /^__Host-moorage-visit=\S+; Path=\/; Secure; HttpOnly; SameSite=Lax; Max-Age=28800$/);
  const session = cookie.split(';')[0] ?? '';
  const { status, body, headers } = await ask('/report', { ...browser, cookie: `theirs=1; ${session}; more=2` });
  assert.deepEqual([status, body, headers['set-cookie']], [200, 'the app', ['own=1']]);
  assert.equal(received[0]?.headers.cookie, 'theirs=1; more=2');
  await ask('/report', { ...ownOrigin, cookie: session });
  assert.equal(received[1]?.headers.cookie, undefined);
  assert.deepEqual(
    [(await ask('/.moorage/sign-in', { ...browser, cookie: session })).status, received.length],
    [303, 2],
  );
});

test('a key opens the app as a bearer token or in a header, which the app does not see', async () => {
  assert.equal((await ask('/a', { authorization: `Bearer ${key}` })).status, 200);
  assert.equal((await ask('/b', { 'moorage-access': key, authorization: 'Bearer own-token' })).status, 200);
  assert.deepEqual(
    received.map(({ headers }) => [headers.authorization, headers['moorage-access']]),
    [
      [undefined, undefined],
      ['Bearer own-token', undefined],
    ],
  );
  const wrong = await ask('/c', { authorization: `Bearer ${createAccessKey()}` });
  assert.deepEqual([wrong.status, /wrong-access-key/.test(wrong.body)], [403, true]);
  assert.equal((await ask(`/d?key=${key}&access=${key}&token=${key}`)).status, 401);
  assert.equal((await ask('/e', { cookie: await beginSession(key) })).status, 200);
  assert.equal(received.length, 3);
});

test('with access: key, the password that was set before opens nothing', async () => {
  const session = await beginSession();
  world.show({ access: { mode: 'key', credentials: [keyCredential(key)] } });
  assert.equal((await ask('/', { cookie: session })).status, 401);
  assert.equal((await signIn(password)).status, 403);
  assert.match((await ask('/', browser)).body, /Enter the access key/);
});

test('looks of the platform are admitted, with its token alone', async () => {
  assert.equal((await ask('/', { 'moorage-probe': probeToken })).status, 200);
  assert.equal((await ask('/', { 'moorage-probe': 'p'.repeat(31) })).status, 401);
  assert.equal(received.length, 1);
});

test('an app at rest is not woken by those who are not admitted', async () => {
  world.show({ access: policy, idle: { state: 'Asleep', number: 3, wakeMs: 900 } });
  world.run();
  for (const headers of [{}, browser, { authorization: `Bearer ${createAccessKey()}` }]) await ask('/', headers);
  await signIn('not the password');
  assert.deepEqual(world.asked, []);
  assert.deepEqual(world.activity.report().apps, {});
  const late = await ask('/', { authorization: `Bearer ${key}`, prefer: 'wait=0' });
  assert.deepEqual([late.status, world.asked], [503, [3]]);
});

test('attack: headers that name an admitted visitor, another host or another method change nothing', async () => {
  const tricks: Headers[] = [
    { 'moorage-admitted': 'true' },
    { 'moorage-activator': 'admitted' },
    { 'x-forwarded-host': 'public.apps.test' },
    { 'x-original-url': '/.moorage/sign-in' },
    { 'x-http-method-override': 'OPTIONS' },
    { forwarded: 'host=public.apps.test' },
    { connection: 'moorage-access, authorization', 'moorage-access': createAccessKey() },
    { cookie: `${sessionCookie}=` },
    { cookie: `${sessionCookie}=99999999999.${'A'.repeat(43)}` },
    { authorization: 'Basic YTpi' },
    { host: `${host}.`, accept: 'x' },
    { host: host.toUpperCase() },
    { host: `${host}:443` },
  ];
  for (const headers of tricks) {
    const { status } = await ask('/', headers);
    assert.ok([401, 403, 404].includes(status), `${JSON.stringify(headers)}: ${status}`);
  }
  for (const method of ['HEAD', 'OPTIONS', 'PUT', 'TRACE', 'PROPFIND']) {
    const asked = request({ port: world.port, method, path: '/', headers: { host }, agent: false }).end();
    const [{ statusCode }] = (await once(asked, 'response')) as [IncomingMessage];
    assert.equal(statusCode, 401, method);
  }
  assert.deepEqual(received, []);
});

test('attack: the session of another app, of an older password, of a revoked key or of yesterday opens nothing', async () => {
  const begun = await beginSession();
  const byKey = await beginSession(key);
  const other = world.directory.get('hello');
  assert.ok(other !== undefined && policy.credentials[0] !== undefined);
  const stranger = { ...other, metadata: { ...other.metadata, uid: 'app-2' } };
  const foreign = world.sessions.begin(stranger, policy.credentials[0]).split(';')[0] ?? '';
  const forged = createSessions('another secret').begin(other, policy.credentials[0]).split(';')[0] ?? '';
  const longer = begun.replace(/=(\d+)/, (_all, end: string) => `=${Number(end) + 1}`);
  for (const cookie of [foreign, forged, longer]) assert.equal((await ask('/', { cookie })).status, 401, cookie);
  world.show({
    access: { mode: 'password', credentials: [{ kind: 'password', hash: await hashAccessPassword(password) }] },
  });
  for (const cookie of [begun, byKey]) assert.equal((await ask('/', { cookie })).status, 401, cookie);
  assert.deepEqual(received, []);
  world.show({ access: policy });
  assert.equal((await ask('/', { cookie: begun })).status, 200);
  now += (sessionSeconds + 1) * 1000;
  assert.equal((await ask('/', { cookie: begun })).status, 401);
});

test('attack: a page of another app of the domain cannot use the session of a visitor', async () => {
  const cookie = await beginSession();
  const evil = 'https://evil.apps.test';
  const tricks: Headers[] = [
    { origin: evil },
    { origin: 'null' },
    { origin: evil, 'sec-fetch-site': 'same-origin' },
    { 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'image' },
    { 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe' },
    { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty' },
    { origin: evil, connection: 'Upgrade', upgrade: 'websocket' },
  ];
  for (const headers of tricks)
    assert.equal((await ask('/', { ...headers, cookie })).status, 401, JSON.stringify(headers));
  assert.equal((await ask('/', { ...browser, 'sec-fetch-site': 'cross-site', cookie })).status, 200, 'a link');
  assert.equal((await signIn(password, { origin: evil })).status, 400);
  assert.equal(received.length, 1);
});

test('attack: the sign-in leads to no other host', async () => {
  for (const to of [
    '//evil.test/',
    '/\\evil.test',
    'https://evil.test/',
    '/.//evil.test',
    '/..//evil.test',
    '/\t/evil.test',
    'javascript:alert(1)',
    '',
    '/.moorage/sign-in',
  ])
    assert.equal((await signIn(key, { to })).headers.location, '/', to);
  assert.doesNotMatch((await ask('/"><script>alert(1)</script>', browser)).body, /<script>/);
});

test('attack: a body that is no form, or too long, begins no session', async () => {
  const post = { method: 'POST' };
  const form = { 'content-type': 'application/x-www-form-urlencoded', ...ownOrigin };
  const json = await ask(
    '/.moorage/sign-in',
    { 'content-type': 'application/json' },
    { ...post, body: JSON.stringify({ secret: password }) },
  );
  const long = await ask('/.moorage/sign-in', form, { ...post, body: `secret=${password}&to=${'a'.repeat(9_000)}` });
  assert.deepEqual([json.status, long.status, long.headers['set-cookie']], [400, 400, undefined]);
});

/** Resolves when a stream is closed, also by an error. */
function awaitClose(stream: IncomingMessage | Socket): Promise<void> {
  stream.on('error', () => undefined);
  return new Promise((resolve) => {
    stream.once('close', () => {
      resolve();
    });
    stream.resume();
  });
}

test('a WebSocket and a stream are admitted as every request, and end with the password that opened them', async () => {
  const refused = request({
    port: world.port,
    headers: { host, connection: 'Upgrade', upgrade: 'websocket' },
    agent: false,
  }).end();
  const [answer] = (await once(refused, 'response')) as [IncomingMessage];
  assert.equal(answer.statusCode, 401);
  await awaitClose(answer);
  const cookie = await beginSession();
  const upgraded = request({
    ...{ port: world.port, agent: false },
    headers: { host, cookie, ...ownOrigin, connection: 'Upgrade', upgrade: 'websocket' },
  }).end();
  const [, socket] = (await once(upgraded, 'upgrade')) as [IncomingMessage, Socket];
  const streamed = request({ port: world.port, path: '/stream', headers: { host, cookie }, agent: false }).end();
  streamed.on('error', () => undefined);
  const [stream] = (await once(streamed, 'response')) as [IncomingMessage];
  const kept = request({
    port: world.port,
    path: '/stream',
    headers: { host, 'moorage-access': key },
    agent: false,
  }).end();
  const [keptStream] = (await once(kept, 'response')) as [IncomingMessage];
  const ended = Promise.all([awaitClose(socket), awaitClose(stream)]);
  world.show({ access: { mode: 'password', credentials: [keyCredential(key)] } });
  await ended;
  assert.equal(keptStream.destroyed, false);
  kept.on('error', () => undefined).destroy();
  await awaitClose(keptStream);
});

test('streams of an app that becomes protected end, and those of one that is opened stay', async () => {
  world.show({});
  const open = request({ port: world.port, path: '/stream', headers: { host }, agent: false }).end();
  open.on('error', () => undefined);
  const [stream] = (await once(open, 'response')) as [IncomingMessage];
  const ended = awaitClose(stream);
  world.show({ access: policy });
  await ended;
  assert.equal((await ask('/')).status, 401);
});

test('a HostedApp that cannot be read stays protected', () => {
  const read = (spec: unknown): AccessPolicy | undefined =>
    toAppView({
      apiVersion: 'moorage.dev/v1alpha1',
      kind: 'HostedApp',
      metadata: { name: 'a', uid: 'u' },
      spec,
    } as unknown as KubeObject).view.access;
  const accessKeys = [{ name: 'a', hash: 'a'.repeat(64), createdAt: '2026-01-01T00:00:00Z' }];
  assert.equal(read({}), undefined);
  assert.equal(read({ control: { suspended: true } }), undefined);
  assert.equal(read({ unknown: 1, control: { access: 'key', accessKeys } })?.mode, 'key');
  for (const control of [
    { access: 'oidc' },
    { access: 'public' },
    { access: null },
    'x',
    { access: 'password', accessPassword: 'plain' },
  ])
    assert.deepEqual(read({ control }), { mode: 'locked', credentials: [] }, JSON.stringify(control));
});

test('attack: a preview opens to the visitors of its app alone, also after the app has changed or gone', async () => {
  const at = { host: 'hello--pr-1.apps.test' };
  const preview = 'hello--pr-1';
  // Who is admitted is answered that it is stopped.
  world.show({ previewOf: 'hello', isStopped: true }, preview);
  assert.equal((await ask('/', at)).status, 401);
  assert.equal((await ask('/', { ...at, cookie: await beginSession() })).status, 401, 'the session of the app');
  assert.equal((await ask('/', { ...at, authorization: `Bearer ${key}` })).status, 503);
  assert.equal((await signIn(password, { ...at, origin: `https://${at.host}` })).status, 303);
  const changed = new Set<string>();
  world.directory.subscribe((name) => changed.add(name));
  world.show({});
  assert.equal((await ask('/', at)).status, 503);
  // Streams in progress are judged again.
  assert.ok(changed.has(preview));
  world.remove('hello');
  assert.equal((await ask('/', { ...at, authorization: `Bearer ${key}` })).status, 403);
});

test('attack: a preview that cannot be read opens to nobody', () => {
  const read = (previewOf: unknown): string | undefined =>
    toAppView({
      ...{ apiVersion: 'moorage.dev/v1alpha1', kind: 'HostedApp', metadata: { name: 'a', uid: 'u' } },
      spec: { previewOf },
    } as unknown as KubeObject).view.previewOf;
  assert.equal(read(undefined), undefined);
  assert.equal(read({ app: 'hello', reference: 'refs/pull/1/head' }), 'hello');
  for (const odd of ['hello', null, { app: 1 }, { app: 'hello' }]) assert.equal(read(odd), '', JSON.stringify(odd));
});

test('nobody is admitted to an app whose policy cannot be read', async () => {
  world.show({ access: { mode: 'locked', credentials: [] } });
  const page = await ask('/', browser);
  assert.equal(page.status, 401);
  assert.doesNotMatch(page.body, /<form/);
  assert.equal((await ask('/', { authorization: `Bearer ${key}` })).status, 403);
});

test('wrong passwords are limited by network, and the right one is never refused', async () => {
  const from = (network: string): Record<string, string> => ({ 'x-forwarded-for': network });
  let slept = 0;
  let at = 0;
  const checks = new PasswordChecks({
    now: () => at,
    sleep: () => {
      slept += 1;
      return Promise.resolve();
    },
    verify: (text) => Promise.resolve(text === 'right'),
  });
  const kinds: string[] = [];
  for (let index = 0; index < 11; index += 1) kinds.push((await checks.check('a', 'wrong', '')).kind);
  assert.deepEqual(kinds, [...new Array<string>(10).fill('wrong'), 'limited']);
  assert.deepEqual(await checks.check('a', 'right', ''), { kind: 'right' });
  assert.deepEqual(await checks.check('b', 'wrong', ''), { kind: 'wrong' });
  assert.equal(slept, 2);
  at = 61_000;
  assert.deepEqual(await checks.check('a', 'wrong', ''), { kind: 'wrong' });
  assert.equal((await signIn('wrong password', from('192.0.2.1'))).status, 403);
  assert.equal((await signIn(password, from('192.0.2.1'))).status, 303);
});

const domain = 'shop.example.com';
const own = (state: DomainStatus['state']): readonly DomainStatus[] => [{ name: domain, state, message: '' }];

test('an own domain leads to its app, is protected like it, and has a session of its own', async () => {
  world.show({ access: policy, domains: own('Active') });
  assert.equal((await ask('/', { host: domain })).status, 401);
  assert.equal((await ask('/', { host: domain, authorization: `Bearer ${key}` })).body, 'the app');
  const page = { host: `${domain}:443`, origin: `https://${domain}`, 'sec-fetch-site': 'same-origin' };
  const { status, headers } = await signIn(password, page);
  assert.equal(status, 303);
  const cookie = headers['set-cookie']?.[0]?.split(';')[0] ?? '';
  assert.equal((await ask('/', { ...page, cookie })).body, 'the app');
  const sibling = { host: domain, cookie, origin: 'https://other.example.com' };
  assert.equal((await ask('/', sibling)).status, 401);
  assert.equal(received.at(-1)?.headers.host, page.host);
});

test('a domain that an app does not have, or has lost, leads nowhere', async () => {
  for (const state of ['Pending', 'Taken', 'Refused', 'Removed'] as const) {
    world.show({ domains: own(state) });
    assert.equal((await ask('/', { host: domain })).status, 404, state);
  }
  world.show({ previewOf: 'hello', domains: own('Active') }, 'hello--pr-1');
  assert.equal((await ask('/', { host: domain })).status, 404, 'of a preview');
  world.show({ domains: own('ProofLost') });
  assert.equal((await ask('/', { host: domain })).body, 'the app');
  assert.equal((await ask('/', { host: `x.${domain}` })).status, 404);
});

test('passwords of one network are checked one after another, and a flood of them is not kept', async () => {
  const running = { value: 0, maximum: 0 };
  const releases: (() => void)[] = [];
  const checks = new PasswordChecks({
    verify: async () => {
      running.value += 1;
      running.maximum = Math.max(running.maximum, running.value);
      await new Promise<void>((resolve) => releases.push(resolve));
      running.value -= 1;
      return false;
    },
  });
  const flood = Array.from({ length: 30 }, () => checks.check('a', 'x', ''));
  const other = checks.check('b', 'x', '');
  const refused = await Promise.all(flood.slice(20));
  assert.deepEqual(new Set(refused.map(({ kind }) => kind)), new Set(['limited']));
  while (releases.length < 2) await new Promise(setImmediate);
  assert.equal(running.maximum, 2, 'one of each network');
  releases[1]?.();
  assert.equal((await other).kind, 'wrong');
});
