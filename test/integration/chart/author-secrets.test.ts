// What the API may store for authors, as a real API server with the chart's roles and admission policies enforces it.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { createControlWriter, createSecretCreator } from '../../../api/apps/author/control.ts';
import type { AuthorServices } from '../../../api/apps/author/endpoints.ts';
import { createSecretEndpoints } from '../../../api/apps/author/secrets.ts';
import { createSettingEndpoints } from '../../../api/apps/author/settings.ts';
import { createForgeTokens, forgeTokenSecret } from '../../../api/apps/commit-statuses/store.ts';
import { type App, hostedApps } from '../../../api/apps/hosted-apps.ts';
import { formatControlSecretName } from '../../../crds/control.ts';
import { secrets } from '../../../controller/objects/kinds.ts';
import type { Client, Manifest } from '../../../lib/kubernetes/index.ts';
import { createClientAs, findRefusal, startApiServer, type ApiServer } from '../../support/kubernetes/api-server.ts';
import { addGatewayTypes, install, required } from '../../support/chart.ts';

const namespace = 'moorage-apps';
const merge = { type: 'application/merge-patch+json' };
let server: ApiServer;
let admin: Client;
let api: Client;
let operator: Client;

beforeAll(async () => {
  server = await startApiServer();
  const account = (name: string): string => `system:serviceaccount:moorage-system:moorage-${name}`;
  [admin, api, operator] = await Promise.all([
    createClientAs(server),
    createClientAs(server, account('api')),
    createClientAs(server, account('operator')),
  ]);
  await addGatewayTypes(server);
  await install(server, required);
  const isEnforced = async (): Promise<boolean> =>
    /a Secret that the API creates/.test((await findRefusal(api, secrets, createSecret({ labels: {} }))) ?? '');
  for (let tries = 0; !(await isEnforced()); tries += 1) {
    assert.ok(tries < 300, 'the admission policies were not enforced');
    await sleep(100);
  }
});
afterAll(async () => {
  for (const client of [admin, api, operator]) client.close();
  await server.stop();
});

/** A Secret that the API may create, with these changes. */
function createSecret(metadata: object = {}, fields: object = {}): Manifest {
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      name: `shop-set-${'a'.repeat(20)}`,
      namespace,
      labels: {
        'moorage.dev/app': 'shop',
        'app.kubernetes.io/component': 'author-secret',
        'app.kubernetes.io/part-of': 'moorage',
        'app.kubernetes.io/managed-by': 'moorage',
      },
      ownerReferences: [createOwner()],
      ...metadata,
    },
    type: 'Opaque',
    immutable: true,
    stringData: { value: 'x' },
    ...fields,
  };
}

function createOwner(fields: object = {}): NonNullable<Manifest['metadata']['ownerReferences']>[number] {
  const owner = { apiVersion: 'moorage.dev/v1alpha1', kind: 'HostedApp', name: 'shop', uid: 'uid', controller: true };
  return { ...owner, ...fields };
}

async function createApp(name: string, spec: object = {}): Promise<App> {
  return admin.create(hostedApps, {
    apiVersion: 'moorage.dev/v1alpha1',
    kind: 'HostedApp',
    metadata: { name, namespace },
    spec: { source: { repo: `https://github.com/owner/${name}` }, ...spec },
  });
}

const answer = z.looseObject({ version: z.int().optional() });

/** Calls an endpoint of the API as the author of an app, with the rights of the API's account. */
async function call(operation: string, app: App, params: object, body?: unknown): Promise<z.output<typeof answer>> {
  const services = {
    access: { act: (_slug: string, _context: unknown, _name: unknown, work: (by: object) => unknown) => work({ app }) },
    writeControl: createControlWriter({ client: api, apps: { waitForApp: () => Promise.resolve() } }),
    createSecret: createSecretCreator(api),
    maximumReplicas: 3,
  } as unknown as AuthorServices;
  const endpoints = [...createSecretEndpoints(services), ...createSettingEndpoints(services)];
  const endpoint = endpoints.find((each) => each.operation === operation);
  assert.ok(endpoint !== undefined);
  const raw = { params: { slug: app.metadata.name, ...params }, query: {}, body };
  return answer.parse(await endpoint.call(raw, {} as never));
}

