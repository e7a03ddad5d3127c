// The page on which an author runs an app: signing in, what a session may do, and what nobody else may.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, beforeEach, test } from 'vitest';
import type { App } from '../../../../api/apps/hosted-apps.ts';
import { createSessions } from '../../../../api/pages/session.ts';
import { createAuthorKey, hashAuthorKey } from '../../../../lib/ownership-file.ts';
import { knownGitea, MemoryForgeTokens } from '../../../support/apps/fake-forge.ts';
import { buildPreview, sampleAppsServer, type AppsSample } from '../../../support/apps/sample.ts';

const key = createAuthorKey();
const forgeTokens = new MemoryForgeTokens();
let sample: AppsSample;
let writes: unknown[] = [];

beforeAll(async () => {
  const hashOf = (slug: string): string => hashAuthorKey(key, `git.test/octo/${slug}`);
  sample = await sampleAppsServer({
    signInProviders: [knownGitea],
    // Nothing is sent.
    notificationTimes: { noticeMs: 3_600_000, deliverMs: 3_600_000 },
    author: {
      lookUpKeys: () =>
        Promise.resolve({
          ok: true,
          commit: 'c'.repeat(40),
          reference: 'refs/heads/main',
          authorKeys: [hashOf('mine')],
        }),
      createSecret: () => Promise.resolve(),
      readApp: () => Promise.resolve(undefined),
      maximumReplicas: 3,
      forgeTokens,
      offersDomains: true,
      writeControl: (app, change) => {
        writes.push(change({}));
        return Promise.resolve(app);
      },
    },
  });
  for (const slug of ['mine', 'other'])
    await sample.host(
      slug,
      (_request, response) => response.end('ok'),
      (app): App => ({ ...app, status: { ...app.status, authorKeys: slug === 'mine' ? [hashOf(slug)] : [] } }),
    );
});
afterAll(() => sample.stop());
beforeEach(() => {
  writes = [];
});

interface SentRequest {
  readonly cookie?: string;
  readonly origin?: string;
  readonly slug?: string;
}

async function send(
  form: Record<string, string>,
  { cookie, origin, slug = 'mine' }: SentRequest = {},
): Promise<Response> {
  return sample.request(`/apps/${slug}/manage`, {
    method: 'POST',
    headers: {
      accept: 'text/html',
      'content-type': 'application/x-www-form-urlencoded',
      ...(origin === undefined ? {} : { origin }),
      ...(cookie === undefined ? {} : { cookie }),
    },
    body: new URLSearchParams(form).toString(),
  });
}

async function open(cookie?: string, slug = 'mine'): Promise<{ status: number; text: string }> {
  const response = await sample.request(`/apps/${slug}/manage`, {
    headers: { accept: 'text/html', ...(cookie === undefined ? {} : { cookie }) },
  });
  return { status: response.status, text: await response.text() };
}

async function signIn(): Promise<{ cookie: string; token: string }> {
  const response = await send({ action: 'sign-in', key });
  assert.equal(response.status, 303);
  const [header = ''] = response.headers.getSetCookie();
  assert.match(header, /^__Host-moorage-author=[\w-]+; Max-Age=3600; Path=\/; Secure; HttpOnly; SameSite=Strict$/);
  assert.equal(header.includes(key), false, 'the key is sealed');
  const cookie = header.split(';')[0] ?? '';
  const { text } = await open(cookie);
  const token = /name="token" value="([\w-]+)"/.exec(text)?.[1] ?? assert.fail('no token');
  return { cookie, token };
}

test('an author signs in, restarts the app and signs out', async () => {
  assert.match((await open()).text, /Sign in to manage mine/);
  const { cookie, token } = await signIn();
  const { status, text } = await open(cookie);
  assert.equal(status, 200);
  assert.match(text, /Manage mine/);
  assert.equal(text.includes(key), false, 'the page does not show the key');
  const restarted = await send({ action: 'restart', token }, { cookie });
  assert.deepEqual([restarted.status, restarted.headers.get('location')], [303, '/apps/mine/manage?done=restart']);
  assert.equal(writes.length, 1);
  const [ended = ''] = (await send({ action: 'sign-out' }, { cookie })).headers.getSetCookie();
  assert.match(ended, /^__Host-moorage-author=; Max-Age=0;/);
});

test('an author sees the figures of the range in the address, and of 24 hours with any other', async () => {
  const { cookie } = await signIn();
  const find = async (query: string): Promise<string | undefined> => {
    const response = await sample.request(`/apps/mine/manage${query}`, { headers: { accept: 'text/html', cookie } });
    return /range=(\w+)#figures"\s+aria-current="true"/.exec(await response.text())?.[1];
  };
  assert.deepEqual([await find(''), await find('?range=30d'), await find('?range=1y')], ['24h', '30d', '24h']);
});

