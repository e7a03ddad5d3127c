// What is put into the cluster for an app: pods that may do little, policies that let little through, rollouts that
// lose nothing.
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { test } from 'vitest';
import { z } from 'zod';
import { chooseSmaller, divideQuantity, parseBytes } from '../../../../../controller/objects/kinds.ts';
import { pipelineInput } from '../../../../../controller/pipeline/contract.ts';
import type { Snapshot } from '../../../../../controller/reconcile/snapshot.ts';
import type { Manifest } from '../../../../../lib/kubernetes/index.ts';
import { closedCidrs } from '../../../../../lib/subnets.ts';
import {
  app,
  appPod,
  createBuiltStatus,
  config,
  createDeployed,
  first,
  createLiveStatus,
  decideStatus,
  createPolledStatus,
  second,
  createSnapshot,
  toObject,
} from '../../../../support/operator/scenario.ts';

function wanted(snapshot: ReturnType<typeof createSnapshot>, kind: string): Manifest {
  const found = decideStatus(snapshot)
    .decision.actions.map(({ action }) => action)
    .find((action) => (action.kind === 'apply' || action.kind === 'create') && action.manifest.kind === kind);
  assert.ok(found?.kind === 'apply' || found?.kind === 'create', `no ${kind}`);
  return found.manifest;
}

const container = z.looseObject({
  name: z.string(),
  securityContext: z.looseObject({
    privileged: z.literal(false),
    allowPrivilegeEscalation: z.boolean().optional(),
    capabilities: z.looseObject({}),
  }),
  resources: z.looseObject({ limits: z.record(z.string(), z.string()) }),
  env: z.array(z.looseObject({ name: z.string(), value: z.string().optional() })),
  volumeMounts: z.array(z.looseObject({ name: z.string() })).optional(),
});
const podSpec = z.looseObject({
  hostUsers: z.literal(false),
  automountServiceAccountToken: z.literal(false),
  enableServiceLinks: z.literal(false),
  containers: z.array(container),
  initContainers: z.array(container).optional(),
});
const workload = z.looseObject({
  spec: z.looseObject({ strategy: z.unknown().optional(), template: z.looseObject({ spec: podSpec }) }),
});

test("gives an app's pod a user namespace, few capabilities, limits on everything, and no token", () => {
  const { spec } = workload.parse(wanted(createSnapshot(app({}, createBuiltStatus(first))), 'Deployment')).spec
    .template;
  assert.deepEqual(spec['securityContext'], { seccompProfile: { type: 'RuntimeDefault' } });
  const [only] = spec.containers;
  assert.deepEqual(only?.securityContext, {
    privileged: false,
    allowPrivilegeEscalation: false,
    capabilities: {
      drop: ['ALL'],
      add: ['CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'SETGID', 'SETUID', 'KILL', 'NET_BIND_SERVICE'],
    },
  });
  assert.deepEqual(only.resources.limits, { cpu: '1', memory: '512Mi', 'ephemeral-storage': '1Gi' });
  assert.deepEqual(only.env, [{ name: 'PORT', value: '8080' }]);
});

test("annotates an app's pod with its disk limit, for runtimes that can enforce it", () => {
  const annotated = z.looseObject({
    spec: z.looseObject({ template: z.looseObject({ metadata: z.looseObject({ annotations: z.looseObject({}) }) }) }),
  });
  const small = app({ run: { resources: { disk: '16Mi' } } }, createBuiltStatus(first));
  const { annotations } = annotated.parse(wanted(createSnapshot(small), 'Deployment')).spec.template.metadata;
  assert.equal(annotations['moorage.dev/disk'], '16777216');
});

test("gives an app's pod the installation's priority class, if there is one", () => {
  const priorityOf = (rest: object): unknown =>
    workload.parse(wanted(createSnapshot(app({}, createBuiltStatus(first)), rest), 'Deployment')).spec.template.spec[
      'priorityClassName'
    ];
  assert.equal(priorityOf({}), undefined);
  assert.equal(
    priorityOf({ config: { ...config, run: { ...config.run, priorityClass: 'moorage-apps' } } }),
    'moorage-apps',
  );
});

test("gives only a pipeline's build container a push token and capabilities", () => {
  const { spec } = workload.parse(wanted(createSnapshot(app({}, createPolledStatus(first))), 'Job')).spec.template;
  const { initContainers = [], containers } = spec;
  assert.deepEqual(
    [...initContainers, ...containers].map(({ name }) => name),
    ['clone', 'review', 'build'],
  );
  const build = containers.at(-1);
  for (const checkout of containers.slice(0, 2)) {
    assert.deepEqual(checkout.securityContext.capabilities, { drop: ['ALL'] });
    assert.deepEqual(
      checkout.volumeMounts?.map(({ name }) => name),
      ['workspace'],
    );
  }
  assert.deepEqual(build?.securityContext.capabilities, { add: ['SYS_ADMIN', 'NET_ADMIN'] });
  assert.ok(build.env.some(({ name }) => name === 'MOORAGE_PUSH_TOKEN'));
  assert.ok(!JSON.stringify(containers.slice(0, 2)).includes('MOORAGE_PUSH_TOKEN'));
  const input = pipelineInput.parse(JSON.parse(build.env.find(({ name }) => name === 'MOORAGE_PIPELINE')?.value ?? ''));
  assert.deepEqual([input.app, input.commit, input.image], ['hello', first, 'registry.test/apps/hello.uid-1']);
});

test('limits a build to what the installation allows', () => {
  const greedy = app(
    { build: { resources: { cpu: '64', memory: '64Gi', disk: '100Gi' }, timeout: '2h' } },
    createPolledStatus(
      first,
      {},
      app({ build: { resources: { cpu: '64', memory: '64Gi', disk: '100Gi' }, timeout: '2h' } }),
    ),
  );
  const { spec } = workload.parse(wanted(createSnapshot(greedy), 'Job')).spec.template;
  assert.deepEqual(spec.containers.at(-1)?.resources.limits, { cpu: '4', memory: '8Gi', 'ephemeral-storage': '20Gi' });
});

test('lets only the gateway and the API reach an app, and the app only DNS and public addresses', () => {
  const policy = wanted(createSnapshot(app({}, createBuiltStatus(first))), 'NetworkPolicy');
  assert.deepEqual((policy['spec'] as { ingress: unknown }).ingress, [
    {
      from: [
        { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'moorage-gateway' } } },
        {
          namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'moorage-system' } },
          podSelector: { matchLabels: { 'app.kubernetes.io/name': 'moorage', 'app.kubernetes.io/component': 'api' } },
        },
      ],
      ports: [{ port: 8080, protocol: 'TCP' }],
    },
  ]);
  const text = JSON.stringify(policy);
  for (const closed of [...closedCidrs, '10.0.0.0/8', '169.254.0.0/16', 'fc00::/7', '168.63.129.16/32'])
    assert.ok(text.includes(`"${closed}"`), closed);
});

