// Judges a Deployment and its pods: does the wanted template serve, is it on its way, or why not?
import { explainNoRoom } from '../../build-queue/no-room.ts';
import { conditionOf, unschedulable, type Deployment, type Pod } from '../../objects/kinds.ts';
import { done, failed, short, stalled, waiting, type Outcome } from '../../reconcile/outcome.ts';
import type { ReasonOf } from '../../reconcile/reasons.ts';
import { diagnose, holdUp, startsUntil, templateOf, type Expectation } from './pods.ts';

/** What a rollout is to come to. */
export interface Target {
  readonly hash: string;
  readonly commit: string;
  readonly replicas: number;
  readonly expected: Expectation;
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

/** The reason of the condition that goes with a rule. */
export function reasonOfRule(rule: string): ReasonOf<'stalled'> {
  return reasons[rule] ?? 'RolloutFailed';
}

/** Nothing but time shows that these are well since. */
const lookAgainMs: Readonly<Record<string, number>> = { 'run/out-of-disk': 60_000 };

/** No event says that a quota has room again. */
const quotaRetryMs = 30_000;

/** How the rollout of `target` stands. The Deployment must be the one that carries it. */
export function judgeRollout(deployment: Deployment, pods: readonly Pod[], target: Target, now: Date): Outcome {
  const { commit, replicas, expected } = target;
  const { observedGeneration, available, updated, all } = countsOf(deployment);
  if (observedGeneration < (deployment.metadata.generation ?? 0))
    return waiting('RollingOut', `Commit ${short(commit)} is being rolled out.`);
  if (replicas === 0) return done('ScaledToZero', 'The app is scaled to zero.');
  const own = pods.filter((pod) => templateOf(pod) === target.hash && pod.metadata.deletionTimestamp === undefined);
  if (updated >= replicas && available >= replicas && all === updated) {
    return done('Available', `${available} of ${replicas} replicas of commit ${short(commit)} are ready.`);
  }
  return trouble(deployment, own, expected, now) ?? onItsWay(own, target, now);
}

function countsOf({ status = {} }: Deployment): {
  observedGeneration: number;
  available: number;
  updated: number;
  all: number;
} {
  const {
    observedGeneration = 0,
    availableReplicas: available = 0,
    updatedReplicas: updated = 0,
    replicas: all = 0,
  } = status;
  return { observedGeneration, available, updated, all };
}

/** What stands in the way for good, of the pods or of the Deployment itself. */
function trouble(deployment: Deployment, own: readonly Pod[], expected: Expectation, now: Date): Outcome | undefined {
  const rejection = own.map((pod) => diagnose(pod, expected, now)).find((found) => found !== undefined);
  if (rejection !== undefined) return stalled(reasonOfRule(rejection.rule), rejection, lookAgainMs[rejection.rule]);
  return refused(deployment) ?? overdue(deployment, own);
}

/** The cluster makes no pod at all. */
function refused({ status }: Deployment): Outcome | undefined {
  const replicaFailure = conditionOf(status?.conditions, 'ReplicaFailure');
  if (replicaFailure?.status === 'True' && /exceeded quota/.test(replicaFailure.message ?? ''))
    return waiting('WaitingForRoom', explainNoRoom(replicaFailure.message ?? ''), quotaRetryMs);
  if (replicaFailure?.status === 'True')
    return failed('ReplicaRefused', `The cluster rejected the app's pods: ${replicaFailure.message ?? 'no message'}`);
  return undefined;
}

/** There was time enough. */
function overdue({ status }: Deployment, own: readonly Pod[]): Outcome | undefined {
  const progressing = conditionOf(status?.conditions, 'Progressing');
  if (progressing?.status !== 'False') return undefined;
  const held = own.map(holdUp).find((found) => found !== undefined);
  return failed(
    'RolloutTimedOut',
    `The rollout has made no progress for too long${held === undefined ? '' : `: ${held}`}.`,
  );
}

function onItsWay(own: readonly Pod[], target: Target, now: Date): Outcome {
  const refused = own.map(unschedulable).find((found) => found !== undefined);
  if (refused !== undefined) return waiting('WaitingForRoom', explainNoRoom(refused.message ?? 'unschedulable'));
  const held = own.map(holdUp).find((found) => found !== undefined);
  const times = own.flatMap((pod) => startsUntil(pod, target.expected, now) ?? []);
  const ready = own.filter((pod) => conditionOf(pod.status?.conditions, 'Ready')?.status === 'True').length;
  const message = `${ready} of ${target.replicas} replicas of commit ${short(target.commit)} are ready${held === undefined ? '' : `; ${held}`}.`;
  return waiting('RollingOut', message, times.length === 0 ? undefined : Math.min(...times));
}
