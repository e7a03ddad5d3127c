// How an author gives own domains to an app: what is stored and shown, what is refused by name, and that a domain which the
// operator reports belongs to the app for the metering, too.
import assert from 'node:assert/strict';
import { pino } from 'pino';
import { afterAll, beforeAll, beforeEach, test } from 'vitest';
import { z } from 'zod';
import { createHostIndex } from '../../../../../api/accounting/metering/request-class.ts';
import { type App, createAppIndex } from '../../../../../api/apps/hosted-apps.ts';
import { listStatusEvents } from '../../../../../api/apps/notifications/events.ts';
import { createAuthorKey, hashAuthorKey } from '../../../../../lib/ownership-file.ts';
import type { DomainStatus } from '../../../../../crds/domains.ts';
import { omitUndefined } from '../../../../../lib/values.ts';
import { addAgentPaths, sampleAppsServer, type AppsSample } from '../../../../support/apps/sample.ts';

const key = createAuthorKey();
const hash = hashAuthorKey(key, 'git.test/octo/mine');
let sample: AppsSample;
let other: AppsSample;

function getStored(of = sample): App {
  return of.store.get('apps/mine') ?? assert.fail('no app');
}

function store(change: (app: App) => Partial<App>, of = sample): App {
  const app = getStored(of);
  const resourceVersion = String(Number(app.metadata.resourceVersion) + 1);
  const changed = { ...app, ...change(app), metadata: { ...app.metadata, resourceVersion } };
  of.store.set(changed);
  return changed;
}

async function start(offersDomains: boolean): Promise<AppsSample> {
  const started = await sampleAppsServer({
    log: pino({ level: 'silent' }),
    author: {
      ...{ offersDomains, maximumReplicas: 3, createSecret: () => Promise.resolve() },
      lookUpKeys: () =>
        Promise.resolve({
          ok: true,
          commit: 'c'.repeat(40),
          reference: 'refs/heads/main',
          authorKeys: [hash],
        } as const),
      writeControl: (_app, change) => {
        const { control = {} } = getStored(started).spec;
        const next = omitUndefined({ ...control, ...change(control) });
        return Promise.resolve(store(({ spec }) => ({ spec: { ...spec, control: next } }), started));
      },
    },
  });
  return started;
}

beforeAll(async () => {
  [sample, other] = await Promise.all([start(true), start(false)]);
});
afterAll(() => Promise.all([sample.stop(), other.stop()]));
beforeEach(async () => {
  for (const each of [sample, other])
    await each.host(
      'mine',
      (_request, response) => response.end('ok'),
      (app) => addAgentPaths({ ...app, status: { ...app.status, authorKeys: [hash] } }),
    );
});

const record = z.object({ name: z.string(), value: z.string() });
const domain = z.looseObject({
  ...{ domain: z.string(), display: z.string(), state: z.string(), url: z.string().optional() },
  records: z.object({ txt: record, cname: record }),
});
const answer = z.looseObject({
  type: z.string().optional(),
  detail: z.string().optional(),
  domains: z.array(domain).optional(),
  errors: z.array(z.looseObject({ field: z.string(), message: z.string(), fix: z.string() })).optional(),
});

