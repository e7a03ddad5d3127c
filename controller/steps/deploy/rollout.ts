// Judges a rollout by the Deployment and its pods: does the wanted template serve, is it starting, or is it failing or in a
// crash loop?
import type { HostedAppStatus } from '../../../crds/hosted-app.ts';
import { explainNoRoom } from '../../build-queue/build-queue.ts';
import { findCondition, findUnschedulable, type Deployment, type Pod } from '../../objects/kinds.ts';
import {
  createDoneOutcome,
  createFailedOutcome,
  shortenCommit,
  createStalledOutcome,
  createWaitingOutcome,
  type Outcome,
  type ReasonOf,
  type StatusFields,
} from '../../reconcile/outcome.ts';
import type { Snapshot } from '../../reconcile/snapshot.ts';
import {
  computeStartMsLeft,
  diagnose,
  explainHoldUp,
  readPodRelease,
  readLastRunMs,
  readTemplateHash,
  type AppLimits,
} from './pods.ts';
import { computeServedMs, findRecord } from './releases.ts';

/** The target of a rollout. */
export interface Target {
  readonly hash: string;
  readonly commit: string;
  readonly replicas: number;
  readonly limits: AppLimits;
}

const reasons: Readonly<Record<string, ReasonOf<'stalled'>>> = {
  'run/crashed': 'AppCrashed',
  'run/never-listened': 'AppNeverListened',
  'run/out-of-memory': 'AppOutOfMemory',
  'run/misconfigured': 'AppMisconfigured',
  'run/image-pull': 'ImagePullFailed',
  'run/no-such-user': 'AppMisconfigured',
  'run/out-of-disk': 'AppOutOfDisk',
};

/** The reason of the condition for a rule. */
export function toReason(rule: string): ReasonOf<'stalled'> {
  return reasons[rule] ?? 'RolloutFailed';
}

/** No event says when these are over, so they are checked again after this long. */
const lookAgainMs: Readonly<Record<string, number>> = { 'run/out-of-disk': 60_000 };

/** No event says when a quota has room again. */
const quotaRetryMs = 30_000;

/** Judges the rollout of `target`. The Deployment must have its template already. */
export function judgeRollout(deployment: Deployment, pods: readonly Pod[], target: Target, now: Date): Outcome {
  const { commit, replicas, limits } = target;
  const { observedGeneration, available, updated, total } = readCounts(deployment);
  if (observedGeneration < (deployment.metadata.generation ?? 0))
    return createWaitingOutcome('RollingOut', `Commit ${shortenCommit(commit)} is being rolled out.`);
  if (replicas === 0) return createDoneOutcome('ScaledToZero', 'The app is scaled to zero.');
  const newPods = pods.filter(
    (pod) => readTemplateHash(pod) === target.hash && pod.metadata.deletionTimestamp === undefined,
  );
  if (updated >= replicas && available >= replicas && total === updated) {
    return createDoneOutcome(
      'Available',
      `${available} of ${replicas} replicas of commit ${shortenCommit(commit)} are ready.`,
    );
  }
  return findTrouble(deployment, newPods, limits, now) ?? reportProgress(newPods, target, now);
}

/** The counts in the status of a Deployment. */
export function readCounts({ status = {} }: Deployment): {
  observedGeneration: number;
  available: number;
  updated: number;
  total: number;
} {
  const {
    observedGeneration = 0,
    availableReplicas: available = 0,
    updatedReplicas: updated = 0,
    replicas: total = 0,
  } = status;
  return { observedGeneration, available, updated, total };
}

/** A lasting obstacle, in the pods or the Deployment itself. */
function findTrouble(
  deployment: Deployment,
  newPods: readonly Pod[],
  limits: AppLimits,
  now: Date,
): Outcome | undefined {
  const rejection = newPods.map((pod) => diagnose(pod, limits, now)).find((found) => found !== undefined);
  if (rejection !== undefined)
    return createStalledOutcome(toReason(rejection.rule), rejection, lookAgainMs[rejection.rule]);
  return findRefusal(deployment) ?? findTimeout(deployment, newPods);
}

/** The cluster creates no pod at all. */
function findRefusal({ status }: Deployment): Outcome | undefined {
  const replicaFailure = findCondition(status?.conditions, 'ReplicaFailure');
  if (replicaFailure?.status === 'True' && /exceeded quota/.test(replicaFailure.message ?? ''))
    return createWaitingOutcome('WaitingForRoom', explainNoRoom(replicaFailure.message ?? ''), quotaRetryMs);
  if (replicaFailure?.status === 'True')
    return createFailedOutcome(
      'ReplicaRefused',
      `The cluster rejected the app's pods: ${replicaFailure.message ?? 'no message'}`,
    );
  return undefined;
}

