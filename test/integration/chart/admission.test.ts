// What a hostile hand that may make pods, or that has taken over the API, is refused by a real API server.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { z } from 'zod';
import { listSpecFields, submittedFields } from '../../../crds/field-access.ts';
import { services, serviceTypes } from '../../../crds/backing-services.ts';
import { hostedApp } from '../../../crds/hosted-app.ts';
import { buildServiceDeployment } from '../../../controller/steps/deploy/services/objects.ts';
import { config } from '../../support/operator/scenario.ts';
import { hostedApps, pods } from '../../../controller/objects/kinds.ts';
import type { Client, Manifest } from '../../../lib/kubernetes/index.ts';
import { createClientAs, findRefusal, startApiServer, type ApiServer } from '../../support/kubernetes/api-server.ts';
import {
  addGatewayTypes,
  createChangedChart,
  findNamed,
  install,
  render,
  runKubectl,
  required,
} from '../../support/chart.ts';
import {
  appPod,
  container,
  limits,
  ordinary,
  pipelinePod,
  createNamedPod,
  type Fields,
  type Namespace,
} from '../../support/kubernetes/sandbox-pods.ts';

const metadata = {
  namespace: 'moorage-apps',
  uid: 'uid-1',
  generation: 1,
  resourceVersion: '1',
  creationTimestamp: '2026-01-01T00:00:00Z',
};
const podIn = z.looseObject({
  spec: z.looseObject({
    template: z.object({
      metadata: z.looseObject({ annotations: z.record(z.string(), z.string()) }),
      spec: z.looseObject({}),
    }),
  }),
});

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
  const newerTypes = createChangedChart('files/hostedapps.yaml', addUnknownFields);
  await install(server, { ...required, sandbox: { tolerationKeys: ['example.org/sandbox'] } }, newerTypes);
  const plain = { apiVersion: 'node.k8s.io/v1', kind: 'RuntimeClass', metadata: { name: 'plain' }, handler: 'runc' };
  await runKubectl(server, [plain], 'create');
  await until(async () => (await offered('moorage-apps', appPod({ hostUsers: true })))?.includes('hostUsers') === true);
});
afterAll(async () => {
  for (const client of [admin, api, operator]) client.close();
  await server.stop();
});

const crd = z.looseObject({
  spec: z.looseObject({
    versions: z.tuple([
      z.looseObject({
        schema: z.object({
          openAPIV3Schema: z.looseObject({
            properties: z.looseObject({
              spec: z.looseObject({
                properties: z.looseObject({ run: z.looseObject({ properties: z.looseObject({}) }) }),
              }),
            }),
          }),
        }),
      }),
    ]),
  }),
});

/** Adds fields to the CRD that the admission policy was not generated for: a text, a section, one in a section, one next to spec. */
function addUnknownFields(text: string): string {
  const definition = crd.parse(parse(text));
  const { properties } = definition.spec.versions[0].schema.openAPIV3Schema;
  const { spec } = properties;
  spec.properties.run.properties['unknown'] = { type: 'string' };
  spec.properties['unknown'] = { type: 'string' };
  spec.properties['unknownSection'] = { type: 'object', properties: { name: { type: 'string' } } };
  properties['unknown'] = { type: 'string' };
  return stringify(definition, { lineWidth: 0 });
}

/** The API server takes a moment to compile a new admission policy. */
async function until(holds: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 300; tries += 1) {
    if (await holds()) return;
    await sleep(100);
  }
  assert.fail('the admission policies were not enforced');
}

/** What the API server says to a pod: nothing when it takes it. Nothing is stored. */
async function offered(
  namespace: Namespace,
  spec: Fields,
  annotations?: Record<string, string>,
): Promise<string | undefined> {
  return findRefusal(admin, pods, createNamedPod(namespace, 'offered', spec, annotations));
}

const toleration = (key: string): Fields => ({ tolerations: [{ key, operator: 'Exists', effect: 'NoSchedule' }] });
const withApp = (changes: Fields): Fields => appPod({ containers: [container('app', changes)] });
const toMetadata = { httpGet: { host: '169.254.169.254', port: 80, path: '/latest/meta-data/' } };
const everywhere = { nodeSelectorTerms: [{ matchExpressions: [{ key: 'a', operator: 'DoesNotExist' }] }] };

