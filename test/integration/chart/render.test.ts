// Facts about what the chart renders, whatever the values.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { beforeAll, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { z } from 'zod';
import { readApiConfig } from '../../../api/config.ts';
import { readModelSettings } from '../../../api/models/config.ts';
import { readReceiptSettings } from '../../../api/accounting/receipts/index.ts';
import { readFetchConfig } from '../../../api/tools/fetch/guard.ts';
import { images } from '../../../localnode/images/catalog.ts';
import { closedCidrs, closeAlso } from '../../../lib/subnets.ts';
import { readOperatorConfig } from '../../../controller/config.ts';
import {
  chart,
  readEnvironment,
  runHelm,
  findNamed,
  object,
  selectKind,
  render,
  required,
  writeValuesFile,
  type Rendered,
} from '../../support/chart.ts';

const local = {
  ...required,
  externalPort: 8443,
  submissions: { modelsUsd: '0.25' },
  registry: { host: 'registry.moorage-system.svc:5000', insecure: true, cidrs: ['10.244.0.1/32'], port: 5000 },
  git: {
    allowedHosts: ['git.moorage-git.svc.cluster.local'],
    insecureHosts: ['git.moorage-git.svc.cluster.local'],
    namespaceLabels: { 'kubernetes.io/metadata.name': 'moorage-git' },
  },
  network: {
    podCidrs: ['10.244.0.0/16'],
    serviceCidrs: ['10.96.0.0/16'],
    nodeCidrs: ['192.0.2.1/32'],
    apiServer: { cidrs: ['192.0.2.1/32'], ports: [6443] },
    metricsNamespaceLabels: { team: 'metrics' },
  },
};
let plain: Rendered[] = [];
let full: Rendered[] = [];

beforeAll(async () => {
  [plain, full] = [await render(required), await render(local)];
});

const container = z.looseObject({
  name: z.string(),
  image: z.string(),
  env: z.array(z.looseObject({ name: z.string(), value: z.string().optional() })),
  resources: z.object({
    requests: z.object({ cpu: z.string(), memory: z.string() }),
    limits: z.object({ cpu: z.string(), memory: z.string() }),
  }),
  securityContext: z.object({
    allowPrivilegeEscalation: z.literal(false),
    readOnlyRootFilesystem: z.literal(true),
    capabilities: z.object({ drop: z.tuple([z.literal('ALL')]) }),
  }),
  startupProbe: z.unknown(),
  livenessProbe: z.unknown(),
  readinessProbe: z.unknown(),
});
const deployment = z.looseObject({
  metadata: z.looseObject({ name: z.string() }),
  spec: z.looseObject({
    template: z.looseObject({
      spec: z.looseObject({
        hostUsers: z.literal(false),
        enableServiceLinks: z.literal(false),
        securityContext: z.looseObject({
          runAsNonRoot: z.literal(true),
          seccompProfile: z.object({ type: z.literal('RuntimeDefault') }),
        }),
        terminationGracePeriodSeconds: z.int().min(30),
        topologySpreadConstraints: z.array(z.unknown()).min(1),
        containers: z.array(container).length(1),
      }),
    }),
  }),
});
const rule = z.object({
  apiGroups: z.array(z.string()),
  resources: z.array(z.string()),
  resourceNames: z.array(z.string()).optional(),
  verbs: z.array(z.string()),
});
const role = z.looseObject({
  metadata: z.looseObject({ name: z.string(), namespace: z.string() }),
  rules: z.array(rule),
});
const policy = z.looseObject({
  metadata: z.looseObject({ name: z.string(), namespace: z.string() }),
  spec: z.looseObject({
    podSelector: z.unknown(),
    policyTypes: z.array(z.string()),
    ingress: z.array(z.unknown()).optional(),
    egress: z.array(z.unknown()).optional(),
  }),
});