async function send(
  method: string,
  path: string,
  body?: unknown,
  { of = sample, by = key }: { of?: AppsSample; by?: string } = {},
): Promise<{ outcome: string; body: z.output<typeof answer> }> {
  const response = await of.request(`/api/apps/mine/domains${path}`, {
    method,
    headers: { authorization: `Bearer ${by}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const parsed = answer.parse(await response.json());
  return { outcome: `${response.status} ${parsed.type?.split('/').at(-1) ?? ''}`.trim(), body: parsed };
}

function report(status: Partial<DomainStatus>): App {
  const found = { name: 'shop.example.com', state: 'Active', message: 'The app answers.', ...status } as const;
  return store((app) => ({ status: { ...app.status, domains: [found] } }));
}

test('a domain is stored in ASCII, shown with its two records, checked, and removed', async () => {
  const added = await send('POST', '', { domain: ' Bücher.Example.com. ' });
  const name = 'xn--bcher-kva.example.com';
  assert.deepEqual([added.outcome, added.body['domain'], added.body['display']], ['200', name, 'bücher.example.com']);
  assert.deepEqual(
    getStored().spec.control?.domains?.map((each) => each.name),
    [name],
  );
  const [shown] = (await send('GET', '')).body.domains ?? [];
  assert.equal(shown?.state, 'Pending');
  assert.deepEqual([shown.records.txt.name, shown.records.cname.name], [`_moorage.${name}`, name]);
  assert.match(shown.records.txt.value, /^moorage-domain=[0-9a-f]{20}$/);
  assert.match(shown.records.cname.value, /^mine--[0-9a-f]{20}[.]/);
  assert.equal((await send('POST', `/${encodeURIComponent('bücher.example.com')}/check`)).outcome, '200');
  assert.ok(getStored().spec.control?.domains?.[0]?.checkAfter !== undefined);
  assert.equal((await send('POST', '', { domain: name })).outcome, '422 setting-refused');
  assert.equal((await send('DELETE', `/${name}`)).outcome, '200');
  assert.deepEqual(getStored().spec.control?.domains, []);
  assert.equal((await send('DELETE', `/${name}`)).outcome, '404 unknown-domain');
});

test.each(['apps.test', 'mine.apps.test', '10.0.0.1', '*.example.com', 'co.uk', 'x.svc.cluster.local', 'localhost'])(
  'refuses %s with the field and the fix, and stores nothing',
  async (name) => {
    const { outcome, body } = await send('POST', '', { domain: name });
    assert.equal(outcome, '400 invalid-request');
    const [error] = body.errors ?? [];
    assert.deepEqual([error?.field, error?.fix !== ''], ['domain', true]);
    assert.equal(getStored().spec.control?.domains, undefined);
  },
);

test('an app has five domains at most, and none where the installation has no issuer', async () => {
  for (let index = 0; index < 5; index += 1)
    assert.equal((await send('POST', '', { domain: `a${index}.example.com` })).outcome, '200');
  assert.equal((await send('POST', '', { domain: 'a5.example.com' })).outcome, '422 setting-refused');
  const refused = await send('POST', '', { domain: 'shop.example.com' }, { of: other });
  assert.equal(refused.outcome, '503 domains-unavailable');
  assert.equal((await send('GET', '', undefined, { of: other })).body['offered'], false);
});

test('another key reads nothing and changes nothing', async () => {
  const by = createAuthorKey();
  assert.equal((await send('GET', '', undefined, { by })).outcome, '404 app-private');
  assert.equal((await send('POST', '', { domain: 'shop.example.com' }, { by })).outcome, '403 not-author');
});

test('requests to a domain count for the app that has it, and for nobody before and after', () => {
  const apps = createAppIndex(sample.store, 'apps');
  const resolve = createHostIndex({ apps, site: { domain: 'apps.test', port: 443 }, platformHost: 'moorage.test' });
  for (const [state, expected] of [
    ['Pending', 'unknown'],
    ['Active', 'app mine'],
    ['ProofLost', 'app mine'],
    ['Taken', 'unknown'],
    ['Removed', 'unknown'],
  ] as const) {
    report({ state });
    const found = resolve('shop.example.com');
    assert.equal(found.kind === 'app' ? `app ${found.app.slug}` : found.kind, expected, state);
  }
});

test('the author is notified once of a lost proof, and once of a lost domain', () => {
  const lostAt = '2026-11-27T10:00:00Z';
  const list = (status: Partial<DomainStatus>): string[] =>
    listStatusEvents(report(status)).flatMap(({ kind, subject }) => (kind === 'domain_lost' ? [subject] : []));
  assert.deepEqual(list({ state: 'Active' }), []);
  assert.deepEqual(list({ state: 'ProofLost', lostAt }), [`shop.example.com/ProofLost/${lostAt}`]);
  assert.deepEqual(list({ state: 'Removed', lostAt }), [`shop.example.com/Removed/${lostAt}`]);
});
