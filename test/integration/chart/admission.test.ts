// What a hostile hand that may make pods, or that has taken over the API, is refused by a real API server.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { services, serviceTypes } from '../../../crds/backing-services.ts';
import { hostedApp } from '../../../crds/hosted-app.ts';
import { buildServiceDeployment } from '../../../controller/steps/deploy/services/objects.ts';
import { config } from '../../support/operator/scenario.ts';
import { startApiServer, type ApiServer } from '../../support/kubernetes/api-server.ts';
import { addGatewayTypes, install, runKubectl, required } from '../../support/chart.ts';
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

beforeAll(async () => {
  server = await startApiServer();
  await addGatewayTypes(server);
  await install(server, { ...required, sandbox: { tolerationKeys: ['example.org/sandbox'] } });
  const plain = { apiVersion: 'node.k8s.io/v1', kind: 'RuntimeClass', metadata: { name: 'plain' }, handler: 'runc' };
  await runKubectl(server, [plain], 'create');
  await until(async () => (await offered('moorage-apps', appPod({ hostUsers: true })))?.includes('hostUsers') === true);
});
afterAll(() => server.stop());

/** The API server takes a moment to compile a new admission policy. */
async function until(holds: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 300; tries += 1) {
    if (await holds()) return;
    await sleep(100);
  }
  assert.fail('the admission policies were not enforced');
}

/** What the API server says to a pod: nothing when it takes it. Nothing is stored. */
async function offered(namespace: Namespace, spec: Fields, annotations: Fields = {}): Promise<string | undefined> {
  const pod = z.looseObject({ metadata: z.looseObject({}) }).parse(createNamedPod(namespace, 'offered', spec));
  try {
    await runKubectl(server, [{ ...pod, metadata: { ...pod.metadata, annotations } }], 'create', '--dry-run=server');
    return undefined;
  } catch (error) {
    return String(error);
  }
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

test('rejects added tolerations on an existing pod', async () => {
  await runKubectl(server, [createNamedPod('moorage-apps', 'running', appPod())], 'create');
  const tolerations = [
    ...z
      .array(z.looseObject({}))
      .parse(
        JSON.parse(
          await server.kubectl('get', 'pod', 'running', '-n', 'moorage-apps', '-o', 'jsonpath={.spec.tolerations}'),
        ),
      ),
    { operator: 'Exists' },
  ];
  const change = ['patch', 'pod', 'running', '-n', 'moorage-apps', '--type=merge', '-p'] as const;
  await assert.rejects(server.kubectl(...change, JSON.stringify({ spec: { tolerations } })), /tolerations .* stay/);
  await server.kubectl(...change, JSON.stringify({ metadata: { annotations: { 'example.org/seen': 'yes' } } }));
});

test('a compromised operator can delete no app except one that expires', async () => {
  const asOperator = '--as=system:serviceaccount:moorage-system:moorage-operator';
  const remove = (name: string): Promise<string> =>
    server.kubectl('delete', 'happ', name, '-n', 'moorage-apps', asOperator, '--wait=false');
  const mark = async (name: string, status: object): Promise<void> => {
    const options = ['-n', 'moorage-apps', '--subresource=status', '--type=merge', '-p', JSON.stringify({ status })];
    await server.kubectl('patch', 'happ', name, ...options);
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
  const only = /deletes only submitted apps that have never been live/;
  await runKubectl(server, [submitted('fresh', {}, labels)], 'create');
  await assert.rejects(remove('fresh'), only);
  await mark('fresh', { ...expiring, url: 'https://fresh.example.org/' });
  await assert.rejects(remove('fresh'), only);
  await runKubectl(server, [submitted('by-hand')], 'create');
  await mark('by-hand', expiring);
  await assert.rejects(remove('by-hand'), only);
  await runKubectl(server, [submitted('expired', {}, labels)], 'create');
  await mark('expired', expiring);
  await remove('expired');
});

const asApi = '--as=system:serviceaccount:moorage-system:moorage-api';
const source = { repo: 'https://github.com/owner/name' };
const submitted = (name: string, spec: object = {}, metadata: object = {}): object => ({
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

async function patched(name: string, metadata: object): Promise<string> {
  const options = ['-n', 'moorage-apps', asApi, '--type=merge', '-p', JSON.stringify({ metadata })];
  return server.kubectl('patch', 'happ', name, ...options);
}

test('a compromised API cannot have an app garbage-collected through an owner that does not exist', async () => {
  await runKubectl(server, [submitted('kept')], 'create', asApi);
  await assert.rejects(patched('kept', noOwner), /not change its ownerReferences/);
  await assert.rejects(
    runKubectl(server, [submitted('born', {}, noOwner)], 'create', asApi),
    /not change its ownerReferences/,
  );
});

test('a compromised API cannot hold an app forever, nor release one whose pipelines run', async () => {
  const finalizers = { finalizers: ['moorage.dev/pipelines'] };
  await runKubectl(server, [submitted('held', {}, finalizers)], 'create');
  await assert.rejects(patched('held', { finalizers: null }), /not change its finalizers/);
  await assert.rejects(patched('held', { finalizers: ['example.org/never'] }), /not change its finalizers/);
  await assert.rejects(
    runKubectl(server, [submitted('stuck', {}, { finalizers: ['example.org/never'] })], 'create', asApi),
    /not change its finalizers/,
  );
});

test('lets the API write only the two annotations that request a check and a build', async () => {
  const kept = { annotations: { 'example.org/owner': 'ops' } };
  await runKubectl(server, [submitted('noted', {}, kept)], 'create');
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
  await assert.rejects(runKubectl(server, [submitted('born-noted', {}, kept)], 'create', asApi), only);
});

for (const [what, spec, fix] of [
  ['all of the revenue', { author: { share: '1' } }, /spec\.author\.share/],
  ['a contact that counts', { author: { contact: 'a@example.org' } }, /stands in spec\.submission/],
  ['a description that counts', { listing: { description: 'It does.' } }, /stands in spec\.submission/],
  ['twenty replicas', { run: { replicas: 20 } }, /one replica/],
  ['a volume', { run: { volumes: [{ name: 'data', path: '/data', size: '1Ti' }] } }, /one replica, and no volumes/],
  ['more memory', { run: { resources: { memory: '256Gi' } } }, /default resources at most/],
  ['more CPU for the build', { build: { resources: { cpu: '64' } } }, /default resources at most/],
  ['two hours for the build', { build: { timeout: '2h' } }, /default times at most/],
  ['a poll every 30 s', { source: { ...source, interval: '30s' } }, /default times at most/],
] as const) {
  test(`rejects ${what} in an app that the API submits`, async () => {
    await assert.rejects(runKubectl(server, [submitted('greedy', spec)], 'create', asApi), fix);
  });
}

test('accepts only the counting labels in an app that the API submits', async () => {
  await assert.rejects(
    runKubectl(server, [submitted('greedy', {}, { labels: { 'example.org/any': 'x' } })], 'create', asApi),
    /not change its labels/,
  );
  const labels = { 'moorage.dev/repository': 'a', 'moorage.dev/caller': 'b', 'moorage.dev/network': 'c' };
  const said = { submission: { contact: 'a@example.org', note: 'It does.' } };
  await runKubectl(server, [submitted('modest', said, { labels })], 'create', asApi);
});
