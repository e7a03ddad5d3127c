// The chart on a real API server: it installs and upgrades, its roles give what they say, its sandbox refuses what it
// must.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { parseRepository } from '../../../lib/repository.ts';
import { readOperatorConfig } from '../../../controller/config.ts';
import { hashBuildInputs, formatJobName, buildPipelineJob } from '../../../controller/steps/build/job.ts';
import * as appObjects from '../../../controller/steps/deploy/objects.ts';
import { buildPodTemplate } from '../../../controller/steps/deploy/pod-template.ts';
import { buildRoute } from '../../../controller/steps/route/route.ts';
import { hostedApp, spec as specSchema } from '../../../crds/hosted-app.ts';
import { hostedApps, pods } from '../../../controller/objects/kinds.ts';
import type { Client, Manifest } from '../../../lib/kubernetes/index.ts';
import { createClientAs, findRefusal, startApiServer, type ApiServer } from '../../support/kubernetes/api-server.ts';
import {
  addGatewayTypes,
  createChangedChart,
  readEnvironment,
  install,
  runKubectl,
  selectKind,
  readPodSpec,
  render,
  required,
} from '../../support/chart.ts';
import {
  appPod,
  container,
  ordinary,
  pipelinePod,
  createNamedPod,
  type Fields,
  type Namespace,
} from '../../support/kubernetes/sandbox-pods.ts';

let server: ApiServer;
let admin: Client;
let api: Client;

beforeAll(async () => {
  server = await startApiServer();
  admin = await createClientAs(server);
  api = await createClientAs(server, 'system:serviceaccount:moorage-system:moorage-api');
  await addGatewayTypes(server);
  await install(server, required);
  await admissionIsOn();
});
afterAll(async () => {
  for (const client of [admin, api]) client.close();
  await server.stop();
});

const fields = z.record(z.string(), z.unknown());

/** What the API server says to a pod: nothing when it takes it, else the refusal. Nothing is stored. */
async function refusal(namespace: Namespace, spec: Fields): Promise<string | undefined> {
  const said = await findRefusal(admin, pods, createNamedPod(namespace, 'offered', spec));
  if (said !== undefined) assert.match(said, /forbidden|is invalid|denied request/i);
  return said;
}

/**
 * The API server takes a moment to compile a new admission policy; a pod that breaks nothing but that policy shows when
 * it has.
 */
async function admissionIsOn(): Promise<void> {
  for (let tries = 0; tries < 300; tries += 1) {
    if ((await refusal('moorage-apps', appPod({ hostUsers: true })))?.includes('moorage-sandbox') === true) return;
    await sleep(100);
  }
  assert.fail('the admission policy was not enforced');
}

test('accepts the services behind tools', async () => {
  const enabled = { enabled: true };
  const tools = {
    searxng: enabled,
    gotenberg: enabled,
    languagetool: enabled,
    speech: enabled,
    pdftranslator: { enabled: true, image: 'registry.example.org/moorage-pdf-translator:1' },
  };
  const isTheirs = ({ metadata }: { metadata: { name: string } }): boolean =>
    Object.keys(tools).some((name) => metadata.name.startsWith(`moorage-${name}`));
  const objects = (await render({ ...required, tools })).filter(isTheirs);
  assert.equal(objects.length, 21);
  await runKubectl(server, objects, 'apply', '--server-side', '--dry-run=server');
});

