// Values that authors set through the API: how pods get them, and when old ones are deleted.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { z } from 'zod';
import { applyControl, formatControlSecretName, type Control } from '../../../../../crds/control.ts';
import type { HostedApp, HostedAppStatus } from '../../../../../crds/hosted-app.ts';
import { decide, type Decision } from '../../../../../controller/reconcile/decide.ts';
import { maskPods, type Snapshot } from '../../../../../controller/reconcile/snapshot.ts';
import { diagnose } from '../../../../../controller/steps/deploy/pods.ts';
import { applySettings } from '../../../../../controller/steps/build/records.ts';
import { buildPodTemplate } from '../../../../../controller/steps/deploy/pod-template.ts';
import {
  app,
  appPod,
  config,
  createApplied,
  createDeployed,
  createLiveStatus,
  createSnapshot,
  digest,
  first,
  now,
} from '../../../../support/operator/scenario.ts';

type SpecFields = Parameters<typeof app>[0];

const identity = { name: 'hello', uid: 'uid-1' };
const name = (version: number): string => formatControlSecretName(identity, version);

/** An app as the operator reads it. */
function controlled(control: Control, spec: SpecFields = {}, status: HostedAppStatus = {}): HostedApp {
  const read = app({ ...spec, control }, createLiveStatus(first, status));
  return { ...read, spec: applyControl(read.spec, read.metadata) };
}

const set = (versions: Readonly<Record<string, number>>, secretVersion: number): Control => ({
  secrets: Object.entries(versions).map(([variable, version]) => ({ name: variable, version })),
  secretVersion,
});

const podTemplate = z.looseObject({
  spec: z.looseObject({
    containers: z.array(z.looseObject({ name: z.string(), env: z.array(z.looseObject({ name: z.string() })) })),
  }),
});

/** The variables of each container, after PORT. */
function listVariables(of: HostedApp, settings: object = {}): Record<string, unknown[]> {
  const view = applySettings(of, JSON.stringify(settings));
  const images = view.spec.components.map((component) => ({ name: component.name, image: digest('a') }));
  const release = {
    ...{ image: digest('a'), commit: first, port: 8080 },
    ...(images.length === 0 ? {} : { components: images }),
  };
  const { template } = buildPodTemplate(view, config, release, { claims: [], addresses: new Map() as never });
  const { containers } = podTemplate.parse(template).spec;
  return Object.fromEntries(
    containers.map((container) => [container.name, container.env.filter((each) => each.name !== 'PORT')]),
  );
}

const reference = (variable: string, version: number): object => ({
  name: variable,
  valueFrom: { secretKeyRef: { name: name(version), key: 'value' } },
});

test("a secret becomes a variable by reference, after the operator's, and replaces a variable of the same name", () => {
  const own = controlled(
    { ...set({ KEY: 3, TAKEN: 4, FILED: 5 }, 5), env: [{ name: 'MODE', value: 'fast' }] },
    { run: { env: [{ name: 'KEY', value: 'open' }], secrets: [{ name: 'TAKEN', secret: 'keys', key: 'one' }] } },
  );
  const settings = {
    run: {
      env: [
        { name: 'FILED', value: 'file' },
        { name: 'MODE', value: 'slow' },
      ],
    },
  };
  assert.deepEqual(listVariables(own, settings), {
    app: [
      { name: 'MODE', value: 'fast' },
      { name: 'TAKEN', valueFrom: { secretKeyRef: { name: 'keys', key: 'one' } } },
      reference('KEY', 3),
      reference('FILED', 5),
    ],
  });
});

test('every component gets the variables, in spite of those that it has in moorage.yaml', () => {
  const own = controlled({ ...set({ KEY: 1 }, 1), env: [{ name: 'MODE', value: 'fast' }] });
  const settings = {
    components: [
      { name: 'web', env: [{ name: 'KEY', value: 'placeholder' }] },
      { name: 'mailer', kind: 'worker', env: [{ name: 'MODE', value: 'slow' }] },
    ],
  };
  const variables = [{ name: 'MODE', value: 'fast' }, reference('KEY', 1)];
  assert.deepEqual(listVariables(own, settings), { web: variables, mailer: variables });
});