const hostile: readonly (readonly [what: string, fields: Fields, fix: RegExp])[] = [
  ['a node', { nodeName: 'control-plane' }, /leave spec\.nodeName away/],
  ['another scheduler', { schedulerName: 'mine' }, /leave spec\.schedulerName away/],
  ['the priority of the platform', { priorityClassName: 'moorage-system' }, /leave spec\.priorityClassName/],
  ['the priority of the cluster', { priorityClassName: 'system-node-critical' }, /priorityClassName|priority class/],
  ['every taint', { tolerations: [{ operator: 'Exists' }] }, /leave spec\.tolerations away/],
  ['the taint of the control plane', toleration('node-role.kubernetes.io/control-plane'), /leave spec\.tolerations/],
  ['labels of a node', { nodeSelector: { 'node-role.kubernetes.io/control-plane': '' } }, /leave spec\.nodeSelector/],
  [
    'neighbours',
    { affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: everywhere } } },
    /spec\.affinity/,
  ],
  ['another runtime', { runtimeClassName: 'plain' }, /runs in the RuntimeClass of the installation/],
  ['an hour to end', { terminationGracePeriodSeconds: 3600 }, /lower spec\.terminationGracePeriodSeconds/],
  [
    'a kernel parameter',
    {
      securityContext: {
        seccompProfile: { type: 'RuntimeDefault' },
        sysctls: [{ name: 'net.ipv4.ip_unprivileged_port_start', value: '0' }],
      },
    },
    /leave securityContext\.sysctls away/,
  ],
  ['names of others', { hostAliases: [{ ip: '10.0.0.1', hostnames: ['github.com'] }] }, /leave hostAliases/],
  ['the name localhost', { hostAliases: [{ ip: '10.0.0.1', hostnames: ['localhost'] }] }, /leave hostAliases/],
  ['a name server of its own', { dnsPolicy: 'None', dnsConfig: { nameservers: ['203.0.113.1'] } }, /leave dnsConfig/],
  ['the names of the node', { dnsPolicy: 'Default' }, /dnsPolicy/],
  ['processes of its neighbours', { shareProcessNamespace: true }, /leave spec\.shareProcessNamespace away/],
  ['a device', { resourceClaims: [{ name: 'gpu', resourceClaimName: 'gpu' }] }, /leave resourceClaims/],
];
for (const [what, fields, fix] of hostile) {
  test(`rejects an app's pod that requests ${what}`, async () => {
    assert.match((await offered('moorage-apps', appPod(fields))) ?? 'it was taken', fix);
  });
  test(`rejects a pipeline that requests ${what}`, async () => {
    assert.match((await offered('moorage-builds', pipelinePod({ pod: fields }))) ?? 'it was taken', fix);
  });
}

const inContainer: readonly (readonly [what: string, fields: Fields, fix: RegExp])[] = [
  ['a GPU', { resources: { limits: { cpu: '1', memory: '1Gi', 'example.org/gpu': '1' } } }, /limits other than cpu/],
  ['a probe of the metadata service', { livenessProbe: toMetadata }, /leave their host away|host/],
  ['a hook that calls the metadata service', { lifecycle: { postStart: toMetadata } }, /leave their host away|host/],
  ['more privileges at exec', { securityContext: { ...ordinary, allowPrivilegeEscalation: true } }, /to false/],
  [
    'no AppArmor',
    { securityContext: { ...ordinary, appArmorProfile: { type: 'Unconfined' } } },
    /leave appArmorProfile away|PodSecurity/,
  ],
];
for (const [what, fields, fix] of inContainer) {
  test(`rejects a container with ${what}`, async () => {
    assert.match((await offered('moorage-apps', withApp(fields))) ?? 'it was taken', fix);
  });
  test(`rejects a clone with ${what}`, async () => {
    const { securityContext, ...rest } = fields;
    const plain = { seccompProfile: { type: 'RuntimeDefault' }, ...ordinary, ...(securityContext ?? {}) };
    // Only a sidecar may have probes and hooks before the others.
    const sidecar = 'lifecycle' in rest || 'livenessProbe' in rest ? { restartPolicy: 'Always' } : {};
    const clone = { ...rest, ...sidecar, securityContext: plain };
    assert.match((await offered('moorage-builds', pipelinePod({ clone }))) ?? 'it was taken', fix);
  });
}

