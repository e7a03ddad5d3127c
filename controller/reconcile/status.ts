// Builds the status from the outcomes of the steps: conditions, phase, expiry, and the Events of its changes.
import type { Control } from '../../crds/control.ts';
import type { Condition, HostedAppStatus } from '../../crds/hosted-app.ts';
import { labels } from '../../crds/names.ts';
import { failingTasksCondition } from '../../crds/tasks.ts';
import type { EventNote } from '../../lib/kubernetes/index.ts';
import { formatTimestamp } from '../objects/kinds.ts';
import { explainFailingTasks } from '../steps/deploy/task-runs.ts';
import type { Decision } from './decide.ts';
import {
  createDoneOutcome,
  isFailingReason,
  isUrlRejection,
  shortenCommit,
  stepConditions,
  warnedReason,
  type Outcome,
  type Outcomes,
  type Rejection,
  type StatusFields,
  type StepCondition,
} from './outcome.ts';
import type { Snapshot } from './snapshot.ts';

type Phase = NonNullable<HostedAppStatus['phase']>;
type ConditionState = Pick<Condition, 'status' | 'reason' | 'message'>;

/** The first step that does not hold, in the order of the steps. */
interface Obstacle {
  readonly step: StepCondition;
  readonly outcome: Exclude<Outcome, { kind: 'done' }>;
}

/**
 * Pure: the same snapshot and outcomes give the same status, and equal conditions keep their times.
 */
export function buildStatus(
  snapshot: Snapshot,
  decision: Pick<Decision, 'fields' | 'outcomes' | 'expiry'>,
): HostedAppStatus {
  const { fields, outcomes, expiry } = decision;
  const { app, now } = snapshot;
  const obstacle = findObstacle(outcomes);
  const phase = choosePhase(snapshot, fields, outcomes);
  const rejection = isPaused(snapshot) ? undefined : findRejection(obstacle);
  return {
    ...fields,
    observedGeneration: app.metadata.generation,
    phase,
    since: findPhaseStart(snapshot, phase, fields) ?? formatTimestamp(now),
    checkedAt: chooseCheckTime(app.status, now),
    ...(fields.source === undefined ? {} : { shortCommit: shortenCommit(fields.source.commit) }),
    ...(fields.findings === undefined
      ? {}
      : { findings: fields.findings.map((finding) => ({ ...finding, fix: nameApp(finding.fix, app.metadata.name) })) }),
    ...(rejection === undefined ? {} : { rejection: { ...rejection, fix: nameApp(rejection.fix, app.metadata.name) } }),
    conditions: [
      ...buildConditions(snapshot, fields, outcomes, obstacle),
      ...(expiry?.at === undefined ? [] : [addExpiringCondition(snapshot, expiry.at)]),
      ...addFailingCondition(snapshot, fields),
    ],
  };
}

/** Fixes that name an endpoint of the app have its address. Rules do not know which app they judge. */
function nameApp(fix: string, slug: string): string {
  return fix.replaceAll('/api/apps/{slug}/', `/api/apps/${slug}/`);
}

/** When it entered this phase, if it was in it already. A newer commit does not matter to a pinned release. */
function findPhaseStart({ app }: Snapshot, phase: Phase, fields: StatusFields): string | undefined {
  const { status: before, spec } = app;
  const isSameCommit = spec.control?.release !== undefined || before?.source?.commit === fields.source?.commit;
  return before?.phase === phase && isSameCommit ? before.since : undefined;
}

/** Every app is checked this often, so an old `checkedAt` shows that no operator is running. */
export const checkMs = 600_000;