test("accepts from the operator everything that it creates with the chart's settings", async () => {
  const { installation: config } = readOperatorConfig(readEnvironment(await render(required), 'operator'));
  const run = { volumes: [{ name: 'data', path: '/data' }], secrets: [{ name: 'KEY', secret: 'keys', key: 'one' }] };
  const app = hostedApp.parse({
    apiVersion: 'moorage.dev/v1alpha1',
    kind: 'HostedApp',
    metadata: {
      name: 'hello',
      namespace: 'moorage-apps',
      uid: 'e6d2ef86-4f0c-4f0e-9d3a-000000000000',
      generation: 1,
      resourceVersion: '1',
      creationTimestamp: '2026-01-01T00:00:00Z',
    },
    spec: specSchema.parse({ source: { repo: 'https://github.com/owner/name' }, run }),
  });
  const commit = '0123456789'.repeat(4);
  const inputs = hashBuildInputs(app);
  const { template } = buildPodTemplate(
    app,
    config,
    { image: `registry.example.org/apps/hello@sha256:${'0'.repeat(64)}`, commit, port: 8080 },
    { claims: [], addresses: new Map() },
  );
  const job = buildPipelineJob(app, config, {
    name: formatJobName('hello', commit, inputs.hash),
    commit,
    inputs,
    number: 1,
    repository: parseRepository(app.spec.source.repo, config.gitHosts),
    queuedAt: new Date(0),
    reason: 'first build',
  });
  const made = [
    job,
    appObjects.buildDeployment(app, template, {}),
    appObjects.buildService(app),
    appObjects.buildPolicy(app, config, [8080]),
    ...appObjects.buildClaims(app, config, []),
    buildRoute(app, config, false),
  ];
  const operator = [
    '--as=system:serviceaccount:moorage-system:moorage-operator',
    '--server-side',
    '--field-manager=moorage',
    '--dry-run=server',
  ];
  const said = await runKubectl(server, made, 'apply', ...operator);
  assert.equal(said.split('\n').filter((line) => line.includes('serverside-applied')).length, made.length, said);
  assert.equal(await refusal('moorage-apps', z.object({ spec: fields }).parse(template).spec), undefined);
  assert.equal(
    await refusal(
      'moorage-builds',
      z.object({ spec: z.object({ template: z.object({ spec: fields }) }) }).parse(job).spec.template.spec,
    ),
    undefined,
  );
});

test('accepts the pods on which the rejected ones below are based', async () => {
  assert.equal(await refusal('moorage-apps', appPod()), undefined);
  assert.equal(
    await refusal(
      'moorage-apps',
      appPod({ volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }] }),
    ),
    undefined,
  );
  assert.equal(await refusal('moorage-builds', pipelinePod()), undefined);
});

test('operator and API run in a namespace that enforces the restricted Pod Security level', async () => {
  await server.kubectl(
    'label',
    'namespace',
    'moorage-system',
    'pod-security.kubernetes.io/enforce=restricted',
    '--overwrite',
  );
  for (const deployment of selectKind(await render(required), 'Deployment')) {
    const pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'offered', namespace: 'moorage-system' },
      spec: readPodSpec(deployment),
    };
    assert.match(await runKubectl(server, [pod], 'create', '--dry-run=server', '-o', 'name'), /^pod\/offered/);
  }
});

test('sets limits on a container without any', async () => {
  const pod = createNamedPod(
    'moorage-apps',
    'offered',
    appPod({ containers: [{ name: 'app', image: 'example:1', securityContext: ordinary }] }),
  );
  const given = await runKubectl(
    server,
    [pod],
    'create',
    '--dry-run=server',
    '-o',
    'jsonpath={.spec.containers[0].resources.limits}',
  );
  assert.deepEqual(JSON.parse(given), { cpu: '500m', memory: '256Mi', 'ephemeral-storage': '1Gi' });
});

const withApp = (changes: Fields): Fields => appPod({ containers: [container('app', changes)] });
const withCapabilities = (...add: string[]): Fields => ({ capabilities: { drop: ['ALL'], add } });
const secretEnvironment = {
  env: [{ name: 'KEY', valueFrom: { secretKeyRef: { name: 'moorage-registry', key: '.dockerconfigjson' } } }],
};