test('rejects a mount with bidirectional propagation', async () => {
  const mounts = [{ name: 'data', mountPath: '/data', mountPropagation: 'HostToContainer' }];
  const spec = { ...withApp({ volumeMounts: mounts }), volumes: [{ name: 'data', emptyDir: {} }] };
  assert.match((await offered('moorage-apps', spec)) ?? 'it was taken', /leave mountPropagation away/);
});

for (const key of ['k8s.v1.cni.cncf.io/networks', 'io.katacontainers.config.hypervisor.path']) {
  test(`rejects a pod with the annotation ${key}`, async () => {
    assert.match((await offered('moorage-apps', appPod(), { [key]: 'x' })) ?? 'it was taken', /their annotations away/);
  });
}

test('rejects a pod whose annotation states more disk than its limit', async () => {
  const offeredWith = (limit: string, bytes: string): Promise<string | undefined> =>
    offered('moorage-apps', withApp({ resources: { limits: { ...limits, 'ephemeral-storage': limit } } }), {
      'moorage.dev/disk': bytes,
    });
  assert.equal(await offeredWith('16Mi', '16777216'), undefined);
  for (const bytes of ['1099511627776', '-1', '16Mi'])
    assert.match((await offeredWith('16Mi', bytes)) ?? 'it was taken', /make both the same/);
});

test('lets an app find its own services by name, but not a build', async () => {
  const hostAliases = [{ ip: '10.96.0.7', hostnames: ['db'] }];
  assert.equal(await offered('moorage-apps', appPod({ hostAliases })), undefined);
  assert.match((await offered('moorage-builds', pipelinePod({ pod: { hostAliases } }))) ?? '', /leave hostAliases/);
});

test('accepts the pod of each type of backing service', async () => {
  const images = Object.fromEntries(serviceTypes.map((type) => [type, 'example:1']));
  const app = hostedApp.parse({
    apiVersion: 'moorage.dev/v1alpha1',
    kind: 'HostedApp',
    metadata: { ...metadata, name: 'services' },
    spec: { source: { repo: 'https://github.com/owner/name' } },
  });
  const installation = { ...config, run: { ...config.run, services: { ...config.run.services, images } } };
  for (const type of serviceTypes) {
    const [service] = services.parse([{ name: 'it', type }]);
    assert.ok(service !== undefined);
    const made = buildServiceDeployment(app, service, installation, { image: 'example:1', replicas: 1 });
    const { spec, metadata: marks } = podIn.parse(made).spec.template;
    assert.equal(await offered('moorage-apps', spec, marks.annotations), undefined, type);
  }
});

test('accepts what the installation allows, and its own priorities', async () => {
  assert.equal(await offered('moorage-apps', appPod({ priorityClassName: 'moorage-apps' })), undefined);
  assert.equal(
    await offered('moorage-builds', pipelinePod({ pod: { priorityClassName: 'moorage-builds' } })),
    undefined,
  );
  assert.match((await offered('moorage-apps', appPod({ priorityClassName: 'moorage-builds' }))) ?? '', /priority/);
  assert.equal(await offered('moorage-apps', appPod(toleration('example.org/sandbox'))), undefined);
});

const merge = { type: 'application/merge-patch+json' };

test('rejects added tolerations on an existing pod', async () => {
  const pod = createNamedPod('moorage-apps', 'running', appPod());
  const { spec } = z
    .looseObject({ spec: z.looseObject({ tolerations: z.array(z.looseObject({})) }) })
    .parse(await admin.create(pods, pod));
  const tolerations = [...spec.tolerations, { operator: 'Exists' }];
  await assert.rejects(admin.patch(pods, pod.metadata, { spec: { tolerations } }, merge), /tolerations .* stay/);
  await admin.patch(pods, pod.metadata, { metadata: { annotations: { 'example.org/seen': 'yes' } } }, merge);
});