test('helm lint reports no problems', async () => {
  for (const values of [required, local].map(writeValuesFile))
    assert.match(await runHelm(['lint', '--strict', chart, '--values', values]), /0 chart\(s\) failed/);
});

test('rejects missing, unknown and out-of-range values by name', async () => {
  await assert.rejects(render({}), /missing properties (?=.*'baseDomain')(?=.*'image')(?=.*'pipelineImage')/);
  await assert.rejects(render({ ...required, colour: 'red' }), /additional properties 'colour' not allowed/);
  await assert.rejects(
    render({ ...required, builds: { concurency: 2 } }),
    /at '\/builds': additional properties 'concurency' not allowed/,
  );
  await assert.rejects(render({ ...required, builds: { concurrency: 0 } }), /at '\/builds\/concurrency'/);
  await assert.rejects(
    render({ ...required, gateway: { ...required.gateway, namespaceLabels: {} } }),
    /at '\/gateway\/namespaceLabels'/,
  );
});

test('runs operator, API, registry proxy, workers and activator with limits, probes, no capabilities, no root, in a user namespace', () => {
  for (const objects of [plain, full])
    assert.deepEqual(
      selectKind(objects, 'Deployment')
        .map((object) => deployment.parse(object).metadata.name)
        .sort(),
      ['moorage-activator', 'moorage-api', 'moorage-operator', 'moorage-registry-proxy', 'moorage-workers'],
    );
});

test("grants only the operator's kubelet figures cluster-wide, and nothing if they are not read", async () => {
  const clusterWide = (objects: typeof full): unknown[] =>
    [...selectKind(objects, 'ClusterRole'), ...selectKind(objects, 'ClusterRoleBinding')].map(({ rules, subjects }) =>
      [rules, subjects].find((each) => each !== undefined),
    );
  assert.deepEqual(clusterWide(full), [
    [{ apiGroups: [''], resources: ['nodes/metrics', 'nodes/stats'], verbs: ['get'] }],
    [{ kind: 'ServiceAccount', name: 'moorage-operator', namespace: 'moorage-system' }],
  ]);
  const off = { ...required, apps: { usageInterval: '0s' } };
  assert.match(JSON.stringify(clusterWide(await render(off))), /"resources":\["nodes\/stats"\]/);
  assert.deepEqual(clusterWide(await render({ ...off, builds: { spaceInterval: '0s' } })), []);
});

test('uses no wildcard in a role, and lets nobody read a Secret but the API that of forge tokens', () => {
  for (const { metadata, rules } of selectKind(full, 'Role').map((object) => role.parse(object))) {
    for (const one of rules.filter(({ resourceNames }) => resourceNames?.join() !== 'moorage-forge-tokens')) {
      // Rights to create and delete give nothing to read: a Secret made is known to whoever made it.
      if (one.resources.join() === 'secrets' && one.verbs.every((verb) => ['create', 'delete'].includes(verb)))
        continue;
      const words = [...one.apiGroups, ...one.resources, ...one.verbs];
      const forbidden = ['*', 'secrets', 'serviceaccounts/token', 'impersonate', 'escalate', 'bind', 'pods/exec'];
      assert.ok(!words.some((word) => forbidden.includes(word)), `${metadata.namespace}: ${words.join(' ')}`);
    }
  }
});

test('gives the API access to HostedApps, new Secrets, forge tokens, and the logs of apps and pipelines only', () => {
  const rights = selectKind(full, 'Role')
    .map((object) => role.parse(object))
    .filter(({ metadata }) => metadata.name === 'moorage-api')
    .flatMap(({ metadata, rules }) =>
      rules.map(({ resources, verbs }) => `${metadata.namespace} ${resources.join()} ${verbs.join()}`),
    );
  const ofApps = ['hostedapps get,list,watch,create,patch', 'secrets create', 'pods list,watch', 'pods/log get'];
  const elsewhere = ['moorage-builds pods/log get', 'moorage-system secrets get,patch'];
  assert.deepEqual(rights, [...ofApps.map((right) => `moorage-apps ${right}`), ...elsewhere]);
});