test('removes the probe header from requests to an app, and sets HSTS if the installation requires it', () => {
  const of = app({}, createBuiltStatus(first));
  const route = z.looseObject({ spec: z.looseObject({ rules: z.array(z.looseObject({ filters: z.unknown() })) }) });
  const filters = (hstsSeconds: number): unknown => {
    const snapshot = createSnapshot(of, {
      ...createDeployed(of),
      config: { ...config, gateway: { ...config.gateway, hstsSeconds } },
    });
    return route.parse(wanted(snapshot, 'HTTPRoute')).spec.rules[0]?.filters;
  };
  const probe = { type: 'RequestHeaderModifier', requestHeaderModifier: { remove: ['moorage-probe'] } };
  assert.deepEqual(filters(0), [probe]);
  const set = [{ name: 'Strict-Transport-Security', value: 'max-age=31536000' }];
  assert.deepEqual(filters(31_536_000), [probe, { type: 'ResponseHeaderModifier', responseHeaderModifier: { set } }]);
});

test('closes port 25 of public addresses to apps, but not its neighbours', () => {
  const policy = wanted(createSnapshot(app({}, createBuiltStatus(first))), 'NetworkPolicy');
  const { egress } = policy['spec'] as {
    egress: { to: { ipBlock?: object }[]; ports: { protocol: string; port: number; endPort?: number }[] }[];
  };
  const open = (port: number): boolean[] =>
    egress
      .filter(({ to }) => to.some(({ ipBlock }) => ipBlock !== undefined))
      .map(({ ports }) =>
        ports.some((range) => range.protocol === 'TCP' && range.port <= port && port <= (range.endPort ?? range.port)),
      );
  assert.deepEqual([24, 25, 26, 443].map(open), [
    [true, true],
    [false, false],
    [true, true],
    [true, true],
  ]);
});

test('opens both ports while a release with another port rolls out', () => {
  const before = createDeployed(app({}, createLiveStatus(first)));
  const moved = app({ run: { port: 9000 } }, createLiveStatus(first));
  const policy = wanted(createSnapshot(moved, before), 'NetworkPolicy');
  assert.deepEqual(
    (policy['spec'] as { ingress: { ports: { port: number }[] }[] }).ingress[0]?.ports.map(({ port }) => port),
    [8080, 9000],
  );
});

