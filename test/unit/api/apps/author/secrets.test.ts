// How an author sets secrets and settings: what is stored where, what is refused, and that a value is shown nowhere.
import assert from 'node:assert/strict';
import { pino } from 'pino';
import { afterAll, beforeAll, beforeEach, test } from 'vitest';
import { z } from 'zod';
import { createControlWriter, createSecretCreator } from '../../../../../api/apps/author/control.ts';
import type { App } from '../../../../../api/apps/hosted-apps.ts';
import { type Control, control as controlSchema, formatControlSecretName } from '../../../../../crds/control.ts';
import { ApiError, type Client, type Manifest } from '../../../../../lib/kubernetes/index.ts';
import { createAuthorKey, hashAuthorKey } from '../../../../../lib/ownership-file.ts';
import { sampleAppsServer, type AppsSample } from '../../../../support/apps/sample.ts';

const key = createAuthorKey();
const value = 'hunter2-and-more-of-it';
const slugs = ['shop', 'shop-set', 'disk', 'parts', 'held'];
let sample: AppsSample;
let logged = '';
let remembered: string[] = [];
/** Secrets by name, as the cluster has them. */
const secrets = new Map<string, Manifest>();
/** Makes the next creation fail. */
let refusal: Error | undefined;
/** Runs before the next creation, once. */
let meanwhile: (() => void) | undefined;

/** A cluster that checks versions as the API server does, and lets others run in between. */
const client = {
  get: (_resource: unknown, { name }: { name: string }) => Promise.resolve(sample.store.get(`apps/${name}`)),
  async patch(_resource: unknown, { name }: { name: string }, patch: unknown) {
    await new Promise(setImmediate);
    const { metadata, spec } = z
      .object({ metadata: z.object({ resourceVersion: z.string() }), spec: z.object({ control: z.looseObject({}) }) })
      .parse(patch);
    const stored = sample.store.get(`apps/${name}`);
    if (stored?.metadata.resourceVersion !== metadata.resourceVersion) throw new ApiError(409, 'Conflict', 'changed');
    const fields: Record<string, unknown> = { ...stored.spec.control, ...spec.control };
    const merged = Object.entries(fields).filter(([, field]) => field !== null);
    const changed: App = {
      ...stored,
      metadata: { ...stored.metadata, resourceVersion: String(Number(metadata.resourceVersion) + 1) },
      spec: { ...stored.spec, control: controlSchema.parse(Object.fromEntries(merged)) },
    };
    sample.store.set(changed);
    return changed;
  },
  async create(_resource: unknown, manifest: Manifest) {
    await new Promise(setImmediate);
    if (refusal !== undefined) throw refusal;
    meanwhile?.();
    meanwhile = undefined;
    if (secrets.has(manifest.metadata.name)) throw new ApiError(409, 'AlreadyExists', 'it exists');
    secrets.set(manifest.metadata.name, manifest);
    return manifest;
  },
} as unknown as Client;

function toHash(slug: string): string {
  return hashAuthorKey(key, `git.test/octo/${slug}`);
}

beforeAll(async () => {
  const log = pino({ level: 'trace' }, { write: (line: string) => (logged += line) });
  sample = await sampleAppsServer({
    log,
    author: {
      lookUpKeys: ({ name }) =>
        Promise.resolve({
          ok: true,
          commit: 'c'.repeat(40),
          reference: 'refs/heads/main',
          authorKeys: name === 'held' ? [] : [toHash(name)],
        }),
      writeControl: createControlWriter({ client, apps: { waitForApp: () => Promise.resolve() } }),
      createSecret: createSecretCreator(client),
      maximumReplicas: 3,
      rememberSecret: (app, name, text) => {
        remembered.push(`${app.metadata.name} ${name} ${text}`);
        return Promise.resolve();
      },
    },
  });
  for (const slug of slugs) await sample.host(slug, (_request, response) => response.end('ok'));
});
afterAll(() => sample.stop());
beforeEach(() => {
  for (const slug of slugs) change(slug, {});
  secrets.clear();
  [refusal, logged, remembered] = [undefined, '', []];
});

function change(slug: string, { spec = {}, status = {} }: { spec?: object; status?: object }): void {
  const app = sample.store.get(`apps/${slug}`);
  assert.ok(app !== undefined);
  sample.store.set({
    ...app,
    metadata: { ...app.metadata, resourceVersion: String(Number(app.metadata.resourceVersion) + 1) },
    spec: { source: app.spec.source, ...spec },
    status: { url: `https://${slug}.moorage.test/`, authorKeys: [toHash(slug)], ...status },
  });
}

