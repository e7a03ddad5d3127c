// How an author renames an app: what leads to it at each of its names, what is refused by name, and who gets a name of several
// who want it. Records stay under the name of the HostedApp.
import assert from 'node:assert/strict';
import { pino } from 'pino';
import { afterAll, beforeAll, beforeEach, test } from 'vitest';
import { z } from 'zod';
import { createHostIndex } from '../../../../../api/accounting/metering/request-class.ts';
import { type App, createAppIndex, readAuthorship } from '../../../../../api/apps/hosted-apps.ts';
import { SlugClaims } from '../../../../../api/apps/author/rename.ts';
import { createAuthorKey, hashAuthorKey } from '../../../../../lib/ownership-file.ts';
import { omitUndefined } from '../../../../../lib/values.ts';
import { addAgentPaths, sampleAppsServer, type AppsSample } from '../../../../support/apps/sample.ts';

const key = createAuthorKey();
const names = ['mine', 'second', 'chat-ui-1'] as const;
let sample: AppsSample;
/** Apps that the cluster has and the cache does not, by name. */
const unseen = new Map<string, App>();

function getStored(name: string): App {
  return sample.store.get(`apps/${name}`) ?? assert.fail(`no app ${name}`);
}

function store(name: string, change: (app: App) => Partial<App>): App {
  const app = getStored(name);
  const resourceVersion = String(Number(app.metadata.resourceVersion) + 1);
  const changed = { ...app, ...change(app), metadata: { ...app.metadata, resourceVersion } };
  sample.store.set(changed);
  return changed;
}

beforeAll(async () => {
  sample = await sampleAppsServer({
    log: pino({ level: 'silent' }),
    author: {
      ...{ maximumReplicas: 3, createSecret: () => Promise.resolve() },
      lookUpKeys: ({ name }) =>
        Promise.resolve({
          ok: true,
          commit: 'c'.repeat(40),
          reference: 'refs/heads/main',
          authorKeys: [hashAuthorKey(key, `git.test/octo/${name}`)],
        }),
      readApp: (name) => Promise.resolve(unseen.get(name) ?? sample.store.get(`apps/${name}`)),
      writeControl: (app, change) => {
        const { control = {} } = getStored(app.metadata.name).spec;
        const next = omitUndefined({ ...control, ...change(control) });
        return Promise.resolve(store(app.metadata.name, ({ spec }) => ({ spec: { ...spec, control: next } })));
      },
    },
  });
});
afterAll(() => sample.stop());
beforeEach(async () => {
  unseen.clear();
  for (const name of names)
    await sample.host(
      name,
      (_request, response) => response.end(`this is ${name}`),
      (app) =>
        addAgentPaths({
          ...app,
          status: { ...app.status, authorKeys: [hashAuthorKey(key, `git.test/octo/${name}`)] },
        }),
    );
  await endClaims();
});

/** Claims last longer than a test. */
async function endClaims(): Promise<void> {
  const { database } = sample.models.ledger.get();
  await database.transaction(async (transaction) => transaction.script('delete from author.slug_claim'));
}

const answer = z.looseObject({
  type: z.string().optional(),
  detail: z.string().optional(),
  slug: z.string().optional(),
  errors: z.array(z.looseObject({ field: z.string(), message: z.string(), fix: z.string() })).optional(),
});