test('denies all traffic of apps and builds by default', () => {
  const closed = selectKind(plain, 'NetworkPolicy')
    .map((object) => policy.parse(object))
    .filter(({ metadata }) => metadata.name === 'default-deny');
  assert.deepEqual(closed.map(({ metadata }) => metadata.namespace).sort(), ['moorage-apps', 'moorage-builds']);
  for (const { spec } of closed) assert.deepEqual(spec, { podSelector: {}, policyTypes: ['Ingress', 'Egress'] });
});

test('excludes pods, Services, nodes, private and metadata addresses from the internet that a build reaches', () => {
  const { spec } = policy.parse(selectKind(full, 'NetworkPolicy').find(({ metadata }) => metadata.name === 'builds'));
  const blocks = z
    .array(
      z.looseObject({
        to: z.array(
          z.looseObject({ ipBlock: z.object({ cidr: z.string(), except: z.array(z.string()).optional() }).optional() }),
        ),
      }),
    )
    .parse(spec.egress)
    .flatMap(({ to }) => to)
    .flatMap(({ ipBlock }) => (ipBlock === undefined ? [] : [ipBlock]));
  assert.deepEqual(
    blocks.map(({ cidr }) => cidr),
    ['0.0.0.0/0', '::/0'],
  );
  const closed = [
    '10.0.0.0/8',
    '172.16.0.0/12',
    '192.168.0.0/16',
    '100.64.0.0/10',
    '169.254.0.0/16',
    '10.244.0.0/16',
    '10.96.0.0/16',
    '192.0.2.1/32',
  ];
  for (const cidr of closed) assert.ok(blocks[0]?.except?.includes(cidr), `${cidr} is open`);
  const excepted = blocks.flatMap(({ except = [] }) => except);
  for (const cidr of closedCidrs) assert.ok(excepted.includes(cidr), `${cidr} is open to builds`);
  assert.ok(blocks[1]?.except?.every((cidr) => cidr.includes(':')));
});

test('limits what the API fetches for callers to public addresses, by its own check and by its policy', () => {
  const { spec } = policy.parse(findNamed(full, 'NetworkPolicy', 'moorage-api'));
  const ports = [80, 443, 8080, 8443].map((port) => ({ protocol: 'TCP', port }));
  const rules = z
    .array(
      z.looseObject({
        to: z
          .array(
            z.looseObject({
              ipBlock: z.object({ cidr: z.string(), except: z.array(z.string()).optional() }).optional(),
            }),
          )
          .optional(),
        ports: z.unknown(),
      }),
    )
    .parse(spec.egress);
  const [web] = rules.filter((one) => JSON.stringify(one.ports) === JSON.stringify(ports));
  const except = web?.to?.flatMap(({ ipBlock }) => ipBlock?.except ?? []) ?? [];
  const { closed } = readFetchConfig(readEnvironment(full, 'api'));
  assert.deepEqual([...except].sort(), [...closeAlso(closed ?? [])].sort());
  for (const cidr of ['10.0.0.0/8', '169.254.0.0/16', '10.244.0.0/16', '10.96.0.0/16', '192.0.2.1/32', 'fc00::/7'])
    assert.ok(except.includes(cidr), `${cidr} is open`);
});

test('redirects http to the public https port', () => {
  for (const [objects, port] of [
    [plain, {}],
    [full, { port: 8443 }],
  ] as const) {
    const route = z
      .looseObject({ spec: z.looseObject({ rules: z.array(z.unknown()) }) })
      .parse(findNamed(objects, 'HTTPRoute', 'moorage-redirect'));
    assert.deepEqual(route.spec.rules, [
      { filters: [{ type: 'RequestRedirect', requestRedirect: { scheme: 'https', statusCode: 301, ...port } }] },
    ]);
  }
});