test('an author adds a domain by a form, and a refused one is explained at its field', async () => {
  const { cookie, token } = await signIn();
  const added = await send({ action: 'add-domain', token, domain: 'shop.example.com' }, { cookie });
  assert.equal(added.headers.get('location'), '/apps/mine/manage?done=add-domain');
  assert.equal(writes.length, 1);
  const refused = await send({ action: 'add-domain', token, domain: 'x.svc' }, { cookie });
  assert.match(await refused.text(), /Is an internal name/);
  assert.equal(writes.length, 1);
});

test('an author renames the app by a form, and each of its names leads to the page of the new one', async () => {
  const { cookie, token } = await signIn();
  const form = { action: 'rename', token };
  const refused = await send({ ...form, 'new-slug': 'admin' }, { cookie });
  assert.equal(refused.status, 400);
  assert.match(await refused.text(), /href="#new-slug"/);
  assert.deepEqual(writes, []);
  assert.equal((await send({ ...form, 'new-slug': 'shop' }, { cookie })).status, 303);
  const [written] = writes as { slug?: string; formerSlugs?: { name: string; until: string }[] }[];
  assert.deepEqual([written?.slug, written?.formerSlugs?.map(({ name }) => name)], ['shop', ['mine']]);
  const app = sample.store.get('apps/mine') ?? assert.fail('no app');
  const control = { slug: 'shop', formerSlugs: written?.formerSlugs ?? [] };
  const metadata = { ...app.metadata, resourceVersion: '1000' };
  sample.store.set({ ...app, metadata, spec: { ...app.spec, control } });
  try {
    const response = await sample.request('/apps/mine/manage?done=rename', {
      headers: { accept: 'text/html', cookie },
    });
    assert.deepEqual([response.status, response.headers.get('location')], [303, '/apps/shop/manage?done=rename']);
    const { status, text } = await open(cookie, 'shop');
    assert.equal(status, 200);
    assert.match(text, /<code>mine<\/code>/);
  } finally {
    sample.store.set({ ...app, metadata: { ...metadata, resourceVersion: '1001' } });
  }
});

test('an author sets a forge token by a form, which the page never shows, and deletes it', async () => {
  const { cookie, token } = await signIn();
  const form = { action: 'set-forge-token', token };
  const refused = await send({ ...form, 'forge-token': 'two words' }, { cookie });
  assert.equal(refused.status, 400);
  assert.match(await refused.text(), /printable ASCII/);
  assert.equal(forgeTokens.stored.size, 0);
  const set = await send({ ...form, 'forge-token': 'ghp_secret' }, { cookie });
  assert.equal(set.headers.get('location'), '/apps/mine/manage?done=set-forge-token');
  assert.equal(forgeTokens.stored.get('uid-mine')?.token, 'ghp_secret');
  const { text } = await open(cookie);
  assert.match(text, /A token is set since/);
  assert.ok(!text.includes('ghp_secret'));
  await send({ action: 'delete-forge-token', token }, { cookie });
  assert.equal(forgeTokens.stored.size, 0);
  assert.match((await open(cookie)).text, /No token is set/);
});