test('a compromised operator can delete no app except one that expires', async () => {
  const remove = (name: string): Promise<boolean> => operator.delete(hostedApps, { name, namespace: 'moorage-apps' });
  const mark = async (name: string, status: object): Promise<void> => {
    const ref = { name, namespace: 'moorage-apps' };
    await admin.patch(hostedApps, ref, { status }, { ...merge, subresource: 'status' });
  };
  const expiring = {
    conditions: [
      {
        type: 'Expiring',
        status: 'True',
        reason: 'NeverLive',
        message: '.',
        lastTransitionTime: '2026-01-01T00:00:00Z',
      },
    ],
  };
  const labels = { labels: { 'moorage.dev/caller': 'someone' } };
  const only = /and submitted apps that have never been live/;
  await admin.create(hostedApps, submitted('fresh', {}, labels));
  await assert.rejects(remove('fresh'), only);
  await mark('fresh', { ...expiring, url: 'https://fresh.example.org/' });
  await assert.rejects(remove('fresh'), only);
  await admin.create(hostedApps, submitted('by-hand'));
  await mark('by-hand', expiring);
  await assert.rejects(remove('by-hand'), only);
  await admin.create(hostedApps, submitted('expired', {}, labels));
  await mark('expired', expiring);
  assert.ok(await remove('expired'));
});

const source = { repo: 'https://github.com/owner/name' };
const submitted = (name: string, spec: object = {}, metadata: object = {}): Manifest => ({
  apiVersion: 'moorage.dev/v1alpha1',
  kind: 'HostedApp',
  metadata: { name, namespace: 'moorage-apps', ...metadata },
  spec: { source, ...spec },
});
const noOwner = {
  ownerReferences: [
    { apiVersion: 'v1', kind: 'ConfigMap', name: 'never-was', uid: '00000000-0000-0000-0000-000000000000' },
  ],
};

async function changed(name: string, change: object): Promise<void> {
  await api.patch(hostedApps, { name, namespace: 'moorage-apps' }, change, merge);
}
const patched = (name: string, metadata: object): Promise<void> => changed(name, { metadata });

test('a compromised API cannot have an app garbage-collected through an owner that does not exist', async () => {
  await api.create(hostedApps, submitted('kept'));
  await assert.rejects(patched('kept', noOwner), /not change its ownerReferences/);
  await assert.rejects(api.create(hostedApps, submitted('born', {}, noOwner)), /not change its ownerReferences/);
});

test('a compromised API cannot hold an app forever, nor release one whose pipelines run', async () => {
  const finalizers = { finalizers: ['moorage.dev/pipelines'] };
  await admin.create(hostedApps, submitted('held', {}, finalizers));
  await assert.rejects(patched('held', { finalizers: null }), /not change its finalizers/);
  await assert.rejects(patched('held', { finalizers: ['example.org/never'] }), /not change its finalizers/);
  await assert.rejects(
    api.create(hostedApps, submitted('stuck', {}, { finalizers: ['example.org/never'] })),
    /not change its finalizers/,
  );
});

test('lets the API write only the two annotations that request a check and a build', async () => {
  const kept = { annotations: { 'example.org/owner': 'ops' } };
  await admin.create(hostedApps, submitted('noted', {}, kept));
  const time = '2026-11-22T05:47:26.000Z';
  await patched('noted', { annotations: { 'moorage.dev/poll': time, 'moorage.dev/rebuild': time } });
  const only = /may write only the annotations moorage\.dev\/poll and moorage\.dev\/rebuild/;
  for (const annotations of [
    { 'example.org/owner': 'me' },
    { 'example.org/owner': null },
    { 'kubectl.kubernetes.io/last-applied-configuration': '{}' },
    { 'moorage.dev/rebuild': 'x'.repeat(10_000) },
  ])
    await assert.rejects(patched('noted', { annotations }), only);
  await assert.rejects(api.create(hostedApps, submitted('born-noted', {}, kept)), only);
});