/** When the status was confirmed: updated at most once per interval, so that reconciles in between write nothing. */
function chooseCheckTime(before: HostedAppStatus | undefined, now: Date): string {
  const last = before?.checkedAt;
  const isRecent = last !== undefined && now.getTime() - Date.parse(last) < checkMs;
  return isRecent ? last : formatTimestamp(now);
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

/** The fields of the last status that a new one starts from. */
export function pickStatusFields(status: HostedAppStatus | undefined): StatusFields {
  const keptFields = Object.entries(status ?? {}).filter(([name]) => !computed.has(name));
  return Object.fromEntries(keptFields);
}

function findObstacle(outcomes: Outcomes, except?: StepCondition): Obstacle | undefined {
  for (const step of stepConditions) {
    const outcome = outcomes[step];
    if (outcome === undefined || outcome.kind === 'done' || step === except) continue;
    if (outcome.kind === 'failed' && outcome.blocking === false) continue;
    // That visitors get no page is more important than an unconfirmed route.
    if (step === 'Routed' && outcomes.Published?.kind === 'failed') continue;
    return { step, outcome };
  }
  return undefined;
}

function findRejection(obstacle: Obstacle | undefined): Rejection | undefined {
  return obstacle?.outcome.kind === 'stalled' ? obstacle.outcome.rejection : undefined;
}

function isPaused({ app }: Snapshot): boolean {
  return app.spec.suspend || app.spec.run.replicas === 0;
}

function buildConditions(
  snapshot: Snapshot,
  fields: StatusFields,
  outcomes: Outcomes,
  obstacle: Obstacle | undefined,
): Condition[] {
  const state: [string, ConditionState][] = [['Ready', buildReady(snapshot, fields, outcomes, obstacle)]];
  if (!isPaused(snapshot) && obstacle !== undefined) {
    const { kind, reason, message } = obstacle.outcome;
    state.push([kind === 'stalled' ? 'Stalled' : 'Reconciling', { status: 'True', reason, message }]);
  }
  for (const step of stepConditions) {
    if (step !== 'Published') state.push([step, toConditionState(outcomes[step])]);
  }
  return state.map(([type, condition]) => addTime(snapshot, type, condition));
}

function addExpiringCondition(snapshot: Snapshot, at: Date): Condition {
  return addTime(snapshot, expiringCondition, {
    status: 'True',
    reason: 'NeverLive',
    message: formatExpiryWarning(at),
  });
}

function addFailingCondition(snapshot: Snapshot, { taskRuns }: StatusFields): Condition[] {
  const failing = explainFailingTasks(snapshot, taskRuns);
  return failing === undefined ? [] : [addTime(snapshot, failingTasksCondition, { status: 'True', ...failing })];
}

function buildReady(
  snapshot: Snapshot,
  fields: StatusFields,
  outcomes: Outcomes,
  obstacle: Obstacle | undefined,
): ConditionState {
  if (snapshot.app.spec.suspend)
    return { status: 'False', reason: 'Suspended', message: describeSuspension(snapshot.app.spec.control) };
  if (isPaused(snapshot))
    return { status: 'False', reason: 'ScaledToZero', message: 'The app is scaled to zero (spec.run.replicas is 0).' };
  if (obstacle === undefined) {
    const { reason, message } = outcomes.Published ?? createDoneOutcome('Live', 'The app is live.');
    return { status: 'True', reason, message };
  }
  const { kind, reason, message } = obstacle.outcome;
  const suffix =
    fields.served === undefined || isFailingReason(reason)
      ? ''
      : ` Commit ${shortenCommit(fields.served.commit)} is still serving.`;
  return { status: kind === 'waiting' ? 'Unknown' : 'False', reason, message: `${message}${suffix}` };
}

function describeSuspension(control: Control | undefined): string {
  if (control?.deleteAfter !== undefined)
    return `Its author deleted the app. It is removed after ${control.deleteAfter}.`;
  return control?.suspended === true
    ? 'The author suspended the app (spec.control.suspended is true).'
    : 'The app is suspended (spec.suspend is true).';
}

function toConditionState(outcome: Outcome | undefined): ConditionState {
  if (outcome === undefined)
    return { status: 'Unknown', reason: 'NotReached', message: 'Waiting for the previous steps.' };
  const { kind, reason, message } = outcome;
  if (kind === 'done') return { status: 'True', reason, message };
  return { status: kind === 'waiting' ? 'Unknown' : 'False', reason, message };
}

function addTime({ app, now }: Snapshot, type: string, state: ConditionState): Condition {
  const before = app.status?.conditions?.find((condition) => condition.type === type);
  const lastTransitionTime = before?.status === state.status ? before.lastTransitionTime : formatTimestamp(now);
  return {
    type,
    ...state,
    message: state.message.slice(0, 4_000),
    observedGeneration: app.metadata.generation,
    lastTransitionTime,
  };
}

/** The phase of the newest revision. A repository that is gone does not affect a known commit. */
function choosePhase(snapshot: Snapshot, fields: StatusFields, outcomes: Outcomes): Phase {
  if (isPaused(snapshot)) return 'Suspended';
  const obstacle = findObstacle(outcomes, fields.source === undefined ? undefined : 'SourceResolved');
  if (obstacle === undefined) return 'Live';
  if (obstacle.outcome.kind === 'stalled') return 'Rejected';
  if (isFailingReason(obstacle.outcome.reason)) return 'Failing';
  const inPipeline = pipelinePhases[fields.pipeline?.stage ?? 'Queued'];
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

// Expiry: an app is deleted at the time that its author chose. Submitted apps that never went live are deleted after a
// while, so that they do not occupy space for good.

/** The expiry of an app that its author deleted, or that has not gone live. */
export interface Expiry {
  /** Its time is up. An app that has not gone live was warned before. */
  readonly isDue: boolean;
  readonly reason: 'DeletedByAuthor' | 'Expired';
  /** When it is deleted; absent until it is warned. */
  readonly at?: Date;
  /** Check again after this many milliseconds. */
  readonly afterMs: number;
}

/** Type of the condition that warns. */
export const expiringCondition = 'Expiring';

const longestWarningMs = 86_400_000;

/** Whether and when the app expires; undefined for one that does not. */
export function computeExpiry(snapshot: Snapshot, fields: StatusFields): Expiry | undefined {
  const { app, config, now } = snapshot;
  const { expireMs } = config;
  const { deleteAfter } = app.spec.control ?? {};
  if (deleteAfter !== undefined) {
    const afterMs = Math.max(0, Date.parse(deleteAfter) - now.getTime());
    return { isDue: afterMs === 0, reason: 'DeletedByAuthor', afterMs };
  }
  if (expireMs === undefined || !canExpire(app, fields)) return undefined;
  const reason = 'Expired';
  const warningMs = Math.min(longestWarningMs, expireMs / 2);
  const end = Date.parse(app.metadata.creationTimestamp) + expireMs;
  if (now.getTime() < end - warningMs) return { isDue: false, reason, afterMs: end - warningMs - now.getTime() };
  const warned = readWarningTime(app);
  // An app that is long past its time, because the limit is new, is still warned first.
  const at = Math.max(end, (warned ?? now.getTime()) + warningMs);
  const afterMs = Math.max(0, at - now.getTime());
  return { isDue: warned !== undefined && afterMs === 0, reason, at: new Date(at), afterMs };
}

/**
 * False for an app that has been live (its address stays in the status), is suspended, or was not submitted through the
 * API: apps created with kubectl are deleted only by their owners.
 */
function canExpire({ metadata, spec }: Snapshot['app'], { url }: StatusFields): boolean {
  const isPaused = spec.suspend || spec.run.replicas === 0;
  return metadata.labels?.[labels.caller] !== undefined && !isPaused && url === undefined;
}

function readWarningTime({ status }: Snapshot['app']): number | undefined {
  const warning = status?.conditions?.find(({ type }) => type === expiringCondition);
  return warning === undefined ? undefined : Date.parse(warning.lastTransitionTime);
}

export function formatExpiryWarning(at: Date): string {
  return `The app has never been live. It is deleted at ${formatTimestamp(at)} unless it goes live before; its repository can then be submitted again.`;
}

// Events: one per transition of a condition, with the condition's reason.

/** These repeat a step's condition. Only Ready is worth an Event: when it becomes true, and when the URL fails or rejects a release. */
const mirrors = new Set(['Ready', 'Reconciling', 'Stalled']);

/** Lists the Events of a status change. A new message alone is not an Event. */
export function listTransitions(before: HostedAppStatus | undefined, after: HostedAppStatus): EventNote[] {
  const earlier = new Map((before?.conditions ?? []).map((condition) => [condition.type, condition]));
  return (after.conditions ?? [])
    .filter((condition) => shouldReport(earlier.get(condition.type), condition))
    .map(({ type, status, reason, message }) => ({
      type: status === 'False' || reason === warnedReason || type === failingTasksCondition ? 'Warning' : 'Normal',
      reason,
      message,
    }));
}

function shouldReport(before: Condition | undefined, after: Condition): boolean {
  if (before?.status === after.status && before.reason === after.reason) return false;
  if (mirrors.has(after.type))
    return (
      after.type === 'Ready' &&
      (after.status === 'True' || isFailingReason(after.reason) || isUrlRejection(after.reason))
    );
  return after.reason !== 'NotReached';
}
