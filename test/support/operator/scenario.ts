// Builds snapshots for the reconciler's tables, deep-frozen, so that a step that changes what it reads fails.
import { hostedApp, type HostedApp, type HostedAppSpec, type HostedAppStatus } from '../../../crds/hosted-app.ts';
import { readOperatorConfig } from '../../../controller/config.ts';
import { hashBuildInputs, formatJobName } from '../../../controller/steps/build/job.ts';
import { decide, type Decision } from '../../../controller/reconcile/decide.ts';
import type { ContainerStatus, Deployment, HttpRoute, Job, Pod } from '../../../controller/objects/kinds.ts';
import type { Snapshot } from '../../../controller/reconcile/snapshot.ts';
import { buildStatus } from '../../../controller/reconcile/status.ts';
import { identifySource } from '../../../controller/steps/source/source.ts';
import { APPLIED_HASH_ANNOTATION, freezeDeeply, computeHash, type Manifest } from '../../../lib/kubernetes/index.ts';
import { parseRepository } from '../../../lib/repository.ts';
import { annotations, labels } from '../../../crds/names.ts';

export const now = new Date('2026-11-21T12:00:00Z');
export const first = 'a'.repeat(40);
export const second = 'b'.repeat(40);
export const digest = (character: string): string => `registry.test/apps/hello.uid-1@sha256:${character.repeat(64)}`;

export const { installation: config } = readOperatorConfig({
  MOORAGE_PIPELINE_IMAGE: 'registry.test/pipeline',
  MOORAGE_REGISTRY_HOST: 'registry.test',
  MOORAGE_REGISTRY_PROXY: 'proxy.test:5000',
  MOORAGE_PUSH_TOKEN_SECRET: 'push-token-secret-of-tests-0123456789',
  MOORAGE_APPS_DOMAIN: 'apps.test',
  MOORAGE_SERVICES_IMAGES: 'postgres=postgres:17-trixie,redis=redis:8-trixie',
});

/** Seconds before (negative) or after `now`, RFC 3339. */
export function formatTime(seconds: number): string {
  return `${new Date(now.getTime() + seconds * 1000).toISOString().slice(0, 19)}Z`;
}

/** Recursively optional, so that a scenario names only what it is about. */
export type Deep<T> = T extends readonly unknown[] ? T : T extends object ? { [Key in keyof T]?: Deep<T[Key]> } : T;

export function app(
  spec: Deep<HostedAppSpec> = {},
  status?: HostedAppStatus,
  noted: Record<string, string> = {},
): HostedApp {
  return hostedApp.parse({
    apiVersion: 'moorage.dev/v1alpha1',
    kind: 'HostedApp',
    metadata: {
      name: 'hello',
      namespace: 'moorage-apps',
      uid: 'uid-1',
      generation: 3,
      resourceVersion: '1',
      creationTimestamp: formatTime(-3600),
      annotations: noted,
    },
    spec: { ...spec, source: { repo: 'https://github.com/owner/hello', ...spec.source } },
    ...(status === undefined ? {} : { status }),
  });
}

/** Status of an app whose repository was asked a minute ago. */
export function createPolledStatus(commit: string, rest: HostedAppStatus = {}, of: HostedApp = app()): HostedAppStatus {
  return {
    source: { commit, reference: 'refs/heads/main', polledAt: formatTime(-60), polledFor: identifySource(of) },
    ...rest,
  };
}

/** Status of an app of which `commit` is built. */
export function createBuiltStatus(commit: string, rest: HostedAppStatus = {}, of: HostedApp = app()): HostedAppStatus {
  return createPolledStatus(
    commit,
    { built: { image: digest(commit.charAt(0)), commit, inputsHash: hashBuildInputs(of).hash }, ...rest },
    of,
  );
}

/** Status of an app of which `commit` answers. */
export function createLiveStatus(commit: string, rest: HostedAppStatus = {}, of: HostedApp = app()): HostedAppStatus {
  return createBuiltStatus(
    commit,
    {
      url: 'https://hello.apps.test/',
      served: { image: digest(commit.charAt(0)), commit, since: formatTime(-600) },
      phase: 'Live',
      since: formatTime(-600),
      ...rest,
    },
    of,
  );
}