test('a new version changes the pod template, and the Deployment replaces its pods', () => {
  const [before, after] = [set({ KEY: 1 }, 1), set({ KEY: 2 }, 2)].map((control) =>
    createApplied(decide(createSnapshot(controlled(control))), 'Deployment'),
  );
  const read = (deployment: typeof before): unknown => deployment?.spec?.template.metadata?.annotations;
  assert.notDeepEqual(read(before), read(after));
  assert.deepEqual(after?.spec?.strategy, {
    type: 'RollingUpdate',
    rollingUpdate: { maxUnavailable: 0, maxSurge: 1 },
  });
});

test('the settings of the author count unless the operator of the installation has set them', () => {
  const own: Control = { replicas: 3, idleAfter: '15m', healthPath: '/up' };
  const { run } = controlled(own).spec;
  assert.deepEqual([run.replicas, run.idleAfter, run.healthPath], [3, '15m', '/up']);
  const kept = controlled(own, { run: { replicas: 2, idleAfter: 'never', healthPath: '/ready' } }).spec;
  assert.deepEqual([kept.run.replicas, kept.run.idleAfter, kept.run.healthPath], [2, 'never', '/ready']);
  assert.deepEqual(applyControl(kept), kept, 'applied twice');
});

/** Versions whose Secrets are deleted. */
function listDeleted({ actions }: Decision): number[] {
  const names = actions.flatMap(({ action }) => (action.kind === 'deleteNamed' ? [action.ref] : []));
  return names.map((ref) => {
    assert.equal(ref.namespace, 'moorage-apps');
    return Array.from({ length: 500 }, (_, version) => version).find((version) => name(version) === ref.name) ?? -1;
  });
}

const versions = (upTo: number, kept: number[] = []): HostedAppStatus => ({ secretVersions: { upTo, kept } });

/** What is decided while this is so, of an app whose KEY is version 5 and OTHER is version 2. */
function decideFor(status: HostedAppStatus, change: (deployed: Partial<Snapshot>) => Partial<Snapshot>): Decision {
  const own = controlled(set({ KEY: 5, OTHER: 2 }, 5), {}, status);
  return decide(createSnapshot(own, change(createDeployed(own))));
}

test('deletes old versions once the rollout is done, and not again', () => {
  const done = decideFor({}, (deployed) => deployed);
  assert.deepEqual(listDeleted(done), [1, 3, 4]);
  assert.deepEqual(done.fields.secretVersions, { upTo: 5, kept: [2, 5] });
  assert.deepEqual(listDeleted(decideFor(done.fields, (deployed) => deployed)), []);
});

/** The objects of an app with other values. */
const former = createDeployed(controlled(set({ KEY: 4, OTHER: 2 }, 4)));

const unsettled: readonly (readonly [string, (deployed: Partial<Snapshot>) => Partial<Snapshot>])[] = [
  ['there is no Deployment yet', () => ({})],
  ['the Deployment has the former template', () => former],
  [
    'a pod of the former template still serves',
    (deployed) => ({ ...deployed, pods: [...(deployed.pods ?? []), ...(former.pods ?? [])] }),
  ],
  [
    'a pod of the former template terminates',
    (deployed) => {
      const [pod] = former.pods ?? [];
      assert.ok(pod !== undefined);
      const ending = { ...pod, metadata: { ...pod.metadata, deletionTimestamp: now.toISOString() } };
      return { ...deployed, pods: [...(deployed.pods ?? []), ending] };
    },
  ],
  [
    'no pod of the new template is ready',
    () =>
      createDeployed(
        controlled(set({ KEY: 5, OTHER: 2 }, 5)),
        { replicas: 1, updatedReplicas: 1, availableReplicas: 0 },
        { ready: false },
      ),
  ],
  [
    'a pod of the former template is about to be created again',
    () =>
      createDeployed(controlled(set({ KEY: 5, OTHER: 2 }, 5)), {
        ...{ replicas: 2, updatedReplicas: 1, availableReplicas: 2 },
      }),
  ],
  ['a trial runs', (deployed) => ({ ...deployed, trial: { deployment: former.deployment, pods: [] } })],
];
for (const [when, change] of unsettled)
  test(`keeps every version while ${when}`, () => {
    const decision = decideFor(versions(3, [2]), change);
    assert.deepEqual(listDeleted(decision), []);
    assert.deepEqual(decision.fields.secretVersions, { upTo: 3, kept: [2] });
  });

