// What the chart allows for private repositories, as a real API server enforces it: who stores and reads deploy keys, which
// container gets one, who closes a source, and who reaches git servers over SSH.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { type App, hostedApps } from '../../../api/apps/hosted-apps.ts';
import { pods, secrets } from '../../../controller/objects/kinds.ts';
import { labels } from '../../../crds/names.ts';
import type { Client } from '../../../lib/kubernetes/index.ts';
import {
  addGatewayTypes,
  findNamed,
  install,
  readEnvironment,
  render,
  required,
  selectKind,
  type Rendered,
} from '../../support/chart.ts';
import { createClientAs, findRefusal, startApiServer, type ApiServer } from '../../support/kubernetes/api-server.ts';
import { createNamedPod, type Fields, pipelinePod } from '../../support/kubernetes/sandbox-pods.ts';

const namespace = 'moorage-apps';
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
    /a pipeline is given no Secret/.test((await findPodRefusal({ build: readKey('any') })) ?? '');
  for (let tries = 0; !(await isEnforced()); tries += 1) {
    assert.ok(tries < 300, 'the admission policies were not enforced');
    await sleep(100);
  }
});
afterAll(async () => {
  for (const client of [admin, api, operator]) client.close();
  await server.stop();
});

const readKey = (name: string): Fields => ({
  env: [{ name: 'MOORAGE_DEPLOY_KEY', valueFrom: { secretKeyRef: { name, key: 'key' } } }],
});

/** Why a pipeline whose containers have these changes is refused; undefined if it is accepted. */
async function findPodRefusal(changes: Parameters<typeof pipelinePod>[0]): Promise<string | undefined> {
  return findRefusal(admin, pods, createNamedPod('moorage-builds', 'offered', pipelinePod(changes)));
}

test('only the clone of a pipeline reads a deploy key, and no other Secret', async () => {
  const name = 'hello-abc-deploy-key';
  assert.equal(await findPodRefusal({ clone: readKey(name) }), undefined);
  const other = { env: [{ name: 'OTHER', valueFrom: { secretKeyRef: { name, key: 'key' } } }] };
  const each: readonly Parameters<typeof pipelinePod>[0][] = [
    { build: readKey(name) },
    { clone: readKey('moorage-registry') },
    { clone: other },
    { clone: { envFrom: [{ secretRef: { name } }] } },
    { pod: { volumes: [{ name: 'key', secret: { secretName: name } }] } },
  ];
  for (const refused of each)
    assert.match((await findPodRefusal(refused)) ?? 'it was taken', /a pipeline is given no Secret/);
});

async function createApp(name: string): Promise<App> {
  return admin.create(hostedApps, {
    apiVersion: 'moorage.dev/v1alpha1',
    kind: 'HostedApp',
    metadata: { name, namespace },
    spec: { source: { repo: `https://github.com/owner/${name}` } },
  });
}

/** How the API server answers when the API patches the spec of an app. */
async function patchSpec(app: App, spec: object): Promise<string | undefined> {
  return api
    .patch(hostedApps, app.metadata, { spec }, { type: 'application/merge-patch+json' })
    .then(() => undefined, String);
}

test('the API marks the repository of an app as private, and nothing opens it again', async () => {
  const app = await createApp('closed');
  const { source } = app.spec;
  assert.match((await patchSpec(app, { source: { ...source, revision: 'evil' } })) ?? '', /not change the rest/);
  assert.match((await patchSpec(app, { source: { private: true, revision: 'evil' } })) ?? '', /not change the rest/);
  assert.match((await patchSpec(app, { source: { private: true, interval: '1h' } })) ?? '', /not change the rest/);
  assert.equal(await patchSpec(app, { source: { private: true } }), undefined);
  assert.equal(await patchSpec(app, { control: { suspended: true } }), undefined, 'control of a private app');
  for (const opened of [false, null])
    assert.match((await patchSpec(app, { source: { private: opened } })) ?? 'it was taken', /not change the rest/);
});

test('the operator stores deploy keys for pipelines, which nobody reads through it', async () => {
  const secret = {
    ...{ apiVersion: 'v1', kind: 'Secret', type: 'Opaque', immutable: true, stringData: { key: 'x' } },
    metadata: { name: 'hello-abc-deploy-key', namespace: 'moorage-builds' },
  };
  assert.equal(await findRefusal(operator, secrets, secret), undefined);
  await operator.create(secrets, secret);
  for (const client of [operator, api]) {
    await assert.rejects(client.get(secrets, secret.metadata), /forbidden/);
    await assert.rejects(client.list(secrets, { namespace: 'moorage-builds' }), /forbidden/);
    await assert.rejects(client.delete(secrets, secret.metadata), /forbidden/);
  }
  assert.match((await findRefusal(api, secrets, secret)) ?? 'it was taken', /forbidden/);
  const app = await createClientAs(server, `system:serviceaccount:${namespace}:default`);
  await assert.rejects(app.get(secrets, secret.metadata), /forbidden/);
  const master = { name: 'moorage-deploy-keys', namespace: 'moorage-system' };
  for (const client of [operator, api, app]) await assert.rejects(client.get(secrets, master), /forbidden/);
  app.close();
});

const policy = z.looseObject({
  metadata: z.looseObject({ name: z.string() }),
  spec: z.looseObject({ podSelector: z.unknown(), egress: z.array(z.unknown()).optional() }),
});

test('lets the operator and builds of private repositories reach git servers over SSH, and nobody else', async () => {
  const byDefault = await render(required);
  const readPolicies = (objects: readonly Rendered[]): z.output<typeof policy>[] =>
    selectKind(objects, 'NetworkPolicy').map((object) => policy.parse(object));
  const listOpen = (objects: readonly Rendered[], port: number): string[] =>
    readPolicies(objects)
      .filter(({ spec: { egress = [] } }) => JSON.stringify(egress).includes(`"port":${port}}`))
      .map(({ metadata }) => metadata.name);
  assert.deepEqual(listOpen(byDefault, 22).sort(), ['builds-ssh', 'moorage-operator']);
  const getPolicy = (objects: readonly Rendered[], name: string): z.output<typeof policy> =>
    policy.parse(findNamed(objects, 'NetworkPolicy', name));
  const ssh = getPolicy(byDefault, 'builds-ssh');
  assert.deepEqual(ssh.spec.podSelector, { matchLabels: { [labels.ssh]: 'true' } });
  const readClosed = ({ spec }: typeof ssh): unknown => /"except":\[[^\]]*\]/.exec(JSON.stringify(spec.egress))?.[0];
  assert.notEqual(readClosed(ssh), undefined);
  assert.equal(readClosed(ssh), readClosed(getPolicy(byDefault, 'builds')), 'the same addresses are closed');
  const only = await render({ ...required, git: { sshPorts: [2222], sshCidrs: ['192.0.2.0/24'] } });
  assert.deepEqual(listOpen(only, 22), []);
  assert.deepEqual(getPolicy(only, 'builds-ssh').spec.egress, [
    { to: [{ ipBlock: { cidr: '192.0.2.0/24' } }], ports: [{ protocol: 'TCP', port: 2222 }] },
  ]);
  const none = await render({ ...required, git: { sshPorts: [] } });
  assert.deepEqual(
    [listOpen(none, 22), readEnvironment(none, 'operator')['MOORAGE_DEPLOY_KEY_SECRET']],
    [[], undefined],
  );
  assert.equal(
    readPolicies(none).some(({ metadata }) => metadata.name === 'builds-ssh'),
    false,
  );
});