test('previews are shown next to production, and what a stranger wrote as text', async () => {
  const mine = sample.store.get('apps/mine') ?? assert.fail('no app');
  const { cookie } = await signIn();
  assert.match((await open(cookie)).text, /Off\. Add previews: \{pullRequests: true\}/);
  const values = JSON.stringify({ previews: { pullRequests: true } });
  sample.store.set({
    ...mine,
    metadata: { ...mine.metadata, resourceVersion: '2' },
    status: { ...mine.status, settings: { commit: 'c'.repeat(40), values } },
  });
  const rejection = { rule: 'x', message: '<b>no</b>', fix: '' };
  const changes = { served: undefined, phase: 'Rejected' as const, rejection };
  sample.store.set(buildPreview(mine, 'pr-7', 'refs/pull/7/head', changes));
  const { text } = await open(cookie);
  assert.match(text, /Production[^]*#7[^]*Rejected[^]*&lt;b&gt;no/);
  assert.match(text, /<h2 id="previews">[^]*<h2 id="domains">/);
});

test('a deleted app offers its return first, and a release that crashed says so', async () => {
  const mine = sample.store.get('apps/mine') ?? assert.fail('no app');
  const { cookie } = await signIn();
  const releases = ['a', 'b'].map((letter, index) => ({
    ...{ commit: letter.repeat(40), image: 'registry.test/mine', port: 8080, bestSeconds: 0, servedSeconds: 0 },
    readyAt: '2026-05-01T00:00:00Z',
    ...(index === 0 ? { crashedAt: '2026-05-02T00:00:00Z' } : {}),
  }));
  const kept = { ...mine, metadata: { ...mine.metadata, resourceVersion: '3' }, status: { ...mine.status, releases } };
  sample.store.set(kept);
  const { text } = await open(cookie);
  assert.match(text, /aaaaaaaa[^]*?Crashed[^]*?Roll back to this[^]*?bbbbbbbb[^]*?Not proven yet/);
  assert.match(text, /<nav class="contents" [^]*href="#control"[^]*href="#end"[^]*<\/nav>[^]*<h2 id="control">/);
  const control = { ...mine.spec.control, deleteAfter: '2099-01-01T00:00:00.000Z' };
  sample.store.set({ ...kept, metadata: { ...mine.metadata, resourceVersion: '4' }, spec: { ...mine.spec, control } });
  const deleted = (await open(cookie)).text;
  assert.match(deleted, /<h1>[^]*?Deleted<[^]*?<h2 id="end">[^]*?value="restore"[^]*<h2 id="releases">/);
  assert.doesNotMatch(deleted, /Roll back to this/);
  sample.store.set({ ...mine, metadata: { ...mine.metadata, resourceVersion: '5' } });
});

test('an author protects the app, and a new key is shown in the answer to its form alone', async () => {
  const { cookie, token } = await signIn();
  const form = { action: 'set-access', token, access: 'password', password: ' a pass phrase ' };
  assert.equal((await send(form, { cookie })).headers.get('location'), '/apps/mine/manage?done=set-access');
  const [written] = writes as { access?: string; accessPassword?: string }[];
  assert.equal(written?.access, 'password');
  assert.match(written.accessPassword ?? '', /^scrypt-1:/);
  assert.equal((await send({ ...form, access: 'key' }, { cookie })).status, 400, 'a password with access: key');
  const mine = sample.store.get('apps/mine');
  assert.ok(mine !== undefined);
  const { metadata, spec } = mine;
  const resourceVersion = String(Number(metadata.resourceVersion) + 1);
  sample.store.set({
    ...mine,
    metadata: { ...metadata, resourceVersion },
    spec: { ...spec, control: { access: 'key' } },
  });
  // The writer of this test starts from an app that is public.
  const refused = await send({ action: 'create-access-key', token, 'key-name': 'team' }, { cookie });
  assert.deepEqual([refused.status, /a key opens nothing/.test(await refused.text())], [422, true]);
  const { text } = await open(cookie);
  assert.match(text, /name="access"\s+value="key"\s+checked/);
  assert.match(text, /value="create-access-key"/);
  assert.doesNotMatch(text, /scrypt-1|mvk-/);
});

test('a wrong key is refused, and no session begins', async () => {
  const response = await send({ action: 'sign-in', key: createAuthorKey() });
  assert.equal(response.status, 404);
  assert.deepEqual(response.headers.getSetCookie(), []);
  assert.match(await response.text(), /This was not done/);
});

test('attack: a form without the token of its session, or from another site, does nothing', async () => {
  const { cookie, token } = await signIn();
  const other = await signIn();
  assert.notEqual(other.token, token);
  assert.equal((await send({ action: 'restart' }, { cookie })).status, 403);
  await send({ action: 'restart', token: other.token }, { cookie });
  await send({ action: 'restart', token: `${token.slice(0, -1)}!` }, { cookie });
  const foreign = await send({ action: 'restart', token }, { cookie, origin: 'https://mine.moorage.test' });
  assert.equal(foreign.status, 403);
  await send({ action: 'restart', token });
  assert.deepEqual(writes, []);
});

test('attack: the session of one app opens no other', async () => {
  const { cookie, token } = await signIn();
  assert.match((await open(cookie, 'other')).text, /Sign in to manage other/);
  const response = await send({ action: 'restart', token }, { cookie, slug: 'other' });
  assert.notEqual(response.status, 303);
  assert.deepEqual(writes, []);
});

test('attack: a cookie that was made up, changed, or has expired is no session', () => {
  let now = Date.now();
  const sessions = createSessions('secret', () => now);
  const cookie = sessions.begin(key).split(';')[0] ?? '';
  const read = (value: string): unknown => sessions.read(new Headers({ cookie: value }));
  assert.ok(read(`a=1; ${cookie}; b=2`));
  const [name = '', value = ''] = cookie.split('=');
  const flipped = `${value.startsWith('A') ? 'B' : 'A'}${value.slice(1)}`;
  for (const wrong of [
    '',
    `${name}=`,
    `${name}=abc`,
    `${name}=${flipped}`,
    `x${cookie}`,
    `${name}=${value.slice(0, -4)}`,
  ])
    assert.equal(read(wrong), undefined, wrong);
  assert.equal(createSessions('another', () => now).read(new Headers({ cookie })), undefined);
  now += 3_600_000;
  assert.equal(read(cookie), undefined);
});

test('an author sets the webhook by form, sees its secret once, and chooses events by check boxes', async () => {
  const { cookie, token } = await signIn();
  assert.match((await open(cookie)).text, /<h2 id="notifications">Notifications<\/h2>/);
  const url = 'https://93.184.216.34/hooks/x';
  const body = new URLSearchParams([
    ...Object.entries({ action: 'set-webhook', token, url }),
    ...['live', 'crashed'].map((kind) => ['events', kind]),
  ] as [string, string][]);
  const response = await sample.request('/apps/mine/manage', {
    method: 'POST',
    headers: { accept: 'text/html', 'content-type': 'application/x-www-form-urlencoded', cookie },
    body: body.toString(),
  });
  assert.equal(response.status, 200);
  assert.match(await response.text(), /This secret is shown once[^]*whsec_[A-Za-z0-9+/]{43}=/);
  const { text } = await open(cookie);
  assert.doesNotMatch(text, /whsec_/);
  assert.match(text, /value="https:\/\/93\.184\.216\.34\/hooks\/x"/);
  const boxes = [...text.matchAll(/id="webhook-(\w+)"[^>]*?(checked)?\s*\/>/g)].map(([, kind, checked]) => [
    kind,
    checked,
  ]);
  assert.deepEqual(
    boxes.filter(([, checked]) => checked !== undefined).map(([kind]) => kind),
    ['live', 'crashed'],
  );
  const removed = await send({ action: 'remove-webhook', token }, { cookie });
  assert.equal(removed.headers.get('location'), '/apps/mine/manage?done=remove-webhook');
  assert.doesNotMatch((await open(cookie)).text, /value="https:/);
  const refused = await send({ action: 'set-webhook', token, url: 'https://10.0.0.1/' }, { cookie });
  assert.equal(refused.status, 400, 'no events');
  assert.equal((await send({ action: 'set-webhook', url }, { cookie })).status, 403, 'no token');
});

test('an author makes a token, which the page shows once, and its holder sees no form that it may not send', async () => {
  const { cookie, token } = await signIn();
  const made = await send(
    { action: 'create-token', token, 'token-name': 'Looks', scopes: 'read', expires_in_days: '7' },
    { cookie },
  );
  const page = await made.text();
  assert.equal(made.status, 200, page);
  const [viewer = ''] = /mat-[\w-]{43}/.exec(page) ?? [];
  const again = await open(cookie);
  assert.deepEqual([again.text.includes(viewer), again.text.includes('Looks')], [false, true]);

  const response = await send({ action: 'sign-in', key: viewer });
  assert.equal(response.status, 303);
  const viewing = (response.headers.getSetCookie()[0] ?? '').split(';')[0] ?? '';
  const { status, text } = await open(viewing);
  assert.equal(status, 200);
  assert.match(text, /You are signed in with a token/);
  for (const action of ['restart', 'set-secret', 'change-settings', 'create-token', 'delete'])
    assert.equal(text.includes(`value="${action}"`), false, action);
  const csrf = /name="token" value="([\w-]+)"/.exec(text)?.[1] ?? '';
  const refused = await send({ action: 'restart', token: csrf }, { cookie: viewing });
  assert.deepEqual([refused.status, writes], [403, []]);
  const minted = await send(
    { action: 'create-token', token: csrf, 'token-name': 'Mine', scopes: 'read', expires_in_days: '7' },
    { cookie: viewing },
  );
  assert.deepEqual([minted.status, /mat-[\w-]{43}/.test(await minted.text())], [403, false]);
});

test('a token with an end that is too far is refused at its field', async () => {
  const { cookie, token } = await signIn();
  const form = { action: 'create-token', token, 'token-name': 'x', scopes: 'read', expires_in_days: '900' };
  const response = await send(form, { cookie });
  assert.equal(response.status, 400);
  assert.match(await response.text(), /href="#expires_in_days"/);
});