test('an evicted pod of a former template holds nothing back', () => {
  const decision = decideFor({}, (deployed) => ({
    ...deployed,
    pods: [
      ...(deployed.pods ?? []),
      ...(former.pods ?? []).map((pod) => ({ ...pod, status: { ...pod.status, phase: 'Failed' } })),
    ],
  }));
  assert.deepEqual(listDeleted(decision), [1, 3, 4]);
});

test('a version that a running Job needs is kept until the Job ends', () => {
  const job = (conditions: { type: string; status: string }[]): NonNullable<Snapshot['tasks']> => ({
    jobs: [
      {
        apiVersion: 'batch/v1',
        kind: 'Job',
        metadata: {
          ...{ name: 'cron', namespace: 'moorage-apps', uid: 'job', resourceVersion: '1' },
          creationTimestamp: now.toISOString(),
        },
        spec: { template: { spec: { containers: [{ name: 'app', env: [reference('KEY', 4)] }] } } },
        status: { conditions },
      } as never,
    ],
    cronJobs: [],
    pods: [],
  });
  const running = decideFor({}, (deployed) => ({ ...deployed, tasks: job([]) }));
  assert.deepEqual(listDeleted(running), [1, 3]);
  assert.deepEqual(running.fields.secretVersions, { upTo: 5, kept: [2, 4, 5] });
  const ended = decideFor(running.fields, (deployed) => ({
    ...deployed,
    tasks: job([{ type: 'Complete', status: 'True' }]),
  }));
  assert.ok(listDeleted(ended).includes(4));
  assert.deepEqual(ended.fields.secretVersions, { upTo: 5, kept: [2, 5] });
});

test('deletes the value of a name that the author has removed, and those between that nothing refers to', () => {
  const own = controlled(set({ OTHER: 2 }, 7), {}, versions(5, [2, 5]));
  const decision = decide(createSnapshot(own, createDeployed(own)));
  assert.deepEqual(listDeleted(decision).sort(), [1, 3, 4, 5, 6, 7]);
  assert.deepEqual(decision.fields.secretVersions, { upTo: 7, kept: [2] });
});

test('attack: a version number far ahead is reached in steps', () => {
  const own = controlled(set({ KEY: 1_000_000 }, 1_000_000));
  const decision = decide(createSnapshot(own, createDeployed(own)));
  assert.equal(listDeleted(decision).length, 100);
  assert.deepEqual(decision.fields.secretVersions, { upTo: 100, kept: [] });
});

test('an app that was never built keeps no value that its author has removed', () => {
  const own = app({ control: { secretVersion: 2 } }, {});
  assert.deepEqual(listDeleted(decide(createSnapshot(own))), [1, 2]);
});

test('shows the value of no variable of the author in a crash log, and says how to set one that is gone', () => {
  const own = controlled(set({ STRIPE_KEY: 1 }, 1));
  const { deployment } = createDeployed(own);
  assert.ok(deployment !== undefined);
  const crash = { terminated: { exitCode: 1, message: 'env: STRIPE_KEY=abc-of-the-author' } };
  const [masked] = maskPods([appPod(deployment, { ready: false, state: crash })], own, config);
  assert.doesNotMatch(JSON.stringify(masked), /abc-of/);
  const message = `secret "${name(1)}" not found`;
  const waiting = { waiting: { reason: 'CreateContainerConfigError', message } };
  const pod = appPod(deployment, { ready: false, state: waiting });
  const limits = { name: 'app', isNamed: false, port: 80, startupMs: 1, startupTime: '1s', memory: '1Mi', disk: '1Mi' };
  const rejection = diagnose(pod, [{ ...limits, healthPath: undefined }], now);
  assert.match(rejection?.fix ?? '', /set each of your secrets again/);
});
