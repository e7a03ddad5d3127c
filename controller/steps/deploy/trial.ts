// Tries a new image without the app's data before it replaces the one that serves: an app with a volume cannot run both on
// its data.
import type { V1PodTemplateSpec } from '@kubernetes/client-node';
import type { HostedApp } from '../../../crds/hosted-app.ts';
import { annotations, labels, trialComponent } from '../../../crds/names.ts';
import { computeHash, isApplied, type Manifest, type Wire } from '../../../lib/kubernetes/index.ts';
import { deployments, findCondition, findUnschedulable, type Pod } from '../../objects/kinds.ts';
import {
  shortenCommit,
  createWaitingOutcome,
  type Action,
  type Outcome,
  type StatusFields,
} from '../../reconcile/outcome.ts';
import type { Snapshot } from '../../reconcile/snapshot.ts';
import { hashImages, isRecreated, type Release } from './components.ts';
import { buildDeployment, resolveReplicas } from './objects.ts';
import { computeStartMsLeft, countRestarts, explainHoldUp, isReady, readTemplateHash, type AppLimits } from './pods.ts';
import { findRecord, readRelease } from './releases.ts';

/** A trial that finds no room for this long is skipped, since the release could never be rolled out otherwise. */
const roomMs = 60_000;
/** A tried process has nothing to save. */
const graceSeconds = 1;

/** The wanted release that a trial is planned for. */
export interface TrialInput {
  /** With the settings of the wanted release. */
  readonly snapshot: Snapshot;
  readonly fields: StatusFields;
  readonly wantedRelease: Release;
  readonly target: { readonly hash: string; readonly template: Wire<V1PodTemplateSpec> };
  readonly limits: AppLimits;
}

/** A trial in progress: the serving release stays until it has ended. */
export interface Trial {
  /** The release that serves meanwhile. */
  readonly current: Release;
  readonly outcome: Outcome;
  readonly manifest: Manifest;
}

/** The release that an app with a volume runs, if it has served: it must not be ended without need. */
export function findCurrentRelease(
  { app, deployment }: Snapshot,
  fields: StatusFields,
  wantedRelease: Release,
): Release | undefined {
  const current = readRelease(deployment?.metadata.annotations?.[annotations.release]);
  if (current === undefined || hasSameImages(current, wantedRelease) || !isRecreated(app)) return undefined;
  return findRecord(fields, current) === undefined ? undefined : current;
}

function hasSameImages(one: Release, other: Release): boolean {
  return one.image === other.image && hashImages(one) === hashImages(other);
}

/** A trial, and the hash of the template that has passed one. */
export interface TrialPlan {
  readonly trial: Trial | undefined;
  readonly tried: string | undefined;
}

/** The trial that the wanted release must pass before it is rolled out, unless it needs none or has passed. */
export function planTrial({ snapshot, fields, wantedRelease, target, limits }: TrialInput): TrialPlan {
  const { app, now } = snapshot;
  const { tried } = fields;
  const current = findCurrentRelease(snapshot, fields, wantedRelease);
  if (current === undefined || resolveReplicas(app) === 0 || tried === target.hash) return { trial: undefined, tried };
  const trialPods = listTrialPods(snapshot, target.hash);
  // Remembered, since its pod goes before the Deployment is seen to have changed.
  if (trialPods.some(isReady) || hasNoRoom(snapshot, trialPods, now)) return { trial: undefined, tried: target.hash };
  const holdUp = trialPods.map(explainHoldUp).find((found) => found !== undefined);
  const message = `Commit ${shortenCommit(wantedRelease.commit)} is started next to commit ${shortenCommit(current.commit)}, without its data, before it replaces it${holdUp === undefined ? '' : `; ${holdUp}`}.`;
  const times = trialPods.flatMap((pod) => computeStartMsLeft(pod, limits, now) ?? []);
  const outcome = createWaitingOutcome('Trying', message, Math.min(roomMs, ...times));
  return { trial: { current, outcome, manifest: buildTrialDeployment(app, target.template) }, tried };
}