test("lets no app claim the API's address", () => {
  const gateway = z
    .looseObject({
      spec: z.looseObject({
        listeners: z.array(
          z.looseObject({
            name: z.string(),
            allowedRoutes: z.object({
              namespaces: z.looseObject({ selector: z.object({ matchLabels: z.record(z.string(), z.string()) }) }),
            }),
          }),
        ),
      }),
    })
    .parse(findNamed(plain, 'Gateway', 'moorage'));
  const open = gateway.spec.listeners.map(({ name, allowedRoutes }) => [
    name,
    Object.entries(allowedRoutes.namespaces.selector.matchLabels).join(),
  ]);
  assert.deepEqual(open, [
    ['https', 'moorage.dev/routes,true'],
    ['https-base', 'kubernetes.io/metadata.name,moorage-system'],
    ['http', 'kubernetes.io/metadata.name,moorage-system'],
  ]);
});

test('keeps user data after the release is deleted', () => {
  const kept = full
    .filter(({ metadata }) => metadata.annotations?.['helm.sh/resource-policy'] === 'keep')
    .map(({ kind, metadata }) => `${kind} ${metadata.name}`);
  assert.deepEqual(kept.sort(), [
    'CustomResourceDefinition hostedapps.moorage.dev',
    'Namespace moorage-apps',
    'Namespace moorage-builds',
    'Secret moorage-app-token',
    'Secret moorage-caller-salt',
    'Secret moorage-deploy-keys',
    'Secret moorage-forge-tokens',
    'Secret moorage-metering',
    'Secret moorage-probe-token',
    'Secret moorage-push-token',
    'Secret moorage-receipt-key',
  ]);
});

test('generates a receipts key with which the API can sign', () => {
  const { key = '' } = z
    .object({ data: z.record(z.string(), z.string()) })
    .parse(findNamed(full, 'Secret', 'moorage-receipt-key')).data;
  const settings = readReceiptSettings({ MOORAGE_RECEIPT_KEY: Buffer.from(key, 'base64').toString() });
  assert.equal(settings.keys.keys.length, 1);
});

test('omits what an installation provides itself if switched off', async () => {
  const objects = await render({
    ...required,
    crd: { install: false },
    namespaces: { create: false },
    gateway: { ...required.gateway, create: false },
    priorityClasses: { create: false },
    api: { callerSaltSecret: 'mine' },
    metering: { tokenSecret: 'mine' },
    activator: { probeTokenSecret: 'mine' },
    receipts: { keySecret: 'mine' },
    models: { appTokenSecret: 'mine' },
    git: { deployKeySecret: 'mine' },
    registry: { ...required.registry, pushTokenSecret: 'mine' },
  });
  for (const kind of ['CustomResourceDefinition', 'Namespace', 'Gateway', 'PriorityClass'])
    assert.deepEqual(selectKind(objects, kind), []);
  assert.deepEqual(
    selectKind(objects, 'Secret')
      .map(({ metadata }) => metadata.name)
      .join(),
    'moorage-forge-tokens',
  );
  for (const name of ['MOORAGE_BUILDS_PRIORITY_CLASS', 'MOORAGE_APPS_PRIORITY_CLASS'])
    assert.equal(readEnvironment(objects, 'operator')[name], '');
});

test('gives apps a higher priority than builds, without preemption', () => {
  const { installation: config } = readOperatorConfig(readEnvironment(full, 'operator'));
  const classes = [config.run.priorityClass, config.pipeline.priorityClass].map((name) =>
    findNamed(full, 'PriorityClass', name ?? 'none'),
  );
  assert.deepEqual(
    classes.map((each) => each['preemptionPolicy']),
    ['Never', 'Never'],
  );
  assert.ok(Number(classes[0]?.['value']) > Number(classes[1]?.['value']));
});