/** The progress deadline has passed. */
function findTimeout({ status }: Deployment, newPods: readonly Pod[]): Outcome | undefined {
  const progressing = findCondition(status?.conditions, 'Progressing');
  if (progressing?.status !== 'False') return undefined;
  const holdUp = newPods.map(explainHoldUp).find((found) => found !== undefined);
  return createFailedOutcome(
    'RolloutTimedOut',
    `The rollout has made no progress for too long${holdUp === undefined ? '' : `: ${holdUp}`}.`,
  );
}

function reportProgress(newPods: readonly Pod[], target: Target, now: Date): Outcome {
  const refused = newPods.map(findUnschedulable).find((found) => found !== undefined);
  if (refused !== undefined)
    return createWaitingOutcome('WaitingForRoom', explainNoRoom(refused.message ?? 'unschedulable'));
  const holdUp = newPods.map(explainHoldUp).find((found) => found !== undefined);
  const times = newPods.flatMap((pod) => computeStartMsLeft(pod, target.limits, now) ?? []);
  const ready = newPods.filter((pod) => findCondition(pod.status?.conditions, 'Ready')?.status === 'True').length;
  const message = `${ready} of ${target.replicas} replicas of commit ${shortenCommit(target.commit)} are ready${holdUp === undefined ? '' : `; ${holdUp}`}.`;
  return createWaitingOutcome('RollingOut', message, times.length === 0 ? undefined : Math.min(...times));
}

// Crash loops: a release that crashes again and again is up for a moment each time. It is reported as crashing until it has
// served long enough without a crash.

type CrashLoop = NonNullable<HostedAppStatus['crashLoop']>;
type Rejection = CrashLoop['rejection'];

const loopRules: ReadonlySet<string> = new Set(['run/crashed', 'run/out-of-memory']);

/**
 * The crash loop that the pods of one template are in: entered by a crash within `goodAfter`, left after that time of
 * service. A crash after a long time of service is none: it takes two within `goodAfter`.
 */
export function findCrashLoop(
  snapshot: Snapshot,
  fields: StatusFields,
  hash: string,
  limits: AppLimits,
): CrashLoop | undefined {
  const loop = findLoop(snapshot, hash, limits);
  const before = fields.crashLoop?.template === hash ? fields.crashLoop : undefined;
  if (loop !== undefined) return { template: hash, rejection: keepLog(loop, before?.rejection) };
  return before === undefined || isRolloutOver(snapshot, fields, hash) ? undefined : before;
}

/** A release in a crash loop is neither done nor starting. */
export function reportCrashLoop(outcome: Outcome, crashLoop: CrashLoop | undefined, hash: string): Outcome {
  if (crashLoop?.template !== hash || (outcome.kind !== 'done' && outcome.kind !== 'waiting')) return outcome;
  const { rejection } = crashLoop;
  return createStalledOutcome(toReason(rejection.rule), rejection, outcome.afterMs);
}

/** Milliseconds until a loop is over, without another crash. */
export function computeCalmMs(snapshot: Snapshot, fields: StatusFields, hash: string): number | undefined {
  if (fields.crashLoop?.template !== hash) return undefined;
  const record = findRunningRecord(snapshot, fields, hash);
  if (record?.servingSince === undefined) return undefined;
  return Math.max(0, snapshot.config.run.goodAfterMs - computeServedMs(record, snapshot.now));
}

/** Whether the pods of this template are in a crash loop. */
export function isLooping(crashLoop: CrashLoop | undefined, template: string | undefined): boolean {
  return crashLoop !== undefined && crashLoop.template === template;
}

function findLoop({ pods, now, config }: Snapshot, hash: string, limits: AppLimits): Rejection | undefined {
  for (const pod of pods.filter((each) => readTemplateHash(each) === hash)) {
    const rejection = diagnose(pod, limits, now);
    const isShort = (readLastRunMs(pod) ?? 0) < config.run.goodAfterMs;
    if (rejection !== undefined && loopRules.has(rejection.rule) && isShort) return rejection;
  }
  return undefined;
}

/** The log can arrive late. */
function keepLog(rejection: Rejection, previousRejection: Rejection | undefined): Rejection {
  return rejection.log === undefined && previousRejection?.log !== undefined
    ? { ...rejection, log: previousRejection.log }
    : rejection;
}

function isRolloutOver(snapshot: Snapshot, fields: StatusFields, hash: string): boolean {
  const record = findRunningRecord(snapshot, fields, hash);
  return record !== undefined && computeServedMs(record, snapshot.now) >= snapshot.config.run.goodAfterMs;
}

function findRunningRecord({ pods }: Snapshot, fields: StatusFields, hash: string): ReturnType<typeof findRecord> {
  const pod = pods.find((each) => readTemplateHash(each) === hash);
  return pod === undefined ? undefined : findRecord(fields, readPodRelease(pod));
}