test('the API stores a value that it cannot read again, and the operator deletes it', async () => {
  const app = await createApp('stored');
  assert.equal((await call('setSecret', app, { name: 'KEY' }, { value: 'one' })).version, 1);
  const ref = { name: formatControlSecretName(app.metadata, 1), namespace };
  const { data, immutable } = (await admin.get(secrets, ref)) ?? assert.fail('it was not stored');
  assert.deepEqual([data, immutable], [{ value: Buffer.from('one').toString('base64') }, true]);
  await assert.rejects(api.get(secrets, ref), /forbidden/);
  await assert.rejects(api.delete(secrets, ref), /forbidden/);
  await assert.rejects(api.patch(secrets, ref, { stringData: { value: 'two' } }, merge), /forbidden/);
  await assert.rejects(api.list(secrets, { namespace }), /forbidden/);
  const { spec } = (await admin.get(hostedApps, app.metadata)) ?? assert.fail();
  assert.deepEqual(spec.control, { secrets: [{ name: 'KEY', version: 1 }], secretVersion: 1 });
  assert.ok(!JSON.stringify(spec).includes('one'));
  assert.ok(await operator.delete(secrets, ref));
});

test('parallel changes of one app end in versions that exist', async () => {
  const app = await createApp('parallel');
  await Promise.all(
    ['A', 'A', 'B', 'B'].map(async (name, index) => call('setSecret', app, { name }, { value: `value-${index}` })),
  );
  const { spec } = (await admin.get(hostedApps, app.metadata)) ?? assert.fail();
  const { secrets: set = [] } = spec.control ?? {};
  assert.deepEqual(set.map(({ name }) => name).sort(), ['A', 'B']);
  for (const { version } of set)
    assert.ok(await admin.get(secrets, { name: formatControlSecretName(app.metadata, version), namespace }));
});

test('the API creates such a Secret', async () => {
  assert.equal(await findRefusal(api, secrets, createSecret()), undefined);
});