for (const [what, spec, field] of [
  ['all of the revenue', { author: { share: '1' } }, 'author.share'],
  ['a contact that counts', { author: { contact: 'a@example.org' } }, 'author.contact'],
  ['a description that counts', { listing: { description: 'It does.' } }, 'listing.description'],
  ['twenty replicas', { run: { replicas: 20 } }, 'run.replicas'],
  ['a volume', { run: { volumes: [{ name: 'data', path: '/data', size: '1Ti' }] } }, 'run.volumes'],
  ['more memory', { run: { resources: { memory: '256Gi' } } }, 'run.resources'],
  ['more CPU for the build', { build: { resources: { cpu: '64' } } }, 'build.resources'],
  ['two hours for the build', { build: { timeout: '2h' } }, 'build.timeout'],
  ['a poll every 30 s', { source: { ...source, interval: '30s' } }, 'source.interval'],
  ['free visits', { metering: { free: [{ path: '/**' }] } }, 'metering.free'],
  ['an empty list of services', { services: [] }, 'services'],
  ['components', { components: [{ name: 'web' }] }, 'components'],
  ['a field that the policy does not know', { unknown: 'x' }, 'unknown'],
  ['a section that it does not know', { unknownSection: { name: 'x' } }, 'unknownSection'],
  ['an empty section that it does not know', { unknownSection: {} }, 'unknownSection'],
  ['a field that it does not know in a section', { run: { unknown: 'x' } }, 'run.unknown'],
] as const) {
  test(`rejects ${what} in an app that the API submits`, async () => {
    const refusal = await listRefusedFields(spec);
    assert.deepEqual(refusal, [field]);
  });
}

/** The fields that the API server names when the API submits an app with this spec. */
async function listRefusedFields(spec: object, name = 'greedy'): Promise<string[]> {
  const refusal = await api.create(hostedApps, submitted(name, spec)).then(
    () => 'it was taken',
    (error: unknown) => String(error),
  );
  const named =
    / only spec\.source\.repo, spec\.source\.private, spec\.submission\.contact, spec\.submission\.note; set (?<fields>.*) with kubectl/;
  const fields = named.exec(refusal)?.groups?.['fields'];
  assert.ok(fields !== undefined, refusal);
  return fields.split(', ').map((field) => field.replace(/^spec\./, ''));
}

/** Every field, with a value that is not its default. */
const everyField = {
  source: { ...source, revision: 'main', path: 'app', interval: '10m' },
  build: {
    ...{ strategy: 'node', dockerfile: 'Other', target: 'web', timeout: '1m', resources: { cpu: '1' } },
    ...{ args: [{ name: 'A', value: '1' }], env: [{ name: 'B', value: '1' }] },
  },
  review: { waivers: [{ rule: 'license/missing', reason: 'Because.' }] },
  run: {
    ...{ port: 3000, command: ['serve'], env: [{ name: 'A', value: '1' }], healthPath: '/', replicas: 0 },
    ...{ secrets: [{ name: 'KEY', secret: 'keys', key: 'one' }], volumes: [{ name: 'data', path: '/data' }] },
    ...{ resources: { memory: '16Mi' }, startupTime: '10s', idleAfter: '10s', idle: 'nap' },
  },
  services: [{ name: 'db', type: 'postgres' }],
  tasks: [{ name: 'clean', command: ['true'] }],
  models: { enabled: true, dailyBudgetUsd: '2' },
  agents: { enabled: true, openapi: '/a', mcp: '/b' },
  mcp: { transport: 'sse', command: ['a'] },
  metering: { free: [{ path: '/healthz' }] },
  listing: { title: 'A', description: 'B', category: 'chat', upstream: 'https://example.org/' },
  author: { contact: 'a@example.org', share: '0.5' },
  submission: { contact: 'a@example.org', note: 'It does.' },
  control: {
    ...{ suspended: true, restartedAt: '2026-01-01T00:00:00Z', release: 'a'.repeat(40), replicas: 2, idleAfter: '10s' },
    ...{ deleteAfter: '2026-01-01T00:00:00Z', healthPath: '/', env: [{ name: 'A', value: '1' }], secretVersion: 1 },
    ...{ secrets: [{ name: 'KEY', version: 1 }], access: 'password' },
    accessPassword: `scrypt-1:${'a'.repeat(22)}:${'b'.repeat(43)}`,
    accessKeys: [{ name: 'team', hash: 'a'.repeat(64), createdAt: '2026-01-01T00:00:00Z' }],
    runs: [{ id: 'run-a-1', task: 'clean', timeoutSeconds: 60, requestedAt: '2026-01-01T00:00:00Z' }],
    domains: [{ name: 'shop.example.com', addedAt: '2026-01-01T00:00:00Z' }],
    slug: 'shop',
    formerSlugs: [{ name: 'store', until: '2026-01-01T00:00:00Z' }],
  },
  previews: { pullRequests: true, branches: ['next'], limit: 2 },
  deletionPolicy: 'Retain',
  suspend: true,
};

