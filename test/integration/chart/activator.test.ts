// What a hostile hand that has taken over the activator finds around it, and what it may write: one annotation.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { environment } from '../../../activator/config.ts';
import { readConfig } from '../../../lib/config.ts';
import {
  addGatewayTypes,
  readEnvironment,
  install,
  runKubectl,
  findNamed,
  selectKind,
  readPodSpec,
  render,
  required,
} from '../../support/chart.ts';
import { startApiServer, type ApiServer } from '../../support/kubernetes/api-server.ts';

let server: ApiServer;
const app = {
  apiVersion: 'moorage.dev/v1alpha1',
  kind: 'HostedApp',
  metadata: { name: 'hello', namespace: 'moorage-apps', annotations: { own: 'kept' }, labels: { own: 'kept' } },
  spec: { source: { repo: 'https://github.com/owner/hello' } },
};
const asActivator = '--as=system:serviceaccount:moorage-system:moorage-activator';

beforeAll(async () => {
  server = await startApiServer();
  await addGatewayTypes(server);
  await install(server, required);
  await runKubectl(server, [app], 'create');
  for (let tries = 0; tries < 300; tries += 1) {
    if ((await refusal({ metadata: { labels: { own: 'other' } } })) !== undefined) return;
    await sleep(100);
  }
});
afterAll(() => server.stop());

/** What the API server says to a change of the app by the activator; nothing when it takes it. */
async function refusal(change: object, ...flags: string[]): Promise<string | undefined> {
  try {
    const patch = ['patch', 'happ', 'hello', '-n', 'moorage-apps', '--type=merge', '-p', JSON.stringify(change)];
    await server.kubectl(...patch, '--dry-run=server', asActivator, ...flags);
    return undefined;
  } catch (error) {
    return String(error);
  }
}

test('the activator may write the annotation that wakes an app', async () => {
  assert.equal(await refusal({ metadata: { annotations: { 'moorage.dev/wake': '12' } } }), undefined);
});

test('the activator may write nothing else of an app', async () => {
  const only = /may write only the annotation moorage\.dev\/wake/;
  const nothing = /change nothing else of it/;
  for (const [change, said] of [
    [{ metadata: { annotations: { 'moorage.dev/wake': 'now' } } }, only],
    [{ metadata: { annotations: { 'moorage.dev/rebuild': '1' } } }, only],
    [{ metadata: { annotations: { own: 'other' } } }, only],
    [{ metadata: { annotations: { own: null } } }, only],
    [{ metadata: { labels: { own: 'other' } } }, nothing],
    [{ metadata: { finalizers: ['example.org/x'] } }, nothing],
    [{ spec: { suspend: true } }, nothing],
    [{ spec: { run: { idleAfter: 'never' } } }, nothing],
  ] as const)
    assert.match((await refusal(change)) ?? 'taken', said, JSON.stringify(change));
  assert.match((await refusal({ status: { url: 'https://x' } }, '--subresource=status')) ?? 'taken', /forbidden/i);
});

test('the activator may read apps and their pods, and no Secrets and nothing in other namespaces', async () => {
  const may = async (...words: string[]): Promise<boolean> =>
    (await server.kubectl('auth', 'can-i', ...words, asActivator).catch(String)).trim() === 'yes';
  assert.ok(await may('watch', 'pods', '-n', 'moorage-apps'));
  for (const words of [
    ['get', 'secrets', '-n', 'moorage-apps'],
    ['create', 'pods', '-n', 'moorage-apps'],
    ['delete', 'hostedapps.moorage.dev', '-n', 'moorage-apps'],
    ['create', 'pods/exec', '-n', 'moorage-apps'],
    ['patch', 'deployments.apps', '-n', 'moorage-apps'],
    ['list', 'pods', '-n', 'moorage-builds'],
    ['get', 'secrets', '-n', 'moorage-system'],
    ['list', 'hostedapps.moorage.dev', '--all-namespaces'],
  ])
    assert.equal(await may(...words), false, words.join(' '));
});

test('sets exactly the environment that it reads, mounts one harmless Secret, and lets only gateway, API and operator reach it', async () => {
  const objects = await render({ ...required, externalPort: 8443 });
  const spec = readPodSpec(findNamed(objects, 'Deployment', 'moorage-activator'));
  // By it the activator knows looks of the platform; who has it can use an app without waking it.
  const secrets = [...JSON.stringify(spec).matchAll(/"secretKeyRef":\{[^}]*"name":"([^"]+)"/g)].map(([, name]) => name);
  assert.deepEqual(secrets, ['moorage-probe-token']);
  assert.doesNotMatch(JSON.stringify(spec), /configMap|envFrom/);
  const variables = readEnvironment(objects, 'activator');
  assert.match(readConfig(environment, variables).MOORAGE_BASE_URL, /^https:\/\/[^/]+:8443$/);
  const ports = z.looseObject({
    spec: z.looseObject({
      ingress: z.array(z.looseObject({ ports: z.array(z.looseObject({ port: z.int() })) })),
      egress: z.array(z.looseObject({})),
    }),
  });
  const policy = ports.parse(findNamed(objects, 'NetworkPolicy', 'moorage-activator')).spec;
  assert.deepEqual(
    policy.ingress.map((rule) => rule.ports.map(({ port }) => port)),
    [[8080], [8082]],
  );
  assert.equal(policy.egress.length, 2);
});

test('renders nothing of it without replicas, and configures the operator accordingly', async () => {
  const objects = await render({ ...required, activator: { replicas: 0 } });
  const kinds = ['Deployment', 'Service', 'ReferenceGrant', 'Role', 'NetworkPolicy'].flatMap((kind) =>
    selectKind(objects, kind).filter(({ metadata }) => metadata.name.startsWith('moorage-activator')),
  );
  assert.deepEqual(kinds, []);
  assert.equal(readEnvironment(objects, 'operator')['MOORAGE_ACTIVATOR'], 'false');
});
