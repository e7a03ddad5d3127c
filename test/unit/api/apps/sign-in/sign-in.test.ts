// Signing in with an account of a forge: a real provider of OpenID Connect on loopback, and attacks on every step.
import assert from 'node:assert/strict';
import { createHash, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import type { RequestListener } from 'node:http';
import { text as readText } from 'node:stream/consumers';
import { afterAll, beforeAll, beforeEach, test } from 'vitest';
import { z } from 'zod';
import type { SignInProvider } from '../../../../../api/apps/sign-in/config.ts';
import { baseUrl } from '../../../../support/api/sample.ts';
import { sampleAppsServer, type AppsSample } from '../../../../support/apps/sample.ts';
import {
  CookieJar,
  listenOnLoopback,
  signInAtProvider,
  startSignInLab,
  type SignInLab,
} from '../../../../support/sign-in/lab.ts';

let lab: SignInLab;
let forger: Forger;
let github: Forger;
let sample: AppsSample;
let plain: AppsSample;
let writes = 0;

/** A server that answers as a test wants: a provider that lies, or GitHub. */
interface Forger {
  readonly url: string;
  answer: RequestListener;
  close(): void;
}

async function startForger(): Promise<Forger> {
  const state: { answer: RequestListener } = { answer: (_request, response) => response.writeHead(404).end() };
  const server = await listenOnLoopback((request, response) => {
    state.answer(request, response);
  });
  return Object.assign(state, server);
}

const author = {
  lookUpKeys: () => Promise.reject(new Error('an account needs no line')),
  createSecret: () => Promise.resolve(),
  maximumReplicas: 3,
  writeControl: <App>(app: App): Promise<App> => {
    writes += 1;
    return Promise.resolve(app);
  },
};

beforeAll(async () => {
  [lab, forger, github] = [await startSignInLab(baseUrl), await startForger(), await startForger()];
  const lying: SignInProvider = {
    ...{ id: 'liar', label: 'Liar', forge: 'gitea', issuer: new URL(forger.url), clientId: 'moorage' },
    ...{ clientSecret: 'x', scopes: 'openid', apiUrl: `${forger.url}/api/v1`, host: 'git.test' },
  };
  const fakeGitHub: SignInProvider = {
    ...{ id: 'github', label: 'GitHub', forge: 'github', issuer: new URL(github.url), clientId: 'moorage' },
    ...{ clientSecret: 'x', scopes: '', apiUrl: `${github.url}/api/v3`, host: 'git.test' },
  };
  sample = await sampleAppsServer({ author, signInProviders: [lab.provider, lying, fakeGitHub] });
  plain = await sampleAppsServer({ author });
  for (const slug of ['mine', 'other']) await sample.host(slug, (_request, response) => response.end('ok'));
  await sample.host(
    'elsewhere',
    (_request, response) => response.end('ok'),
    (app) => ({
      ...app,
      spec: { ...app.spec, source: { ...app.spec.source, repo: 'https://other.test/octo/mine' } },
    }),
  );
});
afterAll(async () => {
  for (const server of [lab, forger, github]) server.close();
  await Promise.all([sample.stop(), plain.stop()]);
});
beforeEach(() => {
  lab.rights.clear();
  lab.rights.set('ann', new Set(['octo/mine']));
  [lab.asked.length, lab.failWith, writes] = [0, undefined, 0];
});

let visitors = 0;

/** A browser at the API, in a network of its own. */
class Browser {
  readonly jar = new CookieJar();
  readonly #address: string;

  constructor() {
    visitors += 1;
    this.#address = `10.9.${visitors}.1`;
  }

  async open(path: string, form?: Record<string, string>): Promise<Response> {
    const response = await sample.request(path, {
      method: form === undefined ? 'GET' : 'POST',
      headers: {
        accept: 'text/html',
        'x-forwarded-for': this.#address,
        cookie: this.jar.header,
        ...(form === undefined ? {} : { 'content-type': 'application/x-www-form-urlencoded' }),
      },
      ...(form === undefined ? {} : { body: new URLSearchParams(form).toString() }),
    });
    this.jar.store(response);
    return response;
  }

  /** Begins a sign-in, and returns the address of the provider. */
  async begin(provider = 'forge', slug = 'mine'): Promise<string> {
    const response = await this.open(`/sign-in/${provider}?app=${slug}`);
    assert.equal(response.status, 303, await response.text());
    return response.headers.get('location') ?? '';
  }

  async signIn(account: string, slug = 'mine'): Promise<Response> {
    const { pathname, search } = await signInAtProvider(await this.begin('forge', slug), account);
    return this.open(`${pathname}${search}`);
  }

  /** Sends a form of the page of an app. */
  async act(action: string, slug = 'mine', fields: Record<string, string> = {}): Promise<Response> {
    const page = await (await this.open(`/apps/${slug}/manage`)).text();
    const token = /name="token" value="([\w-]+)"/.exec(page)?.[1] ?? '';
    return this.open(`/apps/${slug}/manage`, { action, token, ...fields });
  }
}

const hasSession = (response: Response): boolean =>
  response.headers.getSetCookie().some((line) => /^__Host-moorage-author=[^;]/.test(line));

async function expectRefusal(response: Response): Promise<void> {
  const text = await response.text();
  assert.deepEqual([response.status, hasSession(response)], [403, false], text);
  assert.match(text, /sign-in-refused/);
}

test('an account that can push signs in, sees the app, and changes it; the audit log names the account', async () => {
  const browser = new Browser();
  const way = await browser.begin();
  const { origin, searchParams } = new URL(way);
  assert.equal(origin, lab.provider.issuer.origin);
  assert.equal(searchParams.get('code_challenge_method'), 'S256');
  for (const name of ['state', 'nonce', 'code_challenge']) assert.match(searchParams.get(name) ?? '', /^[\w-]{43}$/);
  const { pathname, search } = await signInAtProvider(way, 'ann');
  const back = await browser.open(`${pathname}${search}`);
  const text = await back.text();
  assert.equal(back.status, 200, text);
  // Browsers send a strict cookie only to a page that one of this site leads to.
  assert.match(text, /<meta http-equiv="refresh" content="0; url=\/apps\/mine\/manage"/);
  const cookies = back.headers.getSetCookie();
  assert.match(
    cookies[0] ?? '',
    /^__Host-moorage-author=[\w-]+; Max-Age=3600; Path=\/; Secure; HttpOnly; SameSite=Strict$/,
  );
  assert.match(cookies[1] ?? '', /^__Host-moorage-sign-in=; Max-Age=0; Path=\/; Secure; HttpOnly; SameSite=Lax$/);

  const page = await (await browser.open('/apps/mine/manage')).text();
  assert.match(page, /Manage mine/);
  assert.equal((await browser.act('restart')).status, 303);
  assert.equal(writes, 1);
  assert.match(await (await browser.open('/apps/mine/manage')).text(), /account:git\.test\/ann/);
  const minted = await browser.act('create-token', 'mine', { 'token-name': 'x', scopes: 'read', expires_in_days: '1' });
  assert.deepEqual([minted.status, /mat-[\w-]{43}/.test(await minted.text())], [403, false]);
});

test('the sign-in page offers the providers, and an installation without them says so by name', async () => {
  const page = await (await new Browser().open('/apps/mine/manage')).text();
  assert.match(page, /href="\/sign-in\/forge\?app=mine"[^>]*>Sign in with Example Forge</);
  const listed = await (await sample.request('/api/sign-in')).json();
  assert.deepEqual(
    z.object({ providers: z.array(z.looseObject({ id: z.string(), host: z.string() })) }).parse(listed).providers[0],
    { id: 'forge', label: 'Example Forge', host: 'git.test', url: `${baseUrl}/sign-in/forge` },
  );
  const none = await plain.request('/api/sign-in');
  assert.deepEqual([none.status, /sign-in-unconfigured/.test(await none.text())], [503, true]);
  assert.equal((await plain.request('/sign-in/forge?app=mine', { headers: { accept: 'text/html' } })).status, 404);
});

test('attack: an account without the right to push sees nothing and changes nothing', async () => {
  const browser = new Browser();
  assert.equal((await browser.signIn('bob')).status, 200);
  const page = await browser.open('/apps/mine/manage');
  assert.equal(page.status, 404);
  assert.match(await page.text(), /Your account bob cannot push to/);
  await browser.act('restart');
  assert.equal(writes, 0);
});

test('attack: a right that was removed counts from the next change on, and is asked for each time', async () => {
  const browser = new Browser();
  await browser.signIn('ann');
  assert.equal((await browser.act('suspend')).status, 303);
  lab.rights.clear();
  lab.asked.length = 0;
  assert.equal((await browser.act('resume')).status, 403);
  assert.deepEqual([lab.asked.filter((path) => path.includes('/repos/')).length > 0, writes], [true, 1]);
});

test('a forge that does not answer changes nothing, and says so', async () => {
  const browser = new Browser();
  await browser.signIn('ann');
  await browser.open('/apps/mine/manage');
  lab.failWith = 502;
  const refused = await browser.act('suspend');
  assert.deepEqual([refused.status, writes], [503, 0]);
});

test('attack: an account owns no app whose repository is at another host, and the forge is not even asked', async () => {
  const browser = new Browser();
  await browser.signIn('ann', 'elsewhere');
  lab.asked.length = 0;
  assert.equal((await browser.open('/apps/elsewhere/manage')).status, 404);
  assert.deepEqual(lab.asked, []);
});

test('attack: a sign-in is ended twice with the same state and code (state replay)', async () => {
  const browser = new Browser();
  const { pathname, search } = await signInAtProvider(await browser.begin(), 'ann');
  const stolen = browser.jar.header;
  assert.equal((await browser.open(`${pathname}${search}`)).status, 200);
  await expectRefusal(await browser.open(`${pathname}${search}`));
  const headers = { accept: 'text/html', cookie: stolen };
  await expectRefusal(await sample.request(`${pathname}${search}`, { headers }));
});

test("attack: another person's code is put into a sign-in of one's own (code injection)", async () => {
  const [attacker, victim] = [new Browser(), new Browser()];
  const theirs = await signInAtProvider(await victim.begin(), 'ann');
  const own = await signInAtProvider(await attacker.begin(), 'bob');
  own.searchParams.set('code', theirs.searchParams.get('code') ?? '');
  await expectRefusal(await attacker.open(`${own.pathname}${own.search}`));
});

test("attack: a link signs a person in with the attacker's account (login CSRF)", async () => {
  const [attacker, victim] = [new Browser(), new Browser()];
  const { pathname, search } = await signInAtProvider(await attacker.begin(), 'bob');
  await expectRefusal(await victim.open(`${pathname}${search}`));
  // Also while the victim is signing in themselves.
  await victim.begin();
  await expectRefusal(await victim.open(`${pathname}${search}`));
});

test('attack: a sign-in at one provider is ended at another (mix-up)', async () => {
  const browser = new Browser();
  const { search } = await signInAtProvider(await browser.begin(), 'ann');
  await expectRefusal(await browser.open(`/sign-in/github/callback${search}`));
});

test.each([
  '//evil.example',
  'https://evil.example',
  '../../evil',
  'mine/../x',
  '',
  'MINE',
  '%2F%2Fevil',
  'mine&app=other',
])('attack: a link leads to another site after the sign-in: app=%s (open redirect)', async (app) => {
  const response = await new Browser().open(`/sign-in/forge?app=${app}`);
  assert.deepEqual([response.status, response.headers.get('location')], [400, null]);
});

test('attack: other parameters and headers choose where a sign-in ends (open redirect)', async () => {
  const path = '/sign-in/forge?app=mine&redirect_uri=https://evil.example&return_to=//evil.example';
  const response = await sample.request(path, {
    headers: { accept: 'text/html', 'x-forwarded-host': 'evil.example', 'x-forwarded-proto': 'http' },
  });
  const { searchParams } = new URL(response.headers.get('location') ?? '');
  assert.equal(searchParams.get('redirect_uri'), `${baseUrl}/sign-in/forge/callback`);
  assert.doesNotMatch(response.headers.get('location') ?? '', /evil/);
});

test('attack: a cookie from before the sign-in is a session after it (session fixation)', async () => {
  const browser = new Browser();
  const way = await browser.begin();
  const before = browser.jar.header;
  const [, sealed = ''] = before.split('__Host-moorage-sign-in=');
  const { pathname, search } = await signInAtProvider(way, 'ann');
  await browser.open(`${pathname}${search}`);
  for (const cookie of [before, `__Host-moorage-author=${sealed}`, '__Host-moorage-author=chosen']) {
    const page = await sample.request('/apps/mine/manage', { headers: { accept: 'text/html', cookie } });
    assert.match(await page.text(), /Sign in to manage mine/);
  }
  const first = browser.jar.header;
  await browser.signIn('ann');
  assert.notEqual(browser.jar.header, first);
});

test.each([
  ['error=access_denied&error_description=%3Cscript%3Ealert(1)%3C/script%3E', 'the provider refuses'],
  ['code=x', 'no state'],
  ['state=x&code=x', 'another state'],
  ['code=a&code=b', 'two codes'],
  ['', 'nothing'],
])('attack: the browser comes back with %s (%s)', async (query) => {
  const browser = new Browser();
  await browser.begin();
  const response = await browser.open(`/sign-in/forge/callback?${query}`);
  const text = await response.clone().text();
  assert.doesNotMatch(text, /alert\(1\)/);
  await expectRefusal(response);
});

// A provider that lies.

const rightKey = generateKeyPairSync('rsa', { modulusLength: 2048 });
const wrongKey = generateKeyPairSync('rsa', { modulusLength: 2048 });
const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');

function signToken(claims: object, key: KeyObject | undefined): string {
  const head = encode(key === undefined ? { alg: 'none' } : { alg: 'RS256', kid: 'one' });
  const signed = `${head}.${encode(claims)}`;
  return `${signed}.${key === undefined ? '' : sign('sha256', Buffer.from(signed), key).toString('base64url')}`;
}

/** Answers as a provider would, with the identity token that a test makes of the right claims. */
function lieAbout(makeToken: (claims: Record<string, unknown>) => string, nonce: string): RequestListener {
  const seconds = Math.floor(Date.now() / 1000);
  const claims = { iss: forger.url, aud: 'moorage', sub: 'ann', iat: seconds, exp: seconds + 300, nonce };
  const documents: Record<string, object> = {
    '/.well-known/openid-configuration': {
      ...{ issuer: forger.url, authorization_endpoint: `${forger.url}/auth`, token_endpoint: `${forger.url}/token` },
      ...{ jwks_uri: `${forger.url}/jwks`, response_types_supported: ['code'], subject_types_supported: ['public'] },
      id_token_signing_alg_values_supported: ['RS256'],
    },
    '/jwks': { keys: [{ ...rightKey.publicKey.export({ format: 'jwk' }), kid: 'one', alg: 'RS256', use: 'sig' }] },
    '/token': { access_token: 'opaque', token_type: 'Bearer', expires_in: 300, id_token: makeToken(claims) },
    '/api/v1/user': { login: 'ann' },
    '/api/v1/repos/octo/mine': { full_name: 'octo/mine', permissions: { push: true } },
  };
  return (request, response) => {
    const document = documents[request.url ?? ''];
    response.writeHead(document === undefined ? 404 : 200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(document ?? {}));
  };
}

async function endAtLiar(makeToken: (claims: Record<string, unknown>) => string): Promise<Response> {
  const browser = new Browser();
  forger.answer = lieAbout(makeToken, '');
  const { searchParams } = new URL(await browser.begin('liar'));
  forger.answer = lieAbout(makeToken, searchParams.get('nonce') ?? '');
  return browser.open(`/sign-in/liar/callback?code=x&state=${searchParams.get('state') ?? ''}`);
}

test('an identity token with the right claims and signature is accepted', async () => {
  const response = await endAtLiar((claims) => signToken(claims, rightKey.privateKey));
  assert.deepEqual([response.status, hasSession(response)], [200, true], await response.text());
});

test.each<[string, (claims: Record<string, unknown>) => string]>([
  ['is signed by another key', (claims) => signToken(claims, wrongKey.privateKey)],
  ['is not signed', (claims) => signToken(claims, undefined)],
  ['has another nonce', (claims) => signToken({ ...claims, nonce: 'x' }, rightKey.privateKey)],
  ['has no nonce', (claims) => signToken({ ...claims, nonce: undefined }, rightKey.privateKey)],
  ['is for another client', (claims) => signToken({ ...claims, aud: 'other' }, rightKey.privateKey)],
  ['is of another issuer', (claims) => signToken({ ...claims, iss: 'https://evil.example' }, rightKey.privateKey)],
  ['has expired', (claims) => signToken({ ...claims, exp: 1_000 }, rightKey.privateKey)],
  ['is none', () => ''],
])('attack: an identity token that %s is refused', async (_name, makeToken) => {
  await expectRefusal(await endAtLiar(makeToken));
});

test('GitHub: OAuth without an identity token, with PKCE, and the account that its API names', async () => {
  const bodies: URLSearchParams[] = [];
  github.answer = (request, response) => {
    void readText(request).then((body) => {
      const { url = '', headers } = request;
      if (url === '/login/oauth/access_token') bodies.push(new URLSearchParams(body));
      const isKnown = headers.authorization === 'Bearer gho_token';
      const documents: Record<string, object> = {
        '/login/oauth/access_token': { access_token: 'gho_token', token_type: 'bearer', scope: '' },
        ...(isKnown ? { '/api/v3/user': { login: 'Ann' } } : {}),
        ...(isKnown ? { '/api/v3/repos/octo/mine': { full_name: 'Octo/Mine', permissions: { push: true } } } : {}),
      };
      const document = documents[url];
      response.writeHead(document === undefined ? 404 : 200, { 'content-type': 'application/json' });
      response.end(JSON.stringify(document ?? {}));
    });
  };
  const browser = new Browser();
  const way = new URL(await browser.begin('github'));
  assert.equal(`${way.origin}${way.pathname}`, `${github.url}/login/oauth/authorize`);
  assert.deepEqual([way.searchParams.get('nonce'), way.searchParams.get('scope')], [null, null]);
  const back = await browser.open(`/sign-in/github/callback?code=c&state=${way.searchParams.get('state') ?? ''}`);
  assert.equal(back.status, 200, await back.text());
  const verifier = bodies[0]?.get('code_verifier') ?? '';
  assert.equal(createHash('sha256').update(verifier).digest('base64url'), way.searchParams.get('code_challenge'));
  assert.equal((await browser.act('restart')).status, 303);
  assert.equal(writes, 1);
});

test('neither cookie nor page has the token of an account in clear', async () => {
  forger.answer = lieAbout(() => '', '');
  const response = await endAtLiar((claims) => signToken(claims, rightKey.privateKey));
  assert.equal(hasSession(response), true);
  const all = `${response.headers.getSetCookie().join()}${await response.text()}`;
  assert.doesNotMatch(all, /opaque|mas-/);
});