async function ask(
  path: string,
  { method = 'GET', body, by = key }: { method?: string; body?: unknown; by?: string | undefined } = {},
): Promise<{ outcome: string; body: z.output<typeof answer> }> {
  const response = await sample.request(path, {
    method,
    headers: { ...(by === '' ? {} : { authorization: `Bearer ${by}` }), 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const parsed = answer.parse(await response.json());
  return { outcome: `${response.status} ${parsed.type?.split('/').at(-1) ?? ''}`.trim(), body: parsed };
}

const rename = (app: string, slug: string, by = key): ReturnType<typeof ask> =>
  ask(`/api/apps/${app}/rename`, { method: 'POST', body: { slug }, by });

test('a renamed app is found at each of its names, and shown with the new one', async () => {
  const { outcome, body } = await rename('mine', 'shop');
  assert.equal(outcome, '200');
  assert.deepEqual([body['slug'], body['former'], body['url']], ['shop', 'mine', 'https://shop.apps.test/']);
  assert.match(String(body['redirects_until']), /^\d{4}-/);
  for (const name of ['mine', 'shop']) {
    for (const path of [`/api/apps/${name}`, `/api/apps/${name}/settings`, `/api/projects/${name}`]) {
      const found = await ask(path);
      assert.deepEqual([found.outcome, found.body.slug], ['200', 'shop'], path);
    }
  }
  const called = await ask('/api/projects/mine/call', { method: 'POST', body: { method: 'GET', path: '/' }, by: '' });
  assert.equal(called.body['app'], 'shop');
  assert.equal(Buffer.from(String(called.body['base64']), 'base64').toString(), 'this is mine');
  const page = await sample.request('/apps/mine', { redirect: 'manual', headers: { accept: 'text/html' } });
  assert.deepEqual([page.status, page.headers.get('location')?.split('?')[0]], [303, '/apps/shop']);
  const listed = z.looseObject({ items: z.array(z.looseObject({ slug: z.string() })).optional() });
  const projects = JSON.stringify(listed.parse(await (await sample.request('/api/projects?state=all')).json()));
  assert.match(projects, /"slug":"shop"/);
  assert.doesNotMatch(projects, /"slug":"mine"/);
  const audit = await ask('/api/apps/shop/audit');
  assert.match(JSON.stringify(audit.body), /"action":"rename","detail":\{"slug":"shop"\}/);
});

test('uses, shares and calls stay in the ledger under the first name', async () => {
  await rename('mine', 'shop');
  const app = getStored('mine');
  assert.deepEqual([readAuthorship(app).app, readAuthorship(app).slug], ['mine', 'shop']);
  const apps = createAppIndex(sample.store, 'apps');
  const find = createHostIndex({ apps, site: { domain: 'apps.test', port: 443 }, platformHost: 'moorage.test' });
  for (const host of ['mine.apps.test', 'shop.apps.test']) {
    const found = find(host);
    assert.equal(found.kind === 'app' && found.app.slug, 'mine', host);
  }
  await ask('/api/projects/shop/call', { method: 'POST', body: { method: 'GET', path: '/' }, by: '' });
  const uses = await sample.models.ledger.get().database.query(
    {
      name: 'test-uses',
      text: `select distinct app from ledger.usage where kind = 'app'`,
      row: z.object({ app: z.string() }),
    },
    [],
  );
  assert.deepEqual(uses, [{ app: 'mine' }]);
});

test('a way back is open, and a name of its own is not taken', async () => {
  assert.equal((await rename('mine', 'shop')).outcome, '200');
  assert.equal((await rename('shop', 'store')).outcome, '200');
  assert.equal((await rename('shop', 'shop')).outcome, '200');
  assert.equal((await rename('store', 'mine')).outcome, '200');
  const { control } = getStored('mine').spec;
  assert.equal(control?.slug, undefined);
  assert.deepEqual(control?.formerSlugs?.map(({ name }) => name).sort(), ['shop', 'store']);
});

test.each(['Shop', 'admin', 'chat-ui-2', 'shop--pr-1', 'shop-0123abcd', '-', 'a'.repeat(41), 'shop.evil.test', '../x'])(
  'attack: the name %j is refused at its field, and nothing changes',
  async (slug) => {
    const { outcome, body } = await rename('mine', slug);
    assert.equal(outcome, '400 invalid-request');
    assert.equal(body.errors?.[0]?.field, 'slug');
    assert.notEqual(body.errors[0].fix, '');
    assert.equal(getStored('mine').spec.control, undefined);
  },
);

test('attack: no app gets the name, the first name or a former name of another one', async () => {
  await rename('second', 'store');
  await rename('second', 'depot');
  for (const slug of ['second', 'store', 'depot']) {
    const { outcome, body } = await rename('mine', slug);
    assert.equal(outcome, '409 slug-taken', slug);
    assert.match(body.detail ?? '', /^slug: /);
  }
  assert.equal(getStored('mine').spec.control, undefined);
  // A former name that ended long ago is free; the first one never is.
  const until = new Date(Date.now() - 7_200_000).toISOString();
  store('second', ({ spec }) => ({
    spec: { ...spec, control: { slug: 'depot', formerSlugs: ['second', 'store'].map((name) => ({ name, until })) } },
  }));
  await endClaims();
  assert.equal((await rename('mine', 'second')).outcome, '409 slug-taken');
  assert.equal((await rename('mine', 'store')).outcome, '200');
});

test('attack: an app that only the cluster knows yet keeps its name, and the claim is given back', async () => {
  unseen.set('fresh', { ...getStored('second'), metadata: { ...getStored('second').metadata, name: 'fresh' } });
  assert.equal((await rename('mine', 'fresh')).outcome, '409 slug-taken');
  unseen.clear();
  assert.equal((await rename('second', 'fresh')).outcome, '200');
});

test('attack: of two apps that get one name at the same time, one has it', async () => {
  const outcomes = await Promise.all([rename('mine', 'shop'), rename('second', 'shop')]);
  assert.deepEqual(outcomes.map(({ outcome }) => outcome).sort(), ['200', '409 slug-taken']);
});

test('attack: a submission and a rename never get the same name', async () => {
  const claims = new SlugClaims(() => sample.models.ledger.get().database);
  assert.equal(
    await claims.hold('shop', 'a repository', async () => (await rename('mine', 'shop')).outcome),
    '409 slug-taken',
  );
  assert.equal((await rename('mine', 'shop')).outcome, '200');
  assert.equal(await claims.hold('shop', 'a repository', () => Promise.resolve('created')), undefined);
});

test('attack: an app holds no more than five former names', async () => {
  for (const [index, slug] of ['a1', 'a2', 'a3', 'a4', 'a5'].entries())
    assert.equal((await rename('mine', slug)).outcome, '200', String(index));
  const { outcome, body } = await rename('mine', 'a6');
  assert.equal(outcome, '422 setting-refused');
  assert.match(body.detail ?? '', /^slug: 5 former slugs .* wait until \d{4}-/);
  assert.equal((await rename('mine', 'a2')).outcome, '200');
});

test('attack: only the author renames, and no app of the catalog is renamed', async () => {
  assert.equal((await rename('mine', 'shop', createAuthorKey())).outcome, '403 not-author');
  assert.equal((await rename('unknown', 'shop')).outcome, '404 unknown-app');
  assert.equal((await rename('chat-ui-1', 'shop')).outcome, '422 setting-refused');
  assert.equal((await rename('mine', 'mine')).outcome, '422 setting-refused');
  assert.equal(getStored('mine').spec.control, undefined);
});