export function job(
  commit: string,
  state: Partial<Job['status'] & object> & { suspend?: boolean; number?: number } = {},
  of: HostedApp = app(),
): Job {
  const { suspend = false, number = 1, ...status } = state;
  const inputs = hashBuildInputs(of);
  const name = formatJobName('hello', commit, inputs.hash);
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: {
      name,
      namespace: 'moorage-builds',
      uid: `job-${name}-${number}`,
      resourceVersion: '1',
      creationTimestamp: formatTime(-300),
      labels: { [labels.app]: 'hello' },
      annotations: {
        [annotations.commit]: commit,
        [annotations.number]: String(number),
        [annotations.reason]: 'first build',
        [annotations.inputs]: JSON.stringify(inputs.each),
        [annotations.appUid]: 'uid-1',
      },
    },
    spec: { suspend },
    status: { startTime: formatTime(-240), ...status },
  };
}

export const complete = { conditions: [{ type: 'Complete', status: 'True' }], completionTime: formatTime(-10) };
export const createFailedStatus = (
  reason: string,
): { conditions: NonNullable<Job['status']>['conditions'] & object } => ({
  conditions: [
    { type: 'Failed', status: 'True', reason, message: `Job failed: ${reason}`, lastTransitionTime: formatTime(-10) },
  ],
});

/** A container of a pipeline pod that ended with `exitCode` and left `message` (JSON unless it is text). */
export function createEndedContainer(
  name: string,
  exitCode: number,
  message: unknown,
  reason?: string,
): ContainerStatus {
  const text = typeof message === 'string' ? message : JSON.stringify(message);
  return {
    name,
    ready: false,
    restartCount: 0,
    state: {
      terminated: {
        exitCode,
        message: text,
        startedAt: formatTime(-200),
        finishedAt: formatTime(-100),
        ...(reason === undefined ? {} : { reason }),
      },
    },
  };
}

export function createRunningContainer(name: string, seconds = 30): ContainerStatus {
  return { name, ready: true, restartCount: 0, state: { running: { startedAt: formatTime(-seconds) } } };
}

export function pipelinePod(of: Job, statuses: ContainerStatus[], status: Pod['status'] & object = {}): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: `${of.metadata.name}-x`,
      namespace: 'moorage-builds',
      uid: 'pod-1',
      resourceVersion: '1',
      creationTimestamp: formatTime(-230),
      ownerReferences: [
        { apiVersion: 'batch/v1', kind: 'Job', name: of.metadata.name, uid: of.metadata.uid, controller: true },
      ],
    },
    status: {
      containerStatuses: statuses,
      ...status,
    },
  };
}

export const plan = { strategy: 'python', reason: 'requirements.txt' } as const;
export const createCloneEnd = (commit: string): ContainerStatus =>
  createEndedContainer('clone', 0, { commit, files: 3, bytes: 300 });
export const reviewed = createEndedContainer('review', 0, { findings: [], plan });
export const createBuildEnd = (image: string): ContainerStatus =>
  createEndedContainer('build', 0, { image, port: 8000, findings: [] });

export function createSnapshot(of: HostedApp, rest: Partial<Snapshot> = {}): Snapshot {
  return freezeDeeply({
    app: of,
    now,
    config,
    repository: parseRepository(of.spec.source.repo, config.gitHosts),
    poll: undefined,
    probe: undefined,
    idle: undefined,
    page: undefined,
    jobs: [],
    pipelinePods: [],
    queue: [],
    deployment: undefined,
    service: undefined,
    policy: undefined,
    claims: [],
    pods: [],
    route: undefined,
    serviceObjects: { deployments: [], services: [], policies: [], pods: [] },
    ...rest,
  });
}

/** The object that an apply of this manifest would have made. */
export function createApplied(
  decision: Decision,
  kind: 'Deployment' | 'HTTPRoute',
  status: object = {},
): Deployment & HttpRoute {
  const action = decision.actions
    .map((wanted) => wanted.action)
    .find(
      (candidate) =>
        candidate.kind === 'apply' &&
        candidate.manifest.kind === kind &&
        candidate.manifest.metadata.annotations?.[annotations.service] === undefined &&
        candidate.manifest.metadata.annotations?.[annotations.trial] === undefined,
    );
  if (action?.kind !== 'apply') throw new Error(`no apply of ${kind}`);
  return toObject(action.manifest, status);
}

