// Turns the outcomes of the steps into conditions, phase and the one status that is written.
import type { Condition, HostedAppStatus } from '../../crds/hosted-app.ts';
import type { Snapshot } from './snapshot.ts';
import {
  done,
  isFailingReason,
  short,
  stepConditions,
  type Draft,
  type Outcome,
  type Outcomes,
  type Rejection,
  type StepCondition,
} from './outcome.ts';
import { expiringCondition, expiryWarning } from './expiry.ts';
import type { Decision } from './decide.ts';
import { timestamp } from '../objects/timestamp.ts';

type Phase = NonNullable<HostedAppStatus['phase']>;
type ConditionState = Pick<Condition, 'status' | 'reason' | 'message'>;

/** The first step that does not hold, in the order of the steps. */
interface Obstacle {
  readonly step: StepCondition;
  readonly outcome: Exclude<Outcome, { kind: 'done' }>;
}

/**
 * Makes the status. Pure: the same observation and outcomes give the same status, and equal conditions keep their
 * times.
 */
export function makeStatus(
  snapshot: Snapshot,
  decision: Pick<Decision, 'draft' | 'outcomes' | 'expiry'>,
): HostedAppStatus {
  const { draft, outcomes, expiry } = decision;
  const { app, now } = snapshot;
  const obstacle = firstObstacle(outcomes);
  const phase = phaseOf(snapshot, draft, outcomes);
  const rejection = isPaused(snapshot) ? undefined : rejectionOf(obstacle);
  return {
    ...draft,
    observedGeneration: app.metadata.generation,
    phase,
    since: sinceOf(app.status, phase, draft) ?? timestamp(now),
    checkedAt: checkTime(app.status, now),
    ...(draft.source === undefined ? {} : { shortCommit: short(draft.source.commit) }),
    ...(rejection === undefined ? {} : { rejection }),
    conditions: [
      ...conditionsOf(snapshot, draft, outcomes, obstacle),
      ...(expiry?.at === undefined ? [] : [expiring(snapshot, expiry.at)]),
    ],
  };
}

/** When it entered this phase, if it was in it already. */
function sinceOf(before: HostedAppStatus | undefined, phase: Phase, draft: Draft): string | undefined {
  const isSame = before?.phase === phase && before.source?.commit === draft.source?.commit;
  return isSame ? before.since : undefined;
}

/** Every app is looked at this often, so that an old `checkedAt` says that no operator runs. */
export const checkMs = 600_000;

/** When the status was confirmed: moved on at most once an interval, so that reconciles in between write nothing. */
function checkTime(before: HostedAppStatus | undefined, now: Date): string {
  const last = before?.checkedAt;
  const isRecent = last !== undefined && now.getTime() - Date.parse(last) < checkMs;
  return isRecent ? last : timestamp(now);
}

const computed: ReadonlySet<string> = new Set([
  'conditions',
  'phase',
  'since',
  'checkedAt',
  'observedGeneration',
  'rejection',
  'shortCommit',
]);

/** Fields of the last status that a new one starts from. */
export function draftOf(status: HostedAppStatus | undefined): Draft {
  const kept = Object.entries(status ?? {}).filter(([name]) => !computed.has(name));
  return structuredClone(Object.fromEntries(kept));
}

function firstObstacle(outcomes: Outcomes, except?: StepCondition): Obstacle | undefined {
  for (const step of stepConditions) {
    const outcome = outcomes[step];
    if (outcome === undefined || outcome.kind === 'done' || step === except) continue;
    if (outcome.kind === 'failed' && outcome.blocking === false) continue;
    // That visitors get no page says more than that the gateway has not confirmed a route.
    if (step === 'Routed' && outcomes.Published?.kind === 'failed') continue;
    return { step, outcome };
  }
  return undefined;
}

function rejectionOf(obstacle: Obstacle | undefined): Rejection | undefined {
  return obstacle?.outcome.kind === 'stalled' ? obstacle.outcome.rejection : undefined;
}