test('attack: rejects every field that the API does not set itself', async () => {
  const fields = new Set(listSpecFields().map((path) => path.split('.').slice(0, 2).join('.')));
  // An app sets either components or the fields of one process, so the table above has no components. A preview cannot have most
  // of the others.
  const preview = {
    ...{ source: { ...source, revision: 'a'.repeat(40) }, previewOf: { app: 'a', reference: 'refs/pull/1/head' } },
    ...{ models: { enabled: false, dailyBudgetUsd: '0' }, agents: { enabled: false }, author: { share: '0' } },
  };
  const ofPreviews = (await listRefusedFields(preview, 'a--pr-1')).filter((field) => field.startsWith('previewOf'));
  const expected = [...fields].filter((field) => !submittedFields.includes(field) && field !== 'components');
  assert.ok(expected.length > 35, String(expected.length));
  assert.deepEqual([...(await listRefusedFields(everyField)), ...ofPreviews].sort(), expected.sort());
});

test('attack: rejects a field that the policy does not know, and every field, in an app that exists', async () => {
  await api.create(hostedApps, submitted('changed'));
  for (const spec of [everyField, { unknown: 'x' }, { run: { unknown: 'x' } }, { unknownSection: {} }])
    await assert.rejects(changed('changed', { spec }), /not change the rest of its spec/);
});

test('attack: rejects a field next to the spec, also in an app that exists', async () => {
  const only = /only the metadata and the spec of a new app, and annotate an existing one/;
  const withField = { ...submitted('extended'), unknown: 'x' };
  await assert.rejects(api.create(hostedApps, withField), only);
  await admin.create(hostedApps, withField);
  await assert.rejects(changed('extended', { unknown: 'y' }), only);
  await assert.rejects(changed('extended', { unknown: null }), only);
  await patched('extended', { annotations: { 'moorage.dev/poll': 'now' } });
});

test('does not run out of its CEL budget on the largest app that it admits', async () => {
  const labels = { 'moorage.dev/repository': 'a', 'moorage.dev/caller': 'b', 'moorage.dev/network': 'c' };
  const spec = { submission: { contact: 'c'.repeat(200), note: 'n'.repeat(500) } };
  await api.create(hostedApps, submitted('largest', spec, { labels }));
  const text = (name: string): object => ({ name, value: 'x'.repeat(8_000) });
  const env = Array.from({ length: 100 }, (_, index) => text(`V_${index}`));
  await admin.create(hostedApps, submitted('larger', { run: { env } }, { labels }));
  await patched('larger', { annotations: { 'moorage.dev/poll': 'now' } });
});

test('accepts only the counting labels in an app that the API submits', async () => {
  await assert.rejects(
    api.create(hostedApps, submitted('greedy', {}, { labels: { 'example.org/any': 'x' } })),
    /not change its labels/,
  );
  const labels = { 'moorage.dev/repository': 'a', 'moorage.dev/caller': 'b', 'moorage.dev/network': 'c' };
  const said = { submission: { contact: 'a@example.org', note: 'It does.' } };
  await api.create(hostedApps, submitted('modest', said, { labels }));
});

// Replaces the policy, so this test is the last.
test('lets the API give a new app the budget for models of the installation, and no other', async () => {
  const policy = findNamed(
    await render({ ...required, submissions: { modelsUsd: '0.25' } }),
    'ValidatingAdmissionPolicy',
    'moorage-api',
  );
  await runKubectl(server, [policy], 'apply', '--server-side', '--force-conflicts');
  const offer = (models: object): Promise<string | undefined> =>
    findRefusal(api, hostedApps, submitted('spender', { models }));
  await until(async () => (await offer({ enabled: true, dailyBudgetUsd: '0.25' })) === undefined);
  for (const models of [
    { enabled: true },
    { enabled: true, dailyBudgetUsd: '0.250' },
    { enabled: true, dailyBudgetUsd: '9999' },
    // For when the operator of the installation enables models.
    { dailyBudgetUsd: '9999' },
    { dailyBudgetUsd: '0.25' },
  ])
    assert.match(
      (await offer(models)) ?? 'it was taken',
      /may spend 0\.25 USD a day on models/,
      JSON.stringify(models),
    );
  assert.equal(await offer({}), undefined);
});
