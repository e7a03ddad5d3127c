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
import { hostedApps } from '../../../controller/objects/kinds.ts';
import type { Client } from '../../../lib/kubernetes/index.ts';
import { createClientAs, startApiServer, type ApiServer } from '../../support/kubernetes/api-server.ts';

let server: ApiServer;
let activator: Client;
const app = {
  apiVersion: 'moorage.dev/v1alpha1',
  kind: 'HostedApp',
  metadata: { name: 'hello', namespace: 'moorage-apps', annotations: { own: 'kept' }, labels: { own: 'kept' } },
  spec: { source: { repo: 'https://github.com/owner/hello' } },
};

beforeAll(async () => {
  server = await startApiServer();
  activator = await createClientAs(server, 'system:serviceaccount:moorage-system:moorage-activator');
  await addGatewayTypes(server);
  await install(server, required);
  await runKubectl(server, [app], 'create');
  for (let tries = 0; tries < 300; tries += 1) {
    if ((await refusal({ metadata: { labels: { own: 'other' } } })) !== undefined) return;
    await sleep(100);
  }
});
afterAll(async () => {
  activator.close();
  await server.stop();
});

/** What the API server says to a change of the app by the activator; nothing when it takes it. */
async function refusal(change: object, subresource?: string): Promise<string | undefined> {
  try {
    const options = { type: 'application/merge-patch+json', dryRun: true, subresource };
    await activator.patch(hostedApps, app.metadata, change, options);
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
  assert.match((await refusal({ status: { url: 'https://x' } }, 'status')) ?? 'taken', /forbidden/i);
});

test('the activator may read apps and their pods, and no Secrets and nothing in other namespaces', async () => {
  const path = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews';
  const answer = z.looseObject({ status: z.looseObject({ allowed: z.boolean() }) });
  const may = async (verb: string, what: string, namespace: string): Promise<boolean> => {
    const [resource, group] = what.split('@');
    const [plural, subresource] = resource?.split('/') ?? [];
    const spec = { resourceAttributes: { verb, group, resource: plural, subresource, namespace } };
    const body = { apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectAccessReview', spec };
    return answer.parse(await activator.request({ method: 'POST', path, body })).status.allowed;
  };
  assert.ok(await may('watch', 'pods', 'moorage-apps'));
  assert.ok(await may('watch', 'hostedapps@moorage.dev', 'moorage-apps'));
  const everywhere = '';
  const denied: readonly (readonly [string, string, string])[] = [
    ['get', 'secrets', 'moorage-apps'],
    ['create', 'pods', 'moorage-apps'],
    ['delete', 'hostedapps@moorage.dev', 'moorage-apps'],
    ['create', 'pods/exec', 'moorage-apps'],
    ['patch', 'deployments@apps', 'moorage-apps'],
    ['list', 'pods', 'moorage-builds'],
    ['get', 'secrets', 'moorage-system'],
    ['list', 'hostedapps@moorage.dev', everywhere],
  ];
  for (const right of denied) assert.equal(await may(...right), false, right.join(' '));
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
