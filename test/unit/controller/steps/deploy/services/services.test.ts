// Backing services of an app: what is made for each, that nothing else reaches it, and that the app waits for it.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { z } from 'zod';
import { annotations } from '../../../../../../crds/names.ts';
import type { Deployment, Pod, Service } from '../../../../../../controller/objects/kinds.ts';
import type { Snapshot } from '../../../../../../controller/reconcile/snapshot.ts';
import { APPLIED_HASH_ANNOTATION, computeHash, type Manifest } from '../../../../../../lib/kubernetes/index.ts';
import {
  app,
  formatTime,
  createBuiltStatus,
  config,
  createDeployed,
  first,
  createLiveStatus,
  decideStatus,
  createSnapshot,
} from '../../../../../support/operator/scenario.ts';

const db = { name: 'db', type: 'postgres', disk: '1Gi', env: [] } as const;
const cache = { name: 'cache', type: 'redis', disk: '1Gi', env: [] } as const;
const withServices = (...services: readonly object[]): ReturnType<typeof app> =>
  app({ services: services as never }, createBuiltStatus(first));

interface OwnManifest {
  readonly manifest: Manifest;
  readonly service: string | undefined;
}

function made(snapshot: Snapshot): OwnManifest[] {
  return decideStatus(snapshot).decision.actions.flatMap(({ action }) =>
    action.kind === 'apply' || action.kind === 'create'
      ? [{ manifest: action.manifest, service: action.manifest.metadata.annotations?.[annotations.service] }]
      : [],
  );
}

function of(snapshot: Snapshot, kind: string, service?: string): Manifest {
  const found = made(snapshot).find((each) => each.manifest.kind === kind && each.service === service);
  assert.ok(found !== undefined, `no ${kind} of ${service ?? 'the app'}`);
  return found.manifest;
}

/** What runs the services, as the cluster has it once they were applied; ready unless said otherwise. */
function serviceObjects(snapshot: Snapshot, ready: 0 | 1 = 1, pods: Pod[] = []): Snapshot['serviceObjects'] {
  const as = <T>(kind: string, rest: object): T[] =>
    made(snapshot)
      .filter((each) => each.manifest.kind === kind && each.service !== undefined)
      .map(
        ({ manifest }, index) =>
          ({
            ...manifest,
            spec: {
              ...(manifest['spec'] as object),
              ...(kind === 'Service' ? { clusterIP: `10.96.0.${index + 7}` } : {}),
            },
            metadata: {
              ...manifest.metadata,
              uid: `${kind}-${index}`,
              generation: 1,
              resourceVersion: '1',
              creationTimestamp: formatTime(-60),
              annotations: { ...manifest.metadata.annotations, [APPLIED_HASH_ANNOTATION]: computeHash(manifest) },
            },
            ...rest,
          }) as unknown as T,
      );
  return {
    deployments: as<Deployment>('Deployment', {
      status: { observedGeneration: 1, availableReplicas: ready, updatedReplicas: ready, replicas: 1 },
    }),
    services: as<Service>('Service', {}),
    policies: as('NetworkPolicy', {}),
    pods,
  };
}

const podSpec = z.looseObject({
  hostUsers: z.literal(false),
  automountServiceAccountToken: z.literal(false),
  securityContext: z.looseObject({ runAsNonRoot: z.literal(true), seccompProfile: z.looseObject({}) }),
  containers: z.array(
    z.looseObject({
      image: z.string(),
      args: z.array(z.string()).optional(),
      env: z.array(z.looseObject({ name: z.string(), value: z.string().optional() })),
      resources: z.looseObject({ limits: z.record(z.string(), z.string()) }),
      securityContext: z.looseObject({}),
    }),
  ),
  hostAliases: z.array(z.looseObject({ ip: z.string(), hostnames: z.array(z.string()) })).optional(),
});
const workload = z.looseObject({
  spec: z.looseObject({ replicas: z.number(), template: z.looseObject({ spec: podSpec }) }),
});
const appTemplate = z.looseObject({
  spec: z.looseObject({
    template: z.looseObject({
      spec: z.looseObject({
        hostAliases: z.array(z.object({ ip: z.string(), hostnames: z.array(z.string()) })).optional(),
        containers: z.array(
          z.looseObject({ env: z.array(z.looseObject({ name: z.string(), value: z.string().optional() })) }),
        ),
      }),
    }),
  }),
});

