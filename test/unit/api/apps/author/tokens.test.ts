// Tokens of an app: what a scope allows, when a token ends, and what no token may do.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, beforeEach, test } from 'vitest';
import { Registry } from 'prom-client';
import { z } from 'zod';
import { createLogMetrics } from '../../../../../api/apps/logs/collector.ts';
import { permissions, scopes } from '../../../../../api/apps/author/scopes.ts';
import type { App } from '../../../../../api/apps/hosted-apps.ts';
import {
  createAuthorToken,
  createAuthorKey,
  hashAuthorToken,
  hashAuthorKey,
} from '../../../../../lib/ownership-file.ts';
import { describeProduct } from '../../../../../docs/generator/product.ts';
import { MemoryForgeTokens } from '../../../../support/apps/fake-forge.ts';
import { sampleAppsServer, type AppsSample } from '../../../../support/apps/sample.ts';

const [key, second] = [createAuthorKey(), createAuthorKey()];
const slugs = ['mine', 'other'];
let sample: AppsSample;
let writes = 0;
/** Keys whose lines the newest commit has. */
let current: string[] = [];

const toHashes = (keys: readonly string[]): string[] =>
  keys.flatMap((each) => slugs.map((slug) => hashAuthorKey(each, `git.test/octo/${slug}`)));

function refuseCall(): never {
  throw new Error('not called');
}

beforeAll(async () => {
  sample = await sampleAppsServer({
    author: {
      lookUpKeys: () =>
        Promise.resolve({
          ok: true,
          commit: 'c'.repeat(40),
          reference: 'refs/heads/main',
          authorKeys: toHashes(current),
        }),
      writeControl: (app) => {
        writes += 1;
        return Promise.resolve(app);
      },
      createSecret: () => Promise.resolve(),
      readApp: () => Promise.resolve(undefined),
      maximumReplicas: 3,
      forgeTokens: new MemoryForgeTokens(),
      // Nothing is collected, because nothing is live for it; its endpoints are there.
      logs: {
        client: { list: () => Promise.reject(new Error('none')), watch: refuseCall },
        openLog: () => Promise.resolve({ state: 'gone' }),
        namespace: 'moorage-apps',
        key: undefined,
        streams: 1,
        metrics: createLogMetrics(new Registry()),
      },
    },
  });
  for (const slug of slugs)
    await sample.host(
      slug,
      (_request, response) => response.end('ok'),
      (app): App => ({ ...app, status: { ...app.status, authorKeys: toHashes([key, second]) } }),
    );
});
afterAll(() => sample.stop());
beforeEach(() => {
  [current, writes] = [[key, second], 0];
});

const answer = z.looseObject({
  type: z.string().optional(),
  detail: z.string().optional(),
  scope: z.string().optional(),
  errors: z.array(z.looseObject({ field: z.string() })).optional(),
});
let addresses = 0;