function getControl(slug: string): Control {
  return sample.store.get(`apps/${slug}`)?.spec.control ?? {};
}

const answer = z.looseObject({ type: z.string().optional(), detail: z.string().optional() });

async function send(
  method: string,
  path: string,
  body?: unknown,
): Promise<{ outcome: string; body: z.output<typeof answer> }> {
  const response = await sample.request(`/api/apps/${path}`, {
    method,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  assert.ok(!text.includes(value), text);
  const parsed = answer.parse(JSON.parse(text));
  return { outcome: `${response.status} ${parsed.type?.split('/').at(-1) ?? ''}`.trim(), body: parsed };
}

test('a value goes into a new Secret, and its name and version alone into the HostedApp', async () => {
  const { outcome, body } = await send('PUT', 'shop/secrets/STRIPE_KEY', { value });
  assert.deepEqual([outcome, body['name'], body['version']], ['200', 'STRIPE_KEY', 1]);
  const [made] = secrets.values();
  const name = formatControlSecretName({ name: 'shop', uid: 'uid-shop' }, 1);
  assert.deepEqual(made, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      name,
      namespace: 'apps',
      labels: {
        'moorage.dev/app': 'shop',
        'app.kubernetes.io/component': 'author-secret',
        'app.kubernetes.io/part-of': 'moorage',
        'app.kubernetes.io/managed-by': 'moorage',
      },
      ownerReferences: [
        { apiVersion: 'moorage.dev/v1alpha1', kind: 'HostedApp', name: 'shop', uid: 'uid-shop', controller: true },
      ],
    },
    type: 'Opaque',
    immutable: true,
    stringData: { value },
  });
  assert.deepEqual(getControl('shop'), { secrets: [{ name: 'STRIPE_KEY', version: 1 }], secretVersion: 1 });
  assert.deepEqual(remembered, [`shop STRIPE_KEY ${value}`]);
});

test('a new value is a new version, a name that is deleted keeps none, and no version is used twice', async () => {
  await send('PUT', 'shop/secrets/A', { value });
  await send('PUT', 'shop/secrets/A', { value: 'another' });
  await send('PUT', 'shop/secrets/B', { value });
  assert.deepEqual((await send('DELETE', 'shop/secrets/A')).outcome, '200');
  assert.deepEqual((await send('DELETE', 'shop/secrets/A')).outcome, '404 unknown-secret');
  await send('PUT', 'shop/secrets/A', { value });
  assert.deepEqual((await send('GET', 'shop/secrets')).body['secrets'], [
    { name: 'B', version: 3 },
    { name: 'A', version: 4 },
  ]);
  assert.equal(secrets.size, 4);
});

test('parallel requests end in one of the values, each with a version whose Secret has it', async () => {
  const values = Array.from({ length: 8 }, (_, index) => `value-${index}`);
  const answers = await Promise.all(
    values.map(async (text, index) => send('PUT', `shop/secrets/${index % 2 === 0 ? 'EVEN' : 'ODD'}`, { value: text })),
  );
  assert.deepEqual(new Set(answers.map(({ outcome }) => outcome)), new Set(['200']));
  const { secrets: set = [], secretVersion = 0 } = getControl('shop');
  assert.deepEqual(set.map(({ name }) => name).sort(), ['EVEN', 'ODD']);
  for (const { name, version } of set) {
    assert.ok(version <= secretVersion);
    const { stringData } = z
      .looseObject({ stringData: z.object({ value: z.string() }) })
      .parse(secrets.get(formatControlSecretName({ name: 'shop', uid: 'uid-shop' }, version)));
    const owner = answers.findIndex(({ body }) => body['version'] === version);
    assert.equal(stringData.value, values[owner]);
    assert.equal(owner % 2 === 0, name === 'EVEN');
  }
});

test('the Secret of a process that was killed in between is skipped', async () => {
  const app = { name: 'shop', uid: 'uid-shop' };
  secrets.set(formatControlSecretName(app, 1), { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'orphan' } });
  assert.equal((await send('PUT', 'shop/secrets/A', { value })).body['version'], 2);
});

test('a version that others have passed meanwhile is not used, since the operator may delete it', async () => {
  meanwhile = () => {
    change('shop', { spec: { control: { secrets: [{ name: 'A', version: 9 }], secretVersion: 9 } } });
  };
  assert.equal((await send('PUT', 'shop/secrets/A', { value })).body['version'], 10);
  assert.deepEqual(getControl('shop'), { secrets: [{ name: 'A', version: 10 }], secretVersion: 10 });
});

