// Whether the release that runs is in a crash loop. One that crashes again and again is up for a moment each time; it is
// reported as crashing until it has served long enough without a crash.
import type { HostedAppStatus } from '../../../crds/hosted-app.ts';
import { stalled, type Draft, type Outcome } from '../../reconcile/outcome.ts';
import type { Snapshot } from '../../reconcile/snapshot.ts';
import { readCommitAndImage, diagnose, lastRunMs, templateOf, type Expectation } from './pods.ts';
import { findRecord, servedMs } from './releases.ts';
import { reasonOfRule } from './rollout.ts';

type CrashLoop = NonNullable<HostedAppStatus['crashLoop']>;
type Rejection = CrashLoop['rejection'];

const loopRules: ReadonlySet<string> = new Set(['run/crashed', 'run/out-of-memory']);

/**
 * Enters and leaves the crash loop of the pods of one template, in `draft.crashLoop`. A crash after a long time of
 * service is none: it takes two within `goodAfter`.
 */
export function recordCrashLoop(snapshot: Snapshot, draft: Draft, hash: string, expected: Expectation): void {
  const found = findLoop(snapshot, hash, expected);
  const before = draft.crashLoop?.template === hash ? draft.crashLoop : undefined;
  if (found !== undefined) draft.crashLoop = { template: hash, rejection: withLog(found, before?.rejection) };
  else if (before !== undefined && !isOver(snapshot, draft, hash)) draft.crashLoop = before;
  else delete draft.crashLoop;
}

/** How the step stands: a release in a crash loop is neither done nor on its way. */
export function withCrashLoop(outcome: Outcome, { crashLoop }: Draft, hash: string): Outcome {
  if (crashLoop?.template !== hash || (outcome.kind !== 'done' && outcome.kind !== 'waiting')) return outcome;
  const { rejection } = crashLoop;
  return stalled(reasonOfRule(rejection.rule), rejection, outcome.afterMs);
}

/** Milliseconds until a loop is over if nothing crashes before. */
export function calmInMs(snapshot: Snapshot, draft: Draft, hash: string): number | undefined {
  if (draft.crashLoop?.template !== hash) return undefined;
  const record = runningRecord(snapshot, draft, hash);
  if (record?.servingSince === undefined) return undefined;
  return Math.max(0, snapshot.config.run.goodAfterMs - servedMs(record, snapshot.now));
}

/** Whether the pods of this template are up for a moment only. */
export function isLooping({ crashLoop }: Pick<HostedAppStatus, 'crashLoop'>, template: string | undefined): boolean {
  return crashLoop !== undefined && crashLoop.template === template;
}

function findLoop({ pods, now, config }: Snapshot, hash: string, expected: Expectation): Rejection | undefined {
  for (const pod of pods.filter((each) => templateOf(each) === hash)) {
    const rejection = diagnose(pod, expected, now);
    const isShort = (lastRunMs(pod) ?? 0) < config.run.goodAfterMs;
    if (rejection !== undefined && loopRules.has(rejection.rule) && isShort) return rejection;
  }
  return undefined;
}

/** Its last words come late at times. */
function withLog(found: Rejection, before: Rejection | undefined): Rejection {
  return found.log === undefined && before?.log !== undefined ? { ...found, log: before.log } : found;
}

function isOver(snapshot: Snapshot, draft: Draft, hash: string): boolean {
  const record = runningRecord(snapshot, draft, hash);
  return record !== undefined && servedMs(record, snapshot.now) >= snapshot.config.run.goodAfterMs;
}

function runningRecord({ pods }: Snapshot, draft: Draft, hash: string): ReturnType<typeof findRecord> {
  const pod = pods.find((each) => templateOf(each) === hash);
  return pod === undefined ? undefined : findRecord(draft, readCommitAndImage(pod));
}