test('gives a service a volume, a Secret, a policy, an address and one sandboxed replica', () => {
  const snapshot = createSnapshot(withServices(db, cache));
  const kinds = made(snapshot).flatMap(({ manifest, service }) =>
    service === undefined ? [] : [`${manifest.kind} ${service}`],
  );
  assert.ok(!made(snapshot).some((one) => one.manifest.kind === 'Deployment' && one.service === undefined));
  const each = ['PersistentVolumeClaim', 'Secret', 'NetworkPolicy', 'Service', 'Deployment'];
  assert.deepEqual(kinds, [...each.map((kind) => `${kind} db`), ...each.map((kind) => `${kind} cache`)]);
  const { spec } = workload.parse(of(snapshot, 'Deployment', 'db'));
  assert.equal(spec.replicas, 1);
  assert.deepEqual(spec['strategy'], { type: 'Recreate' });
  const [container] = spec.template.spec.containers;
  assert.deepEqual(container?.securityContext, {
    privileged: false,
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ['ALL'] },
  });
  assert.deepEqual(Object.keys(container.resources.limits), ['cpu', 'memory', 'ephemeral-storage']);
  assert.equal(container.image, 'postgres:17-trixie');
  const redis = workload.parse(of(snapshot, 'Deployment', 'cache')).spec.template.spec.containers[0];
  assert.ok(redis?.args?.join(' ').includes('--requirepass $(MOORAGE_CACHE_PASSWORD)'), redis?.args?.join(' '));
});

test("lets only this app's pods reach its service, and the service reach nothing", () => {
  const snapshot = createSnapshot(withServices(db));
  assert.deepEqual(of(snapshot, 'NetworkPolicy', 'db')['spec'], {
    podSelector: {
      matchLabels: {
        'moorage.dev/app': 'hello',
        'app.kubernetes.io/component': 'service',
        'moorage.dev/service': 'db',
      },
    },
    policyTypes: ['Ingress', 'Egress'],
    ingress: [
      {
        from: [{ podSelector: { matchLabels: { 'moorage.dev/app': 'hello', 'app.kubernetes.io/component': 'app' } } }],
        ports: [{ port: 5432, protocol: 'TCP' }],
      },
    ],
    egress: [],
  });
});

test('names services differently from any app, with other names and passwords for another app', () => {
  const one = createSnapshot(withServices(db));
  const other = createSnapshot({ ...withServices(db), metadata: { ...withServices(db).metadata, uid: 'uid-2' } });
  const names = [one, other].map((each) => of(each, 'Deployment', 'db').metadata.name);
  assert.ok(
    names.every((name) => name.length > 40 && name.length <= 63),
    names.join(' '),
  );
  assert.notEqual(names[0], names[1]);
  const password = z.looseObject({
    stringData: z.object({ password: z.string().min(40) }),
    immutable: z.literal(true),
  });
  const passwords = [one, other].map((each) => password.parse(of(each, 'Secret', 'db')).stringData.password);
  assert.notEqual(passwords[0], passwords[1]);
});

test("waits for the app's services, then connects by name and by the usual variables", () => {
  const of_ = withServices(db, { ...cache, env: [{ name: 'REDIS_PASSWORD', value: '' }] });
  const before = createSnapshot(of_);
  const waiting = decideStatus(before);
  assert.ok(waiting.conditions.includes('Deployed=Unknown ServicesStarting'), waiting.conditions.join());
  assert.deepEqual(waiting.status.services, [
    { name: 'db', type: 'postgres', ready: false, message: 'it is being created' },
    { name: 'cache', type: 'redis', ready: false, message: 'it is being created' },
  ]);
  const ready = createSnapshot(of_, { serviceObjects: serviceObjects(before) });
  const { spec } = appTemplate.parse(of(ready, 'Deployment')).spec.template;
  assert.deepEqual(spec.hostAliases, [
    { ip: '10.96.0.7', hostnames: ['db'] },
    { ip: '10.96.0.8', hostnames: ['cache'] },
  ]);
  const env = new Map(spec.containers[0]?.env.map(({ name, value }) => [name, value]));
  assert.equal(env.get('DATABASE_URL'), 'postgresql://app:$(MOORAGE_DB_PASSWORD)@db:5432/app');
  assert.equal(env.get('PGHOST'), 'db');
  assert.equal(env.get('REDIS_URL'), 'redis://cache:6379');
  assert.equal([...env.keys()][0], 'MOORAGE_DB_PASSWORD');
  assert.deepEqual(decideStatus(ready).status.services, [
    { name: 'db', type: 'postgres', ready: true },
    { name: 'cache', type: 'redis', ready: true },
  ]);
});