test('attack: a value is in no answer, log, audit entry or HostedApp, whatever goes wrong', async () => {
  await send('PUT', 'shop/secrets/A', { value });
  refusal = new ApiError(422, 'Invalid', `Secret "x" is invalid: data: ${value}`);
  assert.equal((await send('PUT', 'shop/secrets/A', { value })).outcome, '500 internal-fault');
  refusal = new ApiError(0, 'Unreachable', 'no answer');
  assert.equal((await send('PUT', 'shop/secrets/A', { value })).outcome, '503 cluster-unavailable');
  refusal = undefined;
  for (const body of [{ value, more: value }, { value: [value] }, { [value]: 'x' }, { value: `${value}\0` }])
    await sample.request('/api/apps/shop/secrets/A', {
      method: 'PUT',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  const queried = await sample.request(`/api/apps/shop/secrets/A?value=${value}`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ value: 'x' }),
  });
  assert.equal(queried.status, 400);
  assert.ok(!(await queried.text()).includes(value));
  const { entries } = z
    .looseObject({ entries: z.array(z.looseObject({ detail: z.unknown() })) })
    .parse((await send('GET', 'shop/audit')).body);
  assert.deepEqual(entries[0]?.detail, { name: 'A' });
  for (const text of [JSON.stringify(entries), JSON.stringify(sample.store.get('apps/shop')), logged])
    assert.ok(!text.includes(value), text.slice(Math.max(0, text.indexOf(value) - 500)));
  assert.ok(logged.includes('request failed'), 'the log of the failure was read');
});

test('attack: names and values that are none are refused, and nothing is stored', async () => {
  const long = 'x'.repeat(32_769);
  const cases: readonly (readonly [string, unknown, string])[] = [
    ['shop/secrets/PORT', { value }, '400 invalid-request'],
    ['shop/secrets/MOORAGE_TOKEN', { value }, '400 invalid-request'],
    ['shop/secrets/..%2f..%2fx', { value }, '400 invalid-request'],
    ['shop/secrets/A-B', { value }, '400 invalid-request'],
    [`shop/secrets/${'A'.repeat(129)}`, { value }, '400 invalid-request'],
    ['shop/secrets/../../other/secrets/A', { value }, '404 unknown-app'],
    ['shop/secrets/A', {}, '400 invalid-request'],
    ['shop/secrets/A', { value: '' }, '400 invalid-request'],
    ['shop/secrets/A', { value: long }, '400 invalid-request'],
    ['shop/secrets/A', { value: '\0' }, '400 invalid-request'],
    ['shop/secrets/A', { value: '\ud800' }, '400 invalid-request'],
    ['shop/secrets/A', { value, version: 7 }, '400 invalid-request'],
    ['shop/secrets/A', { value: 'x'.repeat(1_000_000) }, '413 body-too-large'],
    ['held/secrets/A', { value }, '403 not-author'],
  ];
  for (const [path, body, outcome] of cases) assert.equal((await send('PUT', path, body)).outcome, outcome, path);
  assert.equal(secrets.size, 0);
  assert.deepEqual(
    slugs.map(getControl),
    slugs.map(() => ({})),
  );
  assert.equal((await send('PUT', 'shop/secrets/A', { value: long.slice(1) })).outcome, '200');
});

test('attack: an app whose name begins like another one gets Secrets of its own', async () => {
  await send('PUT', 'shop/secrets/A', { value });
  await send('PUT', 'shop-set/secrets/A', { value });
  assert.deepEqual(
    [...secrets.values()].map(({ metadata }) => metadata.ownerReferences?.[0]?.name),
    ['shop', 'shop-set'],
  );
});

test('a name that the operator of the installation takes from a Secret is refused by name', async () => {
  change('shop', { spec: { run: { secrets: [{ name: 'TAKEN', secret: 'keys', key: 'one' }] } } });
  const { outcome, body } = await send('PUT', 'shop/secrets/TAKEN', { value });
  assert.equal(outcome, '422 setting-refused');
  assert.match(body.detail ?? '', /The operator of this installation sets TAKEN/);
});