test('the API reads every setting that the chart passes', () => {
  for (const [objects, baseUrl, allowed] of [
    [plain, 'https://apps.example.org', 'github.com'],
    [full, 'https://apps.example.org:8443', 'git.moorage-git.svc.cluster.local'],
  ] as const) {
    const config = readApiConfig({ ...readEnvironment(objects, 'api'), MOORAGE_CALLER_SALT: 'x'.repeat(64) });
    assert.deepEqual(
      [config.baseUrl, config.hosts.allowed[0], config.submissionsPerDay, config.appsNamespace, config.buildsNamespace],
      [baseUrl, allowed, 20, 'moorage-apps', 'moorage-builds'],
    );
    assert.equal(config.submittedModelsUsd, objects === full ? '0.25' : undefined);
    // What the API may then write, the admission policy lets it write.
    const policy = JSON.stringify(findNamed(objects, 'ValidatingAdmissionPolicy', 'moorage-api'));
    assert.equal(policy.includes("== '0.25'"), objects === full);
  }
});

test('the operator reads every setting that the chart passes', () => {
  const { installation: config, lease } = readOperatorConfig(readEnvironment(full, 'operator'));
  assert.deepEqual(
    [
      lease.name,
      config.gateway,
      config.registry.host,
      config.registry.pullSecret,
      config.site.port,
      config.pipeline.priorityClass,
    ],
    [
      'moorage-operator',
      {
        name: 'moorage',
        namespace: 'moorage-system',
        namespaceLabels: required.gateway.namespaceLabels,
        hstsSeconds: 0,
      },
      'registry.moorage-system.svc:5000',
      undefined,
      8443,
      'moorage-builds',
    ],
  );
  assert.ok(
    ['10.244.0.0/16', '10.96.0.0/16', '192.0.2.1/32', '169.254.0.0/16'].every((cidr) =>
      config.run.closedCidrs.includes(cidr),
    ),
  );
});

test('passes no setting that nothing reads', () => {
  for (const [component, files] of [
    ['operator', ['controller/settings.ts', 'lib/telemetry.ts']],
    ['workers', ['api/tools/engine/workers/remote/worker-server.ts']],
    [
      'api',
      [
        'api/config.ts',
        'api/accounting/metering/config.ts',
        'api/accounting/receipts/config.ts',
        'api/accounting/revenue/start-revenue.ts',
        'api/models/config.ts',
        'api/apps/start.ts',
        'api/tools/config.ts',
        'api/tools/fetch/guard.ts',
      ],
    ],
  ] as const) {
    const text = files.map((file) => readFileSync(new URL(`../../../${file}`, import.meta.url), 'utf8')).join('\n');
    const unread = Object.keys(readEnvironment(full, component)).filter(
      (name) => name.startsWith('MOORAGE_') && !text.includes(` ${name}:`),
    );
    assert.deepEqual(unread, [], `not in ${files.join()}`);
  }
});