function isPaused({ app }: Snapshot): boolean {
  return app.spec.suspend || app.spec.run.replicas === 0;
}

function conditionsOf(
  snapshot: Snapshot,
  draft: Draft,
  outcomes: Outcomes,
  obstacle: Obstacle | undefined,
): Condition[] {
  const state: [string, ConditionState][] = [['Ready', ready(snapshot, draft, outcomes, obstacle)]];
  if (!isPaused(snapshot) && obstacle !== undefined) {
    const { kind, reason, message } = obstacle.outcome;
    state.push([kind === 'stalled' ? 'Stalled' : 'Reconciling', { status: 'True', reason, message }]);
  }
  for (const step of stepConditions) {
    if (step !== 'Published') state.push([step, stepCondition(outcomes[step])]);
  }
  return state.map(([type, condition]) => dated(snapshot, type, condition));
}

function expiring(snapshot: Snapshot, at: Date): Condition {
  return dated(snapshot, expiringCondition, { status: 'True', reason: 'NeverLive', message: expiryWarning(at) });
}

function ready(snapshot: Snapshot, draft: Draft, outcomes: Outcomes, obstacle: Obstacle | undefined): ConditionState {
  if (snapshot.app.spec.suspend)
    return { status: 'False', reason: 'Suspended', message: 'The app is suspended (spec.suspend is true).' };
  if (isPaused(snapshot))
    return { status: 'False', reason: 'ScaledToZero', message: 'The app is scaled to zero (spec.run.replicas is 0).' };
  if (obstacle === undefined) {
    const { reason, message } = outcomes.Published ?? done('Live', 'The app is live.');
    return { status: 'True', reason, message };
  }
  const { kind, reason, message } = obstacle.outcome;
  const kept =
    draft.served === undefined || isFailingReason(reason)
      ? ''
      : ` Commit ${short(draft.served.commit)} is still serving.`;
  return { status: kind === 'waiting' ? 'Unknown' : 'False', reason, message: `${message}${kept}` };
}

function stepCondition(outcome: Outcome | undefined): ConditionState {
  if (outcome === undefined)
    return { status: 'Unknown', reason: 'NotReached', message: 'Waiting for the previous steps.' };
  const { kind, reason, message } = outcome;
  if (kind === 'done') return { status: 'True', reason, message };
  return { status: kind === 'waiting' ? 'Unknown' : 'False', reason, message };
}

function dated({ app, now }: Snapshot, type: string, state: ConditionState): Condition {
  const before = app.status?.conditions?.find((condition) => condition.type === type);
  const lastTransitionTime = before?.status === state.status ? before.lastTransitionTime : timestamp(now);
  return {
    type,
    ...state,
    message: state.message.slice(0, 4_000),
    observedGeneration: app.metadata.generation,
    lastTransitionTime,
  };
}

/** Where the newest revision stands. A repository that is gone says nothing about a commit that is known. */
function phaseOf(snapshot: Snapshot, draft: Draft, outcomes: Outcomes): Phase {
  if (isPaused(snapshot)) return 'Suspended';
  const obstacle = firstObstacle(outcomes, draft.source === undefined ? undefined : 'SourceResolved');
  if (obstacle === undefined) return 'Live';
  if (obstacle.outcome.kind === 'stalled') return 'Rejected';
  if (isFailingReason(obstacle.outcome.reason)) return 'Failing';
  const inPipeline = pipelinePhases[draft.pipeline?.stage ?? 'Queued'];
  const phases = {
    SourceResolved: 'Pending',
    Reviewed: inPipeline,
    Built: inPipeline,
    Deployed: 'Deploying',
    Routed: 'Routing',
    Published: 'Routing',
  } as const;
  return phases[obstacle.step];
}

const pipelinePhases = { Queued: 'Queued', Clone: 'Cloning', Review: 'Reviewing', Build: 'Building' } as const;