test('lists what the review, a crash and the plan ask for, until it is set', async () => {
  const report = { rule: 'run/crashed', message: 'It crashed.', fix: 'Set it.' };
  change('shop', {
    status: {
      rejection: { ...report, variables: ['A', 'PORT'] },
      findings: [{ ...report, severity: 'warning', message: 'Not set.', variables: ['A', 'B'] }],
      plan: {
        strategy: 'node',
        reason: 'It is.',
        mcp: {
          ...{ file: 'a', transport: 'stdio', command: 'a', path: '/mcp', bridged: true },
          environment: [
            { name: 'C', secret: true, required: true },
            { name: 'D', secret: true, required: false },
          ],
        },
      },
    },
  });
  const listMissing = async (): Promise<unknown> => (await send('GET', 'shop/secrets')).body['missing'];
  assert.deepEqual(await listMissing(), [
    { name: 'A', reason: 'It crashed.' },
    { name: 'B', reason: 'Not set.' },
    { name: 'C', reason: 'Files of the repository ask for it.' },
  ]);
  await send('PUT', 'shop/secrets/A', { value });
  await send('PUT', 'shop/settings', { env: [{ name: 'B', value: 'x' }] });
  assert.deepEqual(await listMissing(), [{ name: 'C', reason: 'Files of the repository ask for it.' }]);
});

test('settings change one by one, and null removes one', async () => {
  const env = [{ name: 'MODE', value: 'fast' }];
  assert.equal((await send('PUT', 'shop/settings', { env, replicas: 3, idleAfter: '15m' })).outcome, '200');
  await send('PUT', 'shop/settings', { replicas: null, healthPath: '/healthz' });
  const { body } = await send('GET', 'shop/settings');
  assert.deepEqual(
    [body['settings'], body['maximum_replicas']],
    [{ env, idleAfter: '15m', healthPath: '/healthz' }, 3],
  );
  const { entries } = z
    .looseObject({ entries: z.array(z.looseObject({ detail: z.unknown() })) })
    .parse((await send('GET', 'shop/audit?limit=2')).body);
  assert.deepEqual(
    entries.map(({ detail }) => detail),
    [
      { replicas: null, healthPath: '/healthz' },
      { env: ['MODE'], replicas: 3, idleAfter: '15m' },
    ],
  );
});

test('a secret replaces the variable of the settings, whose value does not stay', async () => {
  await send('PUT', 'shop/settings', {
    env: [
      { name: 'KEY', value: 'open' },
      { name: 'MODE', value: 'fast' },
    ],
  });
  await send('PUT', 'shop/secrets/KEY', { value });
  assert.deepEqual(getControl('shop').env, [{ name: 'MODE', value: 'fast' }]);
  const { outcome, body } = await send('PUT', 'shop/settings', { env: [{ name: 'KEY', value: 'open' }] });
  assert.equal(outcome, '422 setting-refused');
  assert.match(body.detail ?? '', /KEY is one of your secrets/);
});

test('settings that the app cannot have are refused with their reason', async () => {
  change('disk', { spec: { run: { volumes: [{ name: 'data', path: '/data', size: '1Gi' }] } } });
  change('parts', { spec: { components: [{ name: 'web' }] } });
  change('shop', {
    spec: {
      run: { env: [{ name: 'FIXED', value: '1' }], idleAfter: '5m', secrets: [{ name: 'KEY', secret: 'a', key: 'b' }] },
    },
  });
  const cases: readonly (readonly [string, object, RegExp])[] = [
    ['shop', { replicas: 4 }, /at most 3 on this installation/],
    ['disk', { replicas: 2 }, /at most 1 for an app with a volume/],
    ['parts', { healthPath: '/up' }, /healthPath of the component in moorage\.yaml/],
    ['shop', { env: [{ name: 'FIXED', value: '2' }] }, /The operator of this installation sets FIXED/],
    ['shop', { env: [{ name: 'KEY', value: '2' }] }, /The operator of this installation sets KEY/],
    ['shop', { idleAfter: '10m' }, /has set run\.idleAfter/],
  ];
  for (const [slug, body, detail] of cases) {
    const { outcome, body: problem } = await send('PUT', `${slug}/settings`, body);
    assert.equal(outcome, '422 setting-refused', JSON.stringify(body));
    assert.match(problem.detail ?? '', detail);
    assert.deepEqual(getControl(slug), {});
  }
  for (const body of [
    {},
    { suspended: true },
    { replicas: 21 },
    { replicas: 1.5 },
    { idleAfter: '1s' },
    { healthPath: 'x' },
    { env: [{ name: 'PORT', value: '1' }] },
    {
      env: [
        { name: 'A', value: '1' },
        { name: 'A', value: '2' },
      ],
    },
  ])
    assert.equal((await send('PUT', 'shop/settings', body)).outcome, '400 invalid-request', JSON.stringify(body));
  assert.equal((await send('PUT', 'disk/settings', { replicas: 1 })).outcome, '200');
});