/** The object that an apply of this manifest makes. */
export function toObject(of: Manifest, status: object = {}): Deployment & HttpRoute {
  const manifest: Manifest = structuredClone(of);
  const noted = { ...manifest.metadata.annotations, [APPLIED_HASH_ANNOTATION]: computeHash(of) };
  return {
    ...manifest,
    metadata: {
      ...manifest.metadata,
      annotations: noted,
      uid: `${manifest.kind}-uid`,
      generation: 2,
      resourceVersion: '1',
      creationTimestamp: formatTime(-60),
    },
    status,
  };
}

const accepted = {
  parents: [
    {
      parentRef: { name: 'moorage', namespace: 'moorage-system' },
      conditions: ['Accepted', 'ResolvedRefs'].map((type) => ({ type, status: 'True', observedGeneration: 2 })),
    },
  ],
};

/** A ready pod of what that Deployment runs. */
export function appPod(
  deployment: Deployment,
  status: Partial<ContainerStatus> = { ready: true, started: true },
  name = 'hello-1',
): Pod {
  const { template } = deployment.spec as unknown as {
    template: { metadata: { annotations: Record<string, string> } };
  };
  const isReady = status.ready === true;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace: 'moorage-apps',
      uid: name,
      resourceVersion: '1',
      creationTimestamp: formatTime(-50),
      annotations: template.metadata.annotations,
    },
    status: {
      conditions: [{ type: 'Ready', status: isReady ? 'True' : 'False' }],
      containerStatuses: [{ name: 'app', ready: false, restartCount: 0, ...status }],
    },
  };
}

/** Everything as it is once `of` is deployed and routed and its pods are as given. */
export function createDeployed(
  of: HostedApp,
  counts: object = { replicas: 1, updatedReplicas: 1, availableReplicas: 1 },
  pod: Partial<ContainerStatus> = { ready: true, started: true },
  rest: Partial<Snapshot> = {},
): Partial<Snapshot> {
  const decision = decide(createSnapshot(of, rest));
  const deployment = createApplied(decision, 'Deployment', { observedGeneration: 2, ...counts });
  return { deployment, pods: [appPod(deployment, pod)], route: createApplied(decision, 'HTTPRoute', accepted) };
}

/** The same, with pods before that were evicted `seconds` ago because they wrote too much. */
export function createEvictedPod(
  of: HostedApp,
  count: number,
  seconds: number,
  ...now: Parameters<typeof createDeployed> extends [HostedApp, ...infer Rest] ? Rest : never
): Partial<Snapshot> {
  const seen = createDeployed(of, ...now);
  const stopped = (seen.pods ?? []).flatMap((pod) =>
    Array.from({ length: count }, (_, index): Pod => ({
      ...pod,
      metadata: { ...pod.metadata, name: `stopped-${index}`, uid: `stopped-${index}` },
      status: {
        phase: 'Failed',
        reason: 'Evicted',
        message: 'Pod ephemeral local storage usage exceeds the total limit of containers 1Gi. ',
        conditions: [{ type: 'Ready', status: 'False', lastTransitionTime: formatTime(-seconds) }],
      },
    })),
  );
  return { ...seen, pods: [...(seen.pods ?? []), ...stopped] };
}

/** What comes of an observation: the status, and the conditions as short lines. */
export function decideStatus(snapshot: Snapshot): {
  decision: Decision;
  status: HostedAppStatus;
  conditions: string[];
} {
  const decision = decide(snapshot);
  const status = buildStatus(snapshot, decision);
  return {
    decision,
    status,
    conditions: (status.conditions ?? []).map(({ type, status: value, reason }) => `${type}=${value} ${reason}`),
  };
}

/** What is asked for, in short lines. */
export function listActions(decision: Decision): string[] {
  return [...decision.actions.map(({ action }) => action), ...decision.afterStatus].map((action) => {
    if (action.kind === 'apply' || action.kind === 'create') return `${action.kind} ${action.manifest.kind}`;
    return action.kind === 'delete' ? `delete ${action.object.metadata.name}` : action.kind;
  });
}