async function ask(
  path: string,
  authorization: string,
  { method = 'GET', body }: { method?: string; body?: object | undefined } = {},
): Promise<{ status: number; kind: string | undefined; body: z.output<typeof answer> }> {
  addresses += 1;
  const response = await sample.request(`/api/apps/${path}`, {
    method,
    headers: {
      // Another network each time, so that no limit of wrong keys is reached.
      'x-forwarded-for': `10.${addresses >> 8}.${addresses & 255}.1`,
      authorization: `Bearer ${authorization}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const parsed = answer.parse(await response.json());
  return { status: response.status, kind: parsed.type?.split('/').at(-1), body: parsed };
}

const created = z.looseObject({ token: z.string(), id: z.string(), scopes: z.array(z.string()) });

async function create(body: object = {}, by = key, slug = 'mine'): Promise<z.output<typeof created>> {
  const made = await ask(`${slug}/tokens`, by, { method: 'POST', body: { name: 'CI', expires_in_days: 30, ...body } });
  assert.equal(made.status, 200, made.body.detail);
  return created.parse(made.body);
}

const listed = z.looseObject({ tokens: z.array(z.looseObject({ id: z.string(), state: z.string() })) });

test('a token does what its scope says, and the audit log names it', async () => {
  const { token, id } = await create({ name: 'Deploys of CI', scopes: ['deploy'] });
  assert.match(token, /^mat-[\w-]{43}$/);
  assert.equal((await ask('mine/deploy', token, { method: 'POST' })).status, 200);
  assert.equal(writes, 1);
  const { entries } = z
    .looseObject({ entries: z.array(z.looseObject({ action: z.string(), actor: z.string() })) })
    .parse((await ask('mine/audit?limit=2', key)).body);
  assert.deepEqual(
    entries.map(({ action, actor, ...rest }) => [action, actor, rest['actor_name']]),
    [
      ['deploy', `token:${id}`, 'Deploys of CI'],
      ['create-token', hashAuthorKey(key, 'git.test/octo/mine').slice(0, 12), undefined],
    ],
  );
  assert.equal(JSON.stringify(entries).includes(token), false);
});

test('a viewer reads and changes nothing', async () => {
  const { token, scopes: given } = await create();
  assert.deepEqual(given, ['read', 'logs']);
  const { status, body } = await ask('mine', token);
  assert.deepEqual([status, body['allowed']], [200, ['read', 'logs']]);
  assert.equal((await ask('mine/audit', token)).status, 200);
  for (const action of ['restart', 'suspend', 'deploy'])
    assert.equal((await ask(`mine/${action}`, token, { method: 'POST' })).kind, 'missing-scope');
  assert.equal(writes, 0);
});

const operations = describeProduct().endpoints.filter(({ path }) => path.startsWith('/api/apps/{slug}'));

/** A body that passes validation, so that a request reaches the check of its sender. */
const bodies: Readonly<Record<string, object>> = {
  setSecret: { value: 'x' },
  changeSettings: { replicas: 1 },
  rollBackApp: { commit: 'a'.repeat(40) },
  rebuildApp: { cache: true },
  createToken: { name: 'another', expires_in_days: 1 },
  renameApp: { slug: 'another' },
  setNotificationWebhook: { url: 'https://example.org/hook' },
  addNotificationContact: { address: 'a@example.org' },
  chooseNotificationEvents: { events: ['live'] },
  setAccess: { access: 'public' },
  addDomain: { domain: 'shop.example.com' },
  createAccessKey: { name: 'team' },
  startCommand: { command: ['true'] },
  replacePushHookSecret: {},
  setForgeToken: { token: 'x' },
};

/** The path of an endpoint for the app `mine`, with parameters that it accepts. */
function fillParameters(path: string): string {
  return path
    .replace('/api/apps/{slug}', 'mine')
    .replace('keys/{name}', 'keys/team')
    .replace('tasks/{name}', 'tasks/clean')
    .replace('contacts/{id}', `contacts/${'a'.repeat(32)}`)
    .replace('runs/{id}', 'runs/run-mine-1')
    .replace('{domain}', 'shop.example.com')
    .replace('{channel}', 'mail')
    .replace('{name}', 'TOKEN')
    .replace('{id}', 'a'.repeat(12));
}

test('each endpoint of an author has an entry, and each entry an endpoint', () => {
  assert.ok(operations.length > 25);
  const open = ['issueAppKey', 'receivePush'];
  assert.deepEqual(
    operations.filter(({ authorScope }) => authorScope === undefined).map(({ operation }) => operation),
    open,
  );
  const known = new Set(describeProduct().endpoints.map(({ operation }) => operation));
  assert.deepEqual(
    Object.keys(permissions).filter((name) => !known.has(name)),
    [],
  );
});

test('attack: a token with every scope but one is refused at each endpoint that needs that one, by name', async () => {
  const tokens = new Map<string, string>();
  for (const missing of scopes)
    tokens.set(missing, (await create({ scopes: scopes.filter((each) => each !== missing) })).token);
  for (const name of ['owner', 'key']) tokens.set(name, (await create({ scopes })).token);
  const tried: string[] = [];
  for (const { operation, method, path, authorScope } of operations) {
    if (authorScope === undefined) continue;
    const to = fillParameters(path);
    const { status, kind, body } = await ask(to, tokens.get(authorScope) ?? '', { method, body: bodies[operation] });
    assert.deepEqual([status, kind, body.scope], [403, 'missing-scope', authorScope], operation);
    tried.push(operation);
  }
  assert.ok(tried.length >= 25, tried.join());
  assert.equal(writes, 0);
});

test('attack: a token makes no token, revokes none, and deletes no app', async () => {
  const { token, id } = await create({ scopes });
  const refused = [
    await ask('mine/tokens', token, { method: 'POST', body: { name: 'x', expires_in_days: 365 } }),
    await ask(`mine/tokens/${id}`, token, { method: 'DELETE' }),
    await ask('mine/tokens', token),
    await ask('mine', token, { method: 'DELETE' }),
  ];
  assert.deepEqual(
    refused.map(({ kind }) => kind),
    Array(4).fill('missing-scope'),
  );
});

test('attack: a token opens no other app, and says nothing of its own', async () => {
  const { token } = await create({ name: 'mine alone', scopes });
  const read = await ask('other', token);
  assert.deepEqual([read.status, read.kind], [404, 'app-private']);
  assert.doesNotMatch(JSON.stringify(read.body), /mine/);
  const change = await ask('other/restart', token, { method: 'POST' });
  assert.deepEqual([change.status, change.kind, writes], [403, 'not-author', 0]);
});

test('attack: a revoked token opens nothing', async () => {
  const { token, id } = await create({ scopes: ['read', 'control'] });
  assert.equal((await ask('mine', token)).status, 200);
  assert.equal((await ask(`other/tokens/${id}`, key, { method: 'DELETE' })).kind, 'unknown-token');
  assert.equal((await ask('mine', token)).status, 200);
  assert.equal((await ask(`mine/tokens/${id}`, key, { method: 'DELETE' })).status, 200);
  assert.equal((await ask(`mine/tokens/${id}`, key, { method: 'DELETE' })).status, 200, 'again');
  const read = await ask('mine', token);
  assert.deepEqual([read.status, read.kind], [404, 'app-private']);
  assert.match(read.body.detail ?? '', /The token was revoked at 20/);
  assert.equal((await ask('mine/restart', token, { method: 'POST' })).kind, 'not-author');
  const { tokens } = listed.parse((await ask('mine/tokens', key)).body);
  assert.equal(tokens.find((each) => each.id === id)?.state, 'revoked');
});

test('attack: an expired token opens nothing', async () => {
  const { token, id } = await create({ scopes: ['read', 'control'] });
  await sample.models.ledger.get().database.query(
    {
      name: 'test-expire',
      text: `update author.token set created_at = now() - interval '2 days', expires_at = now() - interval '1 second' where id = $1`,
      row: z.unknown(),
    },
    [id],
  );
  assert.match((await ask('mine', token)).body.detail ?? '', /The token expired at 20/);
  assert.equal((await ask('mine/restart', token, { method: 'POST' })).status, 403);
  assert.equal(writes, 0);
});

test('attack: the line of a key that is gone ends the tokens that were made with it, and no others', async () => {
  const one = await create({ scopes: ['read', 'control'] });
  const other = await create({ scopes: ['read', 'control'] }, second);
  current = [second];
  const refused = await ask('mine/restart', one.token, { method: 'POST' });
  assert.deepEqual([refused.status, refused.kind, writes], [403, 'not-author', 0]);
  assert.equal((await ask('mine/restart', other.token, { method: 'POST' })).status, 200);
});

test('attack: tokens that were made up or changed are wrong keys, and ten of them in a minute are the last', async () => {
  const { token } = await create({ scopes: ['read'] });
  const send = async (authorization: string): Promise<number> => {
    const headers = { 'x-forwarded-for': '198.51.100.20', authorization };
    return (await sample.request('/api/apps/mine', { headers })).status;
  };
  // The same id, which is public, and another token: nothing but the hash opens.
  assert.equal(hashAuthorToken(token).length, 64);
  for (const wrong of [createAuthorToken(), token.slice(0, -1), `${token}A`, token.toUpperCase(), token.slice(4)])
    assert.equal(await send(`Bearer ${wrong}`), 404);
  for (let tries = 0; tries < 5; tries += 1) assert.equal(await send(`Bearer ${createAuthorToken()}`), 404);
  assert.equal(await send(`Bearer ${createAuthorToken()}`), 429);
  assert.equal(await send(`Bearer ${token}`), 200, 'the right one');
});

test('a token that is used says when, and is never listed itself', async () => {
  const { token, id } = await create({ scopes: ['read'] });
  const find = async (): Promise<unknown> =>
    listed.parse((await ask('mine/tokens', key)).body).tokens.find((each) => each.id === id)?.['last_used_at'];
  assert.equal(await find(), undefined);
  await ask('mine', token);
  assert.match(String(await find()), /^20/);
  const { body } = await ask('mine/tokens', key);
  assert.equal(JSON.stringify(body).includes(token), false);
  assert.equal(JSON.stringify(body).includes(hashAuthorToken(token)), false);
});

test.each([
  [{ name: '' }, 'name'],
  [{ name: 'a\nb' }, 'name'],
  [{ name: 'x'.repeat(61) }, 'name'],
  [{ scopes: [] }, 'scopes'],
  [{ scopes: ['everything'] }, 'scopes.0'],
  [{ scopes: ['owner'] }, 'scopes.0'],
  [{ expires_in_days: undefined }, 'expires_in_days'],
  [{ expires_in_days: 366 }, 'expires_in_days'],
  [{ expires_in_days: 0 }, 'expires_in_days'],
  [{ admin: true }, 'admin'],
])('refuses %j by its field', async (body, field) => {
  const { status, body: problem } = await ask('mine/tokens', key, {
    method: 'POST',
    body: { name: 'CI', expires_in_days: 30, ...body },
  });
  assert.deepEqual([status, problem.errors?.map((error) => error.field)], [400, [field]]);
});

test('an app has at most fifty tokens that have not ended', async () => {
  const count = listed
    .parse((await ask('other/tokens', key)).body)
    .tokens.filter(({ state }) => state === 'active').length;
  const made: string[] = [];
  for (let number = count; number < 50; number += 1) made.push((await create({}, key, 'other')).id);
  const body = { name: 'one more', expires_in_days: 1 };
  const refused = await ask('other/tokens', key, { method: 'POST', body });
  assert.deepEqual([refused.status, refused.kind], [409, 'too-many-tokens']);
  await ask(`other/tokens/${made[0]}`, key, { method: 'DELETE' });
  assert.equal((await ask('other/tokens', key, { method: 'POST', body })).status, 200);
});