/** Pods that try this template. */
export function listTrialPods({ trial }: Snapshot, hash: string): readonly Pod[] {
  return (trial?.pods ?? []).filter(
    (pod) => readTemplateHash(pod) === hash && pod.metadata.deletionTimestamp === undefined,
  );
}

/** Applies the wanted trial, and removes one that is over. */
export function planTrialActions(
  snapshot: Snapshot,
  tried: string | undefined,
  trial: Trial | undefined,
  { areServicesReady, isRollingOut }: { areServicesReady: boolean; isRollingOut: boolean },
): Action[] {
  if (!areServicesReady) return [];
  const cached = snapshot.trial?.deployment;
  if (trial === undefined) return endTrial(snapshot, tried, isRollingOut);
  const { manifest } = trial;
  const isSame = cached !== undefined && isApplied(cached, manifest);
  return isSame ? [] : [{ kind: 'apply', resource: deployments, manifest, cached }];
}

/**
 * A trial ends once the status records it. While the tried release is rolled out, its trial stays: ending it would take CPU
 * time from the start that requests are held for.
 */
function endTrial({ app, trial }: Snapshot, tried: string | undefined, isRollingOut: boolean): Action[] {
  const { deployment: object, pods = [] } = trial ?? {};
  if (object === undefined || object.metadata.deletionTimestamp !== undefined) return [];
  const isKept = app.status?.tried !== tried || (isRollingOut && pods.some(isReady));
  return isKept ? [] : [{ kind: 'delete', resource: deployments, object }];
}

/** True when requests for the app go through the activator, which holds them while a pod replaces another. */
export function isActivated({ app, config, idle }: Snapshot): boolean {
  return config.idle !== undefined && isRecreated(app) && idle?.activators !== 'absent';
}

/** The scheduler or the namespace's quota has refused its pod for long enough. */
function hasNoRoom({ trial }: Snapshot, trialPods: readonly Pod[], now: Date): boolean {
  const refused = trialPods.flatMap((pod) => findUnschedulable(pod)?.lastTransitionTime ?? []);
  const failure = findCondition(trial?.deployment?.status?.conditions, 'ReplicaFailure');
  const times = [...refused, ...(failure?.status === 'True' ? [failure.lastTransitionTime ?? ''] : [])];
  return (
    trialPods.every((pod) => countRestarts(pod) === 0) &&
    times.some((time) => now.getTime() - Date.parse(time) >= roomMs)
  );
}

/**
 * The Deployment of the trial. Its name is longer than any name of an app, so that no app can be called like it, and its
 * pods have a component of their own: neither the Service nor the activator sends them a request.
 */
function buildTrialDeployment(app: HostedApp, template: Wire<V1PodTemplateSpec>): Manifest {
  const { name } = app.metadata;
  const manifest = buildDeployment(app, toTrialTemplate(template), { [annotations.trial]: 'true' }, 1);
  const readable = name.slice(0, 24).replace(/-+$/, '');
  return {
    ...manifest,
    metadata: {
      ...manifest.metadata,
      name: `trial-${readable}-${computeHash([name, 'trial']).slice(0, 30)}`,
      labels: { ...manifest.metadata.labels, [labels.component]: trialComponent },
    },
    spec: {
      ...(manifest['spec'] as object),
      revisionHistoryLimit: 0,
      selector: { matchLabels: { [labels.app]: name, [labels.component]: trialComponent } },
    },
  };
}

/** The same pod, with an empty folder for each volume. */
function toTrialTemplate({ metadata, spec }: Wire<V1PodTemplateSpec>): Wire<V1PodTemplateSpec> {
  return {
    metadata: {
      labels: { ...metadata?.labels, [labels.component]: trialComponent },
      annotations: { ...metadata?.annotations, [annotations.trial]: 'true' },
    },
    ...(spec === undefined
      ? {}
      : {
          spec: {
            ...spec,
            terminationGracePeriodSeconds: graceSeconds,
            containers: spec.containers,
            volumes: (spec.volumes ?? []).map(({ name }) => ({ name, emptyDir: {} })),
          },
        }),
  };
}
