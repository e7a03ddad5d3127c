// Chooses what to run: the wanted release, one to fall back on, or the one that serves while the wanted one is tried.
import type { HostedAppStatus } from '../../../crds/hosted-app.ts';
import { annotations } from '../../../crds/names.ts';
import type { Pod } from '../../objects/kinds.ts';
import { stalled, type Draft, type Outcome, type Rejection } from '../../reconcile/outcome.ts';
import type { Snapshot } from '../../reconcile/snapshot.ts';
import { haltOf, withoutCrashLoop, type Halt } from './crash-loop.ts';
import { isRecreated } from './objects.ts';
import { withoutOverDisk, type Course } from './over-disk.ts';
import { diagnose, templateOf, type Expectation } from './pods.ts';
import { chooseFallback, isBetter, toRelease } from './releases.ts';
import { reasonOfRule } from './rollout.ts';
import { startupMs, type podTemplate, type Release } from './template.ts';
import { findCurrent, planTrial, trialPods, type Trial } from './trial.ts';

/** Pod template of a release, with a hash of itself. */
export type HashedTemplate = ReturnType<typeof podTemplate>;

/** What to run, and what led to it. */
export interface Chosen {
  readonly course: Course;
  /** Why the pods of the wanted release cannot serve, if they cannot. */
  readonly failing: Extract<Outcome, { kind: 'stalled' }> | undefined;
  readonly halt: Halt | undefined;
  /** The wanted release is tried while the other one serves. */
  readonly trial: Trial | undefined;
}

/**
 * The wanted release, unless it fills its disk or fails again and again and another one can serve. With a volume, the
 * release that serves stays until the wanted one has been tried.
 *
 * @param snapshot with the settings of the wanted release
 */
export function chooseCourse(
  snapshot: Snapshot,
  draft: Draft,
  wanted: Release,
  templated: (release: Release) => HashedTemplate,
): Chosen {
  const { app, deployment, pods } = snapshot;
  const target = templated(wanted);
  const expected = expectation(snapshot, wanted.port);
  const trying = draft.tried === target.hash ? [] : trialPods(snapshot, target.hash);
  const failing = failureOf([...pods, ...trying], target.hash, expected, snapshot.now);
  const record = chooseFallback(draft, wanted, findCurrent(snapshot, draft, wanted));
  const fallback = record === undefined ? undefined : toRelease(record);
  const halt = haltOf({
    ...{ deployment, readyTemplate: draft.readyTemplate, hash: target.hash },
    pods: [...pods, ...trying],
    inTrial: trying.length > 0,
    rejection: withLog(failing?.rejection, app.status, wanted.commit),
    fallback: record === undefined ? 'none' : isBetter(record, draft, wanted) ? 'better' : 'any',
    isRecreated: isRecreated(app),
  });
  const allowed = withoutOverDisk(wanted, fallback, { deployment, pods }, (release) => templated(release).hash);
  const course = withoutCrashLoop(allowed, wanted, halt, fallback);
  const isWanted = course.release === wanted && !course.isStopped;
  const trial = isWanted ? planTrial({ snapshot, draft, wanted, target, expected }) : undefined;
  if (trial === undefined) return { course, failing, halt, trial };
  return { course: withCurrent(course, trial.current), failing, halt, trial: withFailure(trial, failing) };
}

/** The release that serves stays while the wanted one is tried. */
function withCurrent(course: Course, current: Release): Course {
  return {
    ...course,
    release: current,
    marks: { ...course.marks, [annotations.release]: JSON.stringify(current) },
  };
}

/** What fails in a trial and may pass by itself is said during the trial. */
function withFailure(trial: Trial, failing: Chosen['failing']): Trial {
  if (failing?.rejection === undefined) return trial;
  return { ...trial, outcome: stalled(reasonOfRule(failing.rejection.rule), failing.rejection) };
}

function failureOf(pods: readonly Pod[], hash: string, expected: Expectation, now: Date): Chosen['failing'] {
  const rejection = pods
    .filter((pod) => templateOf(pod) === hash)
    .map((pod) => diagnose(pod, expected, now))
    .find((found) => found !== undefined);
  return rejection === undefined ? undefined : stalled('RolloutTakenBack', rejection);
}

/** With the log that was seen before of the same failure of the same commit, where this one has none. */
function withLog(
  rejection: Rejection | undefined,
  before: HostedAppStatus | undefined,
  commit: string,
): Rejection | undefined {
  if (rejection === undefined || rejection.log !== undefined || before?.source?.commit !== commit) return rejection;
  const { rule, log } = before.rejection ?? {};
  return rule === rejection.rule && log !== undefined ? { ...rejection, log } : rejection;
}

/** What the app was given, for messages. */
export function expectation(snapshot: Snapshot, port: number): Expectation {
  const { startupTime, healthPath, resources } = snapshot.app.spec.run;
  return {
    port,
    startupMs: startupMs(snapshot.app),
    startupTime,
    healthPath,
    memory: resources.memory,
    disk: resources.disk,
  };
}