const refused: readonly (readonly [what: string, namespace: Namespace, spec: () => Fields, fix: RegExp])[] = [
  [
    'a pod of an app without a user namespace',
    'moorage-apps',
    () => appPod({ hostUsers: true }),
    /set spec\.hostUsers to false/,
  ],
  [
    'a pod of an app that does not say',
    'moorage-apps',
    () => appPod({ hostUsers: undefined }),
    /set spec\.hostUsers to false/,
  ],
  [
    'a pipeline without a user namespace',
    'moorage-builds',
    () => pipelinePod({ pod: { hostUsers: true } }),
    /hostUsers/,
  ],
  [
    'a token',
    'moorage-apps',
    () => appPod({ automountServiceAccountToken: true }),
    /set spec\.automountServiceAccountToken to false/,
  ],
  [
    'a service account',
    'moorage-apps',
    () => appPod({ serviceAccountName: 'moorage-operator' }),
    /leave spec\.serviceAccountName away/,
  ],
  [
    'a projected token',
    'moorage-builds',
    () =>
      pipelinePod({
        pod: {
          serviceAccountName: 'default',
          volumes: [{ name: 'registry', projected: { sources: [{ serviceAccountToken: { path: 'token' } }] } }],
        },
      }),
    /volumes of a sandboxed pod are emptyDir/,
  ],
  [
    'a folder of the node',
    'moorage-builds',
    () => pipelinePod({ pod: { volumes: [{ name: 'registry', hostPath: { path: '/' } }] } }),
    /volumes of a sandboxed pod are emptyDir/,
  ],
  ['the network of the node', 'moorage-builds', () => pipelinePod({ pod: { hostNetwork: true } }), /hostNetwork/i],
  ['the processes of the node', 'moorage-builds', () => pipelinePod({ pod: { hostPID: true } }), /hostPID/i],
  [
    'a port of the node',
    'moorage-builds',
    () => pipelinePod({ build: { ports: [{ containerPort: 80, hostPort: 80 }] } }),
    /leave hostPort away/,
  ],
  [
    'a privileged build',
    'moorage-builds',
    () => pipelinePod({ build: { securityContext: { privileged: true } } }),
    /leave securityContext\.privileged away/,
  ],
  [
    'an app with SYS_ADMIN',
    'moorage-apps',
    () => withApp({ securityContext: withCapabilities('SYS_ADMIN') }),
    /violates PodSecurity "baseline|add only those that ordinary images need/,
  ],
  [
    'an app with MKNOD',
    'moorage-apps',
    () => withApp({ securityContext: withCapabilities('MKNOD') }),
    /add only those that ordinary images need/,
  ],
  [
    'an app that keeps the default capabilities',
    'moorage-apps',
    () => withApp({ securityContext: {} }),
    /drop ALL capabilities/,
  ],
  [
    'an app without seccomp',
    'moorage-apps',
    () => appPod({ securityContext: {} }),
    /seccompProfile\.type to RuntimeDefault/,
  ],
  [
    'an app with an unmasked proc',
    'moorage-apps',
    () => withApp({ securityContext: { ...ordinary, procMount: 'Unmasked' } }),
    /procMount/,
  ],
  [
    'an app that calls itself build',
    'moorage-apps',
    () => appPod({ containers: [container('build', { securityContext: { ...ordinary, procMount: 'Unmasked' } })] }),
    /procMount/,
  ],
  [
    'a build with more than BuildKit needs',
    'moorage-builds',
    () => pipelinePod({ build: { securityContext: { capabilities: { add: ['SYS_MODULE'] } } } }),
    /the container build may add SYS_ADMIN and NET_ADMIN/,
  ],
  [
    'a clone with SYS_ADMIN',
    'moorage-builds',
    () =>
      pipelinePod({
        clone: { securityContext: { ...withCapabilities('SYS_ADMIN'), seccompProfile: { type: 'RuntimeDefault' } } },
      }),
    /add only those that ordinary images need/,
  ],
  [
    'a clone without seccomp',
    'moorage-builds',
    () => pipelinePod({ clone: { securityContext: { ...ordinary, seccompProfile: { type: 'Unconfined' } } } }),
    /RuntimeDefault/,
  ],
  [
    'a pipeline that is given a Secret',
    'moorage-builds',
    () => pipelinePod({ pod: { volumes: [{ name: 'registry', secret: { secretName: 'moorage-registry' } }] } }),
    /a pipeline is given no Secret/,
  ],
  [
    'a build that reads one as a variable',
    'moorage-builds',
    () => pipelinePod({ build: secretEnvironment }),
    /a pipeline is given no Secret/,
  ],
  [
    'a clone that reads one whole',
    'moorage-builds',
    () => pipelinePod({ clone: { envFrom: [{ secretRef: { name: 'moorage-registry' } }] } }),
    /a pipeline is given no Secret/,
  ],
];
for (const [what, namespace, spec, fix] of refused) {
  test(`rejects ${what} in ${namespace}`, async () => {
    assert.match((await refusal(namespace, spec())) ?? 'it was taken', fix);
  });
}

test('rejects an ephemeral container in a running pod', async () => {
  await runKubectl(server, [createNamedPod('moorage-builds', 'running', pipelinePod())], 'create');
  await assert.rejects(
    server.kubectl(
      'debug',
      'running',
      '-n',
      'moorage-builds',
      '--image=example:1',
      '--profile=restricted',
      '--attach=false',
    ),
    /takes no ephemeral containers/,
  );
});