test('recreates an app with a volume, and rolls back if the new release fails', () => {
  const spec = { run: { volumes: [{ name: 'data', path: '/data', size: '1Gi' }] } };
  const of = app(spec, createLiveStatus(first, {}, app(spec)));
  const good = createDeployed(of);
  const kept = wanted(createSnapshot(of, good), 'Deployment');
  assert.deepEqual((kept['spec'] as { strategy: unknown }).strategy, { type: 'Recreate' });
  const next = app(spec, { ...createLiveStatus(first, {}, app(spec)), ...createBuiltStatus(second, {}, app(spec)) });
  const tried = decideStatus(createSnapshot(next, { deployment: asObject(kept) })).decision.actions.map(
    ({ action }) => action,
  );
  const trial = tried.find(({ kind, ...action }) => kind === 'apply' && JSON.stringify(action).includes('trial-hello'));
  assert.ok(trial?.kind === 'apply');
  const runningTrial = { deployment: toObject(trial.manifest), pods: [appPod(toObject(trial.manifest))] };
  const rolling = createSnapshot(next, { deployment: asObject(kept), trial: runningTrial });
  const starting = wanted(rolling, 'Deployment');
  assert.ok(JSON.stringify(starting['spec']).includes(second));
  const { status } = decideStatus(rolling);
  const endsTrial = (seen: Partial<Snapshot>): boolean =>
    decideStatus(
      createSnapshot({ ...next, status }, { deployment: asObject(starting), trial: runningTrial, ...seen }),
    ).decision.actions.some(({ action }) => action.kind === 'delete');
  assert.ok(!endsTrial({ pods: [] }), 'the trial stays while the new release starts');
  assert.ok(endsTrial(createDeployed({ ...next, status })), 'and goes once it serves');
  const bad = createDeployed(
    next,
    { replicas: 1, updatedReplicas: 1 },
    { restartCount: 4, state: { waiting: { reason: 'CrashLoopBackOff' } }, lastState: { terminated: { exitCode: 1 } } },
  );
  const failing = createSnapshot(next, { ...bad, deployment: asObject(starting) });
  const back = wanted(failing, 'Deployment');
  assert.ok(JSON.stringify(back['spec']).includes(first) && !JSON.stringify(back['spec']).includes(second));
  const reported = decideStatus(failing).status;
  assert.equal(reported.rejection?.rule, 'run/crashed');
  assert.match(reported.rejection.message, /Rolled back to commit aaaaaaa\.$/);
  const settled = decideStatus(createSnapshot({ ...next, status: reported }, { deployment: asObject(back) })).status;
  assert.deepEqual(settled.rejection, reported.rejection, 'the reason outlives the pods that it was read from');
});

test('never shares a claim between the volumes of two apps; only its own app keeps a claim without a hash', () => {
  const named = (name: string, volume: string, claims: Snapshot['claims'] = []): unknown => {
    const made = app({ run: { volumes: [{ name: volume, path: '/data', size: '1Gi' }] } }, createBuiltStatus(first));
    const of = { ...made, metadata: { ...made.metadata, name } };
    const seen = createSnapshot({ ...of, status: createBuiltStatus(first, {}, of) }, { claims });
    const claimed = wanted(seen, 'PersistentVolumeClaim').metadata.name;
    assert.ok(
      JSON.stringify(wanted(seen, 'Deployment')).includes(`"claimName":"${claimed}"`),
      'the pod mounts the claim that is made',
    );
    return claimed;
  };
  const claim = (uid: string): Snapshot['claims'][number] => ({
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: {
      name: 'a-b-c',
      namespace: 'moorage-apps',
      uid: 'c',
      resourceVersion: '1',
      creationTimestamp: '2026-11-21T11:00:00Z',
      ownerReferences: [{ apiVersion: 'moorage.dev/v1alpha1', kind: 'HostedApp', name: 'a-b', uid }],
    },
  });
  assert.notEqual(named('a-b', 'c'), named('a', 'b-c'));
  assert.equal(named('a-b', 'c', [claim('uid-1')]), 'a-b-c');
  assert.match(String(named('a-b', 'c', [claim('uid-of-another')])), /^a-b-c-[0-9a-f]{8}$/);
});

function asObject(manifest: Manifest): NonNullable<ReturnType<typeof createSnapshot>['deployment']> {
  return {
    ...manifest,
    metadata: {
      ...manifest.metadata,
      uid: 'd',
      resourceVersion: '1',
      generation: 1,
      creationTimestamp: '2026-11-21T11:00:00Z',
    },
  };
}

test('computes quantities: the smaller of two, bytes, and shares that are never zero', () => {
  assert.deepEqual(['16Mi', '1.5Gi', '1k', '1500m'].map(parseBytes), [16_777_216n, 1_610_612_736n, 1000n, 1n]);
  assert.equal(chooseSmaller('2', '500m'), '500m');
  assert.equal(chooseSmaller('1Gi', '1000Mi'), '1000Mi');
  assert.equal(divideQuantity('512Mi', 4n), '128Mi');
  assert.equal(divideQuantity('1', 10n), '100m');
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 10_000 }),
      fc.constantFrom('', 'm', 'k', 'M', 'G', 'Mi', 'Gi', 'Ti'),
      fc.bigInt({ min: 1n, max: 16n }),
      (number, suffix, divisor) => {
        assert.match(divideQuantity(`${number}${suffix}`, divisor), /^[1-9][0-9]*(m|k|M|G|T|Ki|Mi|Gi|Ti)?$/);
      },
    ),
  );
});