test("opens the app's policy to its own services, and not at all without any", () => {
  const egress = (of_: ReturnType<typeof app>): string =>
    JSON.stringify(
      of(createSnapshot(of_, { serviceObjects: serviceObjects(createSnapshot(of_)) }), 'NetworkPolicy')['spec'],
    );
  assert.ok(egress(withServices(db)).includes('"app.kubernetes.io/component":"service"'));
  assert.ok(!egress(withServices()).includes('"app.kubernetes.io/component":"service"'));
});

test('rejects a type without an image by name, and creates nothing', () => {
  const refused = decideStatus(createSnapshot(withServices({ ...db, name: 'search', type: 'meilisearch' })));
  assert.equal(refused.status.rejection?.rule, 'services/unavailable');
  assert.match(refused.status.rejection.message, /search is of type meilisearch/);
  assert.match(refused.status.rejection.fix, /postgres, redis/);
  assert.ok(!refused.decision.actions.some(({ action }) => JSON.stringify(action).includes('"kind":"Deployment"')));
  const many = decideStatus(createSnapshot(withServices(...[1, 2, 3, 4, 5].map((n) => ({ ...db, name: `db${n}` })))));
  assert.equal(many.status.rejection?.rule, 'services/too-many');
});

test('limits a service to what the installation allows', () => {
  const greedy = createSnapshot(withServices({ ...db, memory: '64Gi', disk: '500Gi' }));
  assert.equal(
    workload.parse(of(greedy, 'Deployment', 'db')).spec.template.spec.containers[0]?.resources.limits['memory'],
    config.run.services.maximum.memory,
  );
  assert.ok(JSON.stringify(of(greedy, 'PersistentVolumeClaim', 'db')).includes('"storage":"5Gi"'));
});

test('stops a new release if a service keeps crashing, with the last lines of its log', () => {
  const before = createSnapshot(withServices(db));
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: 'db-1',
      namespace: 'moorage-apps',
      uid: 'db-1',
      resourceVersion: '1',
      creationTimestamp: formatTime(-50),
      annotations: { [annotations.service]: 'db' },
    },
    status: {
      containerStatuses: [
        {
          name: 'service',
          ready: false,
          restartCount: 4,
          state: { waiting: { reason: 'CrashLoopBackOff' } },
          lastState: { terminated: { exitCode: 1, message: 'FATAL: incompatible data directory' } },
        },
      ],
    },
  } as unknown as Pod;
  const { status } = decideStatus(
    createSnapshot(withServices(db), { serviceObjects: serviceObjects(before, 0, [pod]) }),
  );
  assert.equal(status.rejection?.rule, 'services/crashed');
  assert.match(status.rejection.message, /db \(postgres\) does not start/);
  assert.match(status.rejection.log ?? '', /incompatible data directory/);
});

test('keeps a live app live if its service fails, and reports it', () => {
  const of_ = app({ services: [db] as never }, createLiveStatus(first));
  const ready = serviceObjects(createSnapshot(of_));
  const whole = createDeployed(of_, undefined, undefined, { serviceObjects: ready });
  assert.equal(decideStatus(createSnapshot(of_, { ...whole, serviceObjects: ready })).status.phase, 'Live');
  const lost = decideStatus(createSnapshot(of_, { ...whole, serviceObjects: serviceObjects(createSnapshot(of_), 0) }));
  assert.equal(lost.status.phase, 'Live');
  assert.ok(lost.conditions.includes('Deployed=False ServiceNotReady'), lost.conditions.join());
});

test('deletes a service that is no longer declared, and keeps its volume', () => {
  const both = app({ services: [db, cache] as never }, createLiveStatus(first));
  const all = serviceObjects(createSnapshot(both));
  const less = app({ services: [db] as never }, createLiveStatus(first));
  const own = createDeployed(less, undefined, undefined, { serviceObjects: all });
  const ended = decideStatus(createSnapshot(less, { ...own, serviceObjects: all })).decision.actions.flatMap(
    ({ action }) => (action.kind === 'delete' ? [action.resource.kind] : []),
  );
  assert.deepEqual(ended, ['Deployment', 'Service', 'NetworkPolicy']);
});

test("stops a suspended app's services and keeps their data", () => {
  const asleep = app({ services: [db] as never, suspend: true }, createLiveStatus(first));
  assert.equal(workload.parse(of(createSnapshot(asleep), 'Deployment', 'db')).spec.replicas, 0);
});