const labels = createSecret().metadata.labels ?? {};
const refused: readonly (readonly [what: string, metadata: object, fields: object, why: RegExp])[] = [
  ['in the namespace of the release', { namespace: 'moorage-system' }, {}, /forbidden/],
  ['in the namespace of builds', { namespace: 'moorage-builds' }, {}, /forbidden/],
  ['with the name of a generated secret', { name: `shop-secret-${'a'.repeat(20)}` }, {}, /the name of a Secret/],
  ['with the name of access to models', { name: 'shop-models-aaaaaaaa' }, {}, /the name of a Secret/],
  ['with the name of another app', { name: `shop2-set-${'a'.repeat(20)}` }, {}, /the name of a Secret/],
  ['with a longer name', { name: `shop-set-x-set-${'a'.repeat(20)}` }, {}, /the name of a Secret/],
  ['with digits that are none', { name: `shop-set-${'g'.repeat(20)}` }, {}, /the name of a Secret/],
  ['of no app', { name: `-set-${'a'.repeat(20)}`, labels: { ...labels, 'moorage.dev/app': '' } }, {}, /owner|name/],
  ['without labels', { labels: {} }, {}, /labels of an author's secret|name/],
  ['with another component', { labels: { ...labels, 'app.kubernetes.io/component': 'models' } }, {}, /has the labels/],
  ['with one more label', { labels: { ...labels, 'moorage.dev/data': 'x' } }, {}, /has the labels/],
  ['of a service account', {}, { type: 'kubernetes.io/service-account-token' }, /of type Opaque|annotation/],
  ['of TLS', {}, { type: 'kubernetes.io/tls' }, /of type Opaque|tls/],
  ['that can be changed', {}, { immutable: false }, /is immutable/],
  ['without owner', { ownerReferences: [] }, {}, /the only owner/],
  [
    'with two owners',
    { ownerReferences: [createOwner(), createOwner({ uid: 'b', controller: false })] },
    {},
    /only owner/,
  ],
  ['that another app owns', { ownerReferences: [createOwner({ name: 'other' })] }, {}, /the only owner/],
  ['that a pod owns', { ownerReferences: [createOwner({ apiVersion: 'v1', kind: 'Pod' })] }, {}, /the only owner/],
  ['with annotations', { annotations: { 'a.example/b': 'c' } }, {}, /has no annotations/],
  ['with a finalizer', { finalizers: ['example.org/never'] }, {}, /has no annotations/],
  ['with another key', {}, { stringData: { value: 'x', other: 'y' } }, /has the key value/],
  ['without a key', {}, { stringData: {} }, /has the key value/],
];
for (const [what, metadata, fields, why] of refused)
  test(`attack: the API cannot create a Secret ${what}`, async () => {
    assert.match((await findRefusal(api, secrets, createSecret(metadata, fields))) ?? 'it was taken', why);
  });

/** How the API server answers when the API patches the spec of an app. */
async function patchSpec(app: App, spec: object): Promise<string | undefined> {
  return api.patch(hostedApps, app.metadata, { spec }, merge).then(
    () => undefined,
    (error: unknown) => String(error),
  );
}

test('the API changes control and no other section', async () => {
  const app = await createApp('changed');
  await call('changeSettings', app, {}, { replicas: 3, env: [{ name: 'MODE', value: 'fast' }], idleAfter: '15m' });
  const { spec } = (await admin.get(hostedApps, app.metadata)) ?? assert.fail();
  assert.deepEqual(spec.control, { replicas: 3, env: [{ name: 'MODE', value: 'fast' }], idleAfter: '15m' });
  for (const other of [{ run: { replicas: 2 } }, { run: { secrets: [{ name: 'A', secret: 'b', key: 'c' }] } }])
    assert.match((await patchSpec(app, { control: {}, ...other })) ?? '', /not change the rest of its spec/);
});

test('attack: the API cannot give an app more replicas, nor use a version of a secret twice', async () => {
  const app = await createApp('greedy', {
    control: { replicas: 4, secrets: [{ name: 'A', version: 5 }], secretVersion: 7 },
  });
  assert.equal(await patchSpec(app, { control: { suspended: true } }), undefined, 'a limit that was lowered');
  const rejections: readonly (readonly [object, RegExp])[] = [
    [{ replicas: 5 }, /at most 3 replicas/],
    [{ secretVersion: 6 }, /only increases/],
    [{ secretVersion: null }, /only increases/],
    [{ secretVersion: 108 }, /by at most 100/],
    [{ secrets: [{ name: 'A', version: 6 }] }, /is a new one/],
    [{ secrets: [{ name: 'B', version: 5 }] }, /is a new one/],
    [{ secrets: [{ name: 'A', version: 8 }] }, /is a new one/],
    [{ secrets: [{ name: 'PORT', version: 8 }], secretVersion: 8 }, /PORT is set by the platform/],
  ];
  for (const [control, why] of rejections)
    assert.match((await patchSpec(app, { control })) ?? 'it was taken', why, JSON.stringify(control));
  for (const control of [{ replicas: 3 }, { secrets: [{ name: 'A', version: 8 }], secretVersion: 8 }, { secrets: [] }])
    assert.equal(await patchSpec(app, { control }), undefined, JSON.stringify(control));
});

test('the API keeps forge tokens in one Secret of the release, and a purge undoes no change that was made meanwhile', async () => {
  const tokens = createForgeTokens(api, 'moorage-system');
  const [one, other] = ['one', 'other'].map((token) => ({ version: randomUUID(), token }));
  assert.ok(one !== undefined && other !== undefined);
  assert.equal((await tokens.read()).size, 0);
  await Promise.all([tokens.write('uid-one', one), tokens.write('uid-other', other)]);
  assert.deepEqual(Object.fromEntries(await tokens.read()), { 'uid-one': one, 'uid-other': other });
  // An upgrade of the chart keeps them.
  await install(server, required);
  assert.equal((await tokens.read()).size, 2);
  const change = async (): Promise<ReadonlySet<string>> => {
    await tokens.write('uid-new', one);
    return new Set(['uid-other']);
  };
  await assert.rejects(tokens.removeUnknown(change), /refused to read or store forge tokens/);
  assert.equal(await tokens.removeUnknown(() => Promise.resolve(new Set(['uid-other', 'uid-new']))), 1);
  await tokens.write('uid-other', undefined);
  assert.deepEqual(Object.fromEntries(await tokens.read()), { 'uid-new': one });
});

test('attack: the API reads and changes no other Secret of the release, and others do not read forge tokens', async () => {
  const ref = { name: forgeTokenSecret, namespace: 'moorage-system' };
  const others = { ...ref, name: 'moorage-caller-salt' };
  await assert.rejects(api.get(secrets, others), /forbidden/);
  await assert.rejects(api.patch(secrets, others, { data: { salt: 'eA==' } }, merge), /forbidden/);
  await assert.rejects(api.list(secrets, { namespace: 'moorage-system' }), /forbidden/);
  await assert.rejects(api.delete(secrets, ref), /forbidden/);
  const elsewhere = { apiVersion: 'v1', kind: 'Secret', metadata: { ...ref, namespace } };
  assert.match((await findRefusal(api, secrets, elsewhere)) ?? 'it was taken', /a Secret that the API creates/);
  await assert.rejects(operator.get(secrets, ref), /forbidden/);
  const app = await createClientAs(server, `system:serviceaccount:${namespace}:default`);
  await assert.rejects(app.get(secrets, ref), /forbidden/);
  app.close();
});