interface Right {
  readonly who: 'operator' | 'api';
  readonly verb: string;
  readonly what: string;
  readonly where: string;
  readonly name?: string;
}

function review({ who, verb, what, where, name }: Right): object {
  const [path = '', group = ''] = what.split('@');
  const [resource = '', subresource] = path.split('/');
  const user = `system:serviceaccount:moorage-system:moorage-${who}`;
  return {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SubjectAccessReview',
    spec: { user, resourceAttributes: { verb, group, resource, subresource, name, namespace: where } },
  };
}

const happ = 'hostedapps@moorage.dev';
const rights: readonly (readonly [Right, boolean])[] = [
  // It creates previews alone, which integration/operator/previews tests.
  ...['get', 'list', 'watch', 'create', 'patch', 'delete'].map(
    (verb) => [{ who: 'operator', verb, what: happ, where: 'moorage-apps' }, true] as const,
  ),
  [{ who: 'operator', verb: 'deletecollection', what: happ, where: 'moorage-apps' }, false],
  [{ who: 'operator', verb: 'patch', what: 'hostedapps/status@moorage.dev', where: 'moorage-apps' }, true],
  ...[
    'deployments@apps',
    'services',
    'persistentvolumeclaims',
    'networkpolicies@networking.k8s.io',
    'httproutes@gateway.networking.k8s.io',
    'jobs@batch',
    'cronjobs@batch',
  ].flatMap((what) =>
    ['list', 'watch', 'create', 'patch', 'delete'].map(
      (verb) => [{ who: 'operator', verb, what, where: 'moorage-apps' }, true] as const,
    ),
  ),
  ...['list', 'watch', 'create', 'patch', 'delete'].map(
    (verb) => [{ who: 'operator', verb, what: 'jobs@batch', where: 'moorage-builds' }, true] as const,
  ),
  [{ who: 'operator', verb: 'watch', what: 'pods', where: 'moorage-builds' }, true],
  [{ who: 'operator', verb: 'create', what: 'pods', where: 'moorage-builds' }, false],
  [{ who: 'operator', verb: 'create', what: 'cronjobs@batch', where: 'moorage-builds' }, false],
  [{ who: 'operator', verb: 'create', what: 'jobs@batch', where: 'moorage-system' }, false],
  [
    {
      who: 'operator',
      verb: 'update',
      what: 'leases@coordination.k8s.io',
      where: 'moorage-system',
      name: 'moorage-operator',
    },
    true,
  ],
  [
    { who: 'operator', verb: 'update', what: 'leases@coordination.k8s.io', where: 'moorage-system', name: 'another' },
    false,
  ],
  [{ who: 'operator', verb: 'create', what: 'events@events.k8s.io', where: 'moorage-apps' }, true],
  ...['moorage-apps', 'moorage-builds', 'moorage-system', 'kube-system'].flatMap((where) =>
    (['operator', 'api'] as const).flatMap((who) => [
      // Creating the token of an app, the secret of an author or a deploy key gives nothing to read, nor does deleting it.
      ...['get', 'list', 'watch', 'update', 'patch', 'delete', 'create'].map(
        (verb) =>
          [
            { who, verb, what: 'secrets', where },
            (where === 'moorage-apps' && (verb === 'create' || (verb === 'delete' && who === 'operator'))) ||
              (where === 'moorage-builds' && verb === 'create' && who === 'operator'),
          ] as const,
      ),
      [{ who, verb: 'create', what: 'pods/exec', where }, false] as const,
      [{ who, verb: 'create', what: 'rolebindings@rbac.authorization.k8s.io', where }, false] as const,
    ]),
  ),
  ...['get', 'list', 'watch', 'create', 'patch'].map(
    (verb) => [{ who: 'api', verb, what: happ, where: 'moorage-apps' }, true] as const,
  ),
  ...['update', 'delete'].map((verb) => [{ who: 'api', verb, what: happ, where: 'moorage-apps' }, false] as const),
  [{ who: 'api', verb: 'patch', what: 'hostedapps/status@moorage.dev', where: 'moorage-apps' }, false],
  [{ who: 'api', verb: 'get', what: 'pods/log', where: 'moorage-builds' }, true],
  [{ who: 'api', verb: 'get', what: 'pods/log', where: 'moorage-apps' }, true],
  ...['list', 'watch'].map((verb) => [{ who: 'api', verb, what: 'pods', where: 'moorage-apps' }, true] as const),
  ...['get', 'create', 'update', 'patch', 'delete'].map(
    (verb) => [{ who: 'api', verb, what: 'pods', where: 'moorage-apps' }, false] as const,
  ),
  [{ who: 'api', verb: 'get', what: 'pods/log', where: 'moorage-system' }, false],
  [{ who: 'api', verb: 'list', what: 'pods', where: 'moorage-builds' }, false],
  ...['moorage-apps', 'moorage-builds'].map(
    (where) => [{ who: 'api', verb: 'create', what: 'jobs@batch', where }, false] as const,
  ),
];