test('enables models with a router and a database, and lets them reach nothing else', async () => {
  assert.equal(readModelSettings(readEnvironment(plain, 'api')).router, undefined);
  const objects = await render({
    ...required,
    models: {
      router: {
        baseUrl: 'http://litellm.llm.svc.cluster.local:4000',
        kind: 'litellm',
        keySecret: 'router',
        namespaceLabels: { name: 'llm' },
        port: 4000,
      },
      freeQuotaUsd: '0.25',
    },
    postgres: { enabled: true },
  });
  const settings = readModelSettings({
    ...readEnvironment(objects, 'api'),
    MOORAGE_APP_TOKEN_SECRET: 'x'.repeat(64),
    MOORAGE_ROUTER_KEY: 'sk-platform',
    DATABASE_URL: 'postgres://moorage@moorage-postgres/moorage',
  });
  assert.deepEqual(
    [settings.router, settings.freeQuota],
    [{ kind: 'litellm', url: 'http://litellm.llm.svc.cluster.local:4000', key: 'sk-platform' }, 250_000_000_000n],
  );
  assert.equal(
    readOperatorConfig({ ...readEnvironment(objects, 'operator'), MOORAGE_APP_TOKEN_SECRET: 'x'.repeat(64) })
      .installation.run.models?.baseUrl,
    'http://moorage-models.moorage-system.svc.cluster.local/v1',
  );
  const { spec } = policy.parse(
    selectKind(objects, 'NetworkPolicy').find(({ metadata }) => metadata.name === 'moorage-api'),
  );
  const database = {
    podSelector: {
      matchLabels: {
        'app.kubernetes.io/name': 'moorage',
        'app.kubernetes.io/instance': 'moorage',
        'app.kubernetes.io/component': 'postgres',
      },
    },
  };
  assert.deepEqual(spec.egress?.slice(-2), [
    { ports: [{ protocol: 'TCP', port: 4000 }], to: [{ namespaceSelector: { matchLabels: { name: 'llm' } } }] },
    { ports: [{ protocol: 'TCP', port: 5432 }], to: [database] },
  ]);
  // Of pods in the cluster beside those: apps, and nothing else in their namespace.
  assert.deepEqual(spec.egress.slice(-3, -2), [
    {
      ports: [{ protocol: 'TCP', port: 1, endPort: 65_535 }],
      to: [
        {
          namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'moorage-apps' } },
          podSelector: {
            matchLabels: { 'app.kubernetes.io/part-of': 'moorage', 'app.kubernetes.io/component': 'app' },
          },
        },
      ],
    },
  ]);
  assert.deepEqual(
    selectKind(objects, 'StatefulSet').map(({ metadata }) => metadata.name),
    ['moorage-postgres'],
  );
  const secrets = new Set(selectKind(objects, 'Secret').map(({ metadata }) => metadata.name));
  assert.deepEqual([...secrets].map((name) => name.replace(/^moorage-/, '')).sort(), [
    ...['app-token', 'caller-salt', 'database', 'database-migrator', 'deploy-keys', 'forge-tokens', 'metering'],
    'postgres',
    ...['postgres-tls', 'probe-token', 'push-token', 'receipt-key'],
  ]);
});

test('on the local node, models use the demo router and a PostgreSQL that the node creates', async () => {
  const fileOf = (path: string): string => readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8');
  const objects = await render({
    ...(parse(fileOf('cli/values.local.yaml')) as object),
    image: 'moorage:1',
    pipelineImage: 'moorage-pipeline:1',
  });
  const [service] = parseAllDocuments(fileOf('localnode/manifests/demo-router.yaml')).map((document) =>
    object.parse(document.toJS()),
  );
  assert.deepEqual([service?.metadata.name, service?.metadata.namespace], ['demo-router', 'moorage-demo-router']);
  const { router } = readModelSettings({
    ...readEnvironment(objects, 'api'),
    MOORAGE_APP_TOKEN_SECRET: undefined,
    DATABASE_URL: undefined,
  });
  assert.deepEqual(router, {
    kind: 'openrouter',
    url: 'http://demo-router.moorage-demo-router.svc.cluster.local',
    key: undefined,
  });
  const { spec } = policy.parse(findNamed(objects, 'NetworkPolicy', 'moorage-api'));
  assert.deepEqual(spec.egress?.at(-2), {
    ports: [{ protocol: 'TCP', port: 8080 }],
    to: [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'moorage-demo-router' } } }],
  });
  const image = /"image":"([^"]+)"/.exec(JSON.stringify(findNamed(objects, 'StatefulSet', 'moorage-postgres')))?.[1];
  const made = images.flatMap(({ repository, tags }) =>
    tags.map((tag) => `${repository.replace('library/', '')}:${tag}`),
  );
  assert.ok(image !== undefined && made.includes(image), `${String(image)} is not made by the node`);
});