test('operator and API have the permissions that they need, and no others', async () => {
  const answers = (
    await runKubectl(
      server,
      rights.map(([right]) => review(right)),
      'create',
      '-o',
      'jsonpath={.status.allowed}{"\\n"}',
    )
  ).split('\n');
  assert.equal(answers.length, rights.length);
  const wrong = rights.filter(([, expected], index) => answers[index] !== String(expected));
  assert.deepEqual(
    wrong.map(([right, expected]) => `${expected ? 'may not' : 'may'}: ${JSON.stringify(right)}`),
    [],
  );
});

test('the API may create and annotate an app, and change nothing else of it', async () => {
  const source = { repo: 'https://github.com/owner/name' };
  const metadata = { name: 'submitted', namespace: 'moorage-apps' };
  const app = (spec: object): Manifest => ({ apiVersion: 'moorage.dev/v1alpha1', kind: 'HostedApp', metadata, spec });
  const patch = (change: object): Promise<object> =>
    api.patch(hostedApps, metadata, change, { type: 'application/merge-patch+json' });
  const create = (spec: object): Promise<object> => api.create(hostedApps, app({ source, ...spec }));
  const secrets = [{ name: 'KEY', secret: 'keys', key: 'one' }];
  for (const [field, spec] of [
    ['run.secrets', { run: { secrets } }],
    ['models.enabled', { models: { enabled: true } }],
    ['review.waivers', { review: { waivers: [{ rule: 'license/missing', reason: 'Because.' }] } }],
    ['source.revision', { source: { ...source, revision: 'refs/pull/5/head' } }],
    ['source.revision', { source: { ...source, revision: 'a'.repeat(40) } }],
  ] as const)
    await assert.rejects(create(spec), new RegExp(`; set spec\\.${field} with kubectl`));
  await create({});
  await patch({ metadata: { annotations: { 'moorage.dev/poll': 'now' } } });
  await assert.rejects(patch({ spec: { run: { secrets } } }), /not change the rest of its spec/);
  await assert.rejects(patch({ spec: { source: { revision: 'other' } } }), /not change the rest of its spec/);
  await assert.rejects(patch({ metadata: { labels: { 'moorage.dev/caller': 'another' } } }), /not change its labels/);
});

test('an upgrade keeps the salt of callers and installs a changed CRD', async () => {
  const salt = (): Promise<string> =>
    server.kubectl('get', 'secret', 'moorage-caller-salt', '-n', 'moorage-system', '-o', 'jsonpath={.data.salt}');
  const columns = (): Promise<string> =>
    server.kubectl(
      'get',
      'crd',
      'hostedapps.moorage.dev',
      '-o',
      'jsonpath={.spec.versions[0].additionalPrinterColumns[*].name}',
    );
  const [first, before] = [await salt(), await columns()];
  assert.ok(Buffer.from(first, 'base64').length >= 32);
  await install(
    server,
    required,
    createChangedChart('files/hostedapps.yaml', (text) => text.replace('- name: Repo\n', '- name: Old\n')),
  );
  assert.match(await columns(), /^Old /);
  await install(server, { ...required, submissions: { perDay: 21 } });
  assert.deepEqual([await salt(), await columns()], [first, before]);
  assert.match(
    await server.kubectl('get', 'deployment', 'moorage-api', '-n', 'moorage-system', '-o', 'yaml'),
    /MOORAGE_SUBMISSIONS_PER_DAY\s+value: "21"/,
  );
});
