// Chooses the release to run: the wanted one, a fallback, or the one that serves while the wanted one is tried.
import { z } from 'zod';
import { authorLimits } from '../../../crds/app-manifest.ts';
import { parseComponentStartMs } from '../../../crds/components.ts';
import { status, type HostedAppStatus } from '../../../crds/hosted-app.ts';
import { annotations } from '../../../crds/names.ts';
import type { ReleaseRecord } from '../../../crds/status.ts';
import { isOutOfDisk, type Deployment, type Pod } from '../../objects/kinds.ts';
import {
  shortenCommit,
  createStalledOutcome,
  type Outcome,
  type Rejection,
  type StatusFields,
} from '../../reconcile/outcome.ts';
import type { Snapshot } from '../../reconcile/snapshot.ts';
import { isRecreated, listReleaseComponents, sumDisk, type Release } from './components.ts';
import type { buildPodTemplate } from './pod-template.ts';
import { countRestarts, diagnose, readReadyChange, readTemplateHash, type AppLimits } from './pods.ts';
import { isRejected } from '../publish/answer.ts';
import { chooseFallback, isBetter, isWorking, toRelease } from './releases.ts';
import { toReason } from './rollout.ts';
import { findCurrentRelease, listTrialPods, planTrial, type Trial } from './trial.ts';

/** Pod template of a release, with a hash of itself. */
export type HashedTemplate = ReturnType<typeof buildPodTemplate>;

/** The release to run, and what led to the choice. */
export interface ReleaseChoice {
  readonly plan: RunPlan;
  /** Why the pods of the wanted release cannot serve, if they cannot. */
  readonly failing: Extract<Outcome, { kind: 'stalled' }> | undefined;
  readonly halt: Halt | undefined;
  /** The wanted release is tried while the other one serves. */
  readonly trial: Trial | undefined;
  /** Hash of the template that has passed its trial. */
  readonly tried: string | undefined;
}

/**
 * Chooses the wanted release, unless it fills its disk or fails again and again and another one can serve. With a volume,
 * the release that serves stays until the wanted one has been tried.
 *
 * @param snapshot with the settings of the wanted release
 */
export function chooseRelease(
  snapshot: Snapshot,
  fields: StatusFields,
  wantedRelease: Release,
  buildTemplate: (release: Release) => HashedTemplate,
): ReleaseChoice {
  const { app, deployment, pods } = snapshot;
  const target = buildTemplate(wantedRelease);
  const limits = readAppLimits(snapshot, wantedRelease);
  const trying = fields.tried === target.hash ? [] : listTrialPods(snapshot, target.hash);
  const failing = findFailure([...pods, ...trying], target.hash, limits, snapshot.now);
  const record = chooseFallback(fields, wantedRelease, findCurrentRelease(snapshot, fields, wantedRelease));
  const fallback = record === undefined ? undefined : toRelease(record);
  const crashHalt = findHalt({
    ...{ deployment, readyTemplate: fields.readyTemplate, hash: target.hash },
    pods: [...pods, ...trying],
    inTrial: trying.length > 0,
    rejection: addKnownLog(failing?.rejection, app.status, wantedRelease.commit),
    fallback: record === undefined ? 'none' : isBetter(record, fields, wantedRelease) ? 'better' : 'any',
    isRecreated: isRecreated(app),
  });
  const halt = crashHalt ?? findAnswerHalt(fields, target.hash, record);
  const allowed = skipOverDisk(wantedRelease, fallback, { deployment, pods }, (release) => buildTemplate(release).hash);
  const plan = skipCrashLoop(allowed, wantedRelease, halt, fallback);
  const { trial, tried } =
    plan.release === wantedRelease && !plan.isStopped
      ? planTrial({ snapshot, fields, wantedRelease, target, limits })
      : { trial: undefined, tried: fields.tried };
  if (trial === undefined) return { plan, failing, halt, trial, tried };
  return {
    plan: keepCurrentRelease(plan, trial.current),
    failing,
    halt,
    trial: reportTrialFailure(trial, failing),
    tried,
  };
}

/** A release whose URL does not work is given up if another one works; without one it stays, since it may recover. */
function findAnswerHalt({ answer }: StatusFields, hash: string, fallback: ReleaseRecord | undefined): Halt | undefined {
  if (!isRejected(answer, hash) || fallback === undefined || !isWorking(fallback)) return undefined;
  const { rejection } = answer ?? {};
  return rejection === undefined ? undefined : { template: hash, rejection };
}

/** The serving release stays while the wanted one is tried. */
function keepCurrentRelease(plan: RunPlan, current: Release): RunPlan {
  return {
    ...plan,
    release: current,
    marks: { ...plan.marks, [annotations.release]: JSON.stringify(current) },
  };
}

/** A failure that may pass by itself is reported during the trial. */
function reportTrialFailure(trial: Trial, failing: ReleaseChoice['failing']): Trial {
  if (failing?.rejection === undefined) return trial;
  return { ...trial, outcome: createStalledOutcome(toReason(failing.rejection.rule), failing.rejection) };
}

function findFailure(pods: readonly Pod[], hash: string, limits: AppLimits, now: Date): ReleaseChoice['failing'] {
  const rejection = pods
    .filter((pod) => readTemplateHash(pod) === hash)
    .map((pod) => diagnose(pod, limits, now))
    .find((found) => found !== undefined);
  return rejection === undefined ? undefined : createStalledOutcome('RolloutTakenBack', rejection);
}

/** Adds the log that was seen before, if this is the same failure of the same commit and has none. */
function addKnownLog(
  rejection: Rejection | undefined,
  before: HostedAppStatus | undefined,
  commit: string,
): Rejection | undefined {
  if (rejection === undefined || rejection.log !== undefined || before?.source?.commit !== commit) return rejection;
  const { rule, log } = before.rejection ?? {};
  return rule === rejection.rule && log !== undefined ? { ...rejection, log } : rejection;
}

/** Reads the limits of the components of a release, for messages. @param snapshot with the settings of the release */
export function readAppLimits({ app }: Pick<Snapshot, 'app'>, release: Release): AppLimits {
  return listReleaseComponents(app, release).map((component) => {
    const { name, port, startupTime, healthPath, resources } = component;
    const { memory, disk } = resources;
    const startupMs = parseComponentStartMs(component);
    return { name, isNamed: app.spec.components.length > 1, port, startupMs, startupTime, healthPath, memory, disk };
  });
}

// An app that fills its disk, is evicted and replaced, again and again, is not started any more without a change.

/**
 * A template with this many evictions within a day is not started again. One that takes a week to fill its disk is just
 * replaced.
 */
const maximumEvictions = 2;
const evictionsWithinMs = 24 * 3_600_000;

/**
 * All of it outlives the operator: evicted pods, and annotations for when those are cleaned up.
 */
export interface StopEvidence {
  readonly deployment: Deployment | undefined;
  readonly pods: readonly Pod[];
}

/** What to run, and the annotations that record why. */
export interface RunPlan {
  readonly release: Release;
  readonly marks: Record<string, string>;
  /** The wanted release failed and is not tried again until it changes. */
  readonly isRolledBack: boolean;
  readonly isOverDisk: boolean;
  /** Nothing is left that could run. */
  readonly isStopped: boolean;
}

/** Skips releases that fill their disk: the fallback serves instead, or nothing until the template changes. */
export function skipOverDisk(
  wantedRelease: Release,
  fallback: Release | undefined,
  past: StopEvidence,
  hashTemplate: (release: Release) => string,
): RunPlan {
  const candidates = [wantedRelease, ...(fallback === undefined ? [] : [fallback])].map((release) => ({
    release,
    hash: hashTemplate(release),
  }));
  const stopped = candidates.map(({ hash }) => hash).filter((hash) => isStopped(hash, past));
  const marks = {
    ...(fallback === undefined ? {} : { [annotations.before]: JSON.stringify(fallback) }),
    ...(stopped.length === 0 ? {} : { [annotations.stopped]: [...new Set(stopped)].join(',') }),
  };
  const next = candidates.find(({ hash }) => !stopped.includes(hash));
  const isOverDisk = next !== candidates[0];
  const isStoppedForGood = next === undefined;
  const release = next?.release ?? wantedRelease;
  return {
    release,
    marks: { ...marks, ...noteRelease(release) },
    isRolledBack: !isStoppedForGood && isOverDisk,
    isOverDisk,
    isStopped: isStoppedForGood,
  };
}

function isStopped(hash: string, { deployment, pods }: StopEvidence): boolean {
  return (
    (deployment?.metadata.annotations?.[annotations.stopped] ?? '').split(',').includes(hash) ||
    hasTooManyEvictions(pods.filter((pod) => readTemplateHash(pod) === hash && isOutOfDisk(pod)))
  );
}

function hasTooManyEvictions(evicted: readonly Pod[]): boolean {
  const times = evicted.map(readReadyChange).sort((a, b) => a - b);
  return times.some((time, index) => time - (times[index - maximumEvictions + 1] ?? -Infinity) <= evictionsWithinMs);
}

/** Annotates the Deployment with its whole release: its template does not show the settings of the author. */
function noteRelease(release: Release): Record<string, string> {
  return { [annotations.release]: JSON.stringify(release) };
}

/** The same message each time, whether the evicted pods still exist or not. */
export function reportStoppedForDisk({ spec }: Snapshot['app'], commit: string): Extract<Outcome, { kind: 'stalled' }> {
  const isOneProcess = spec.components.length === 0;
  const fix = isOneProcess
    ? `keep persistent data on a volume (run.volumes in moorage.yaml), or increase run.resources.disk there (maximum ${authorLimits.run.disk})`
    : `keep persistent data on a volume (volumes of a component in moorage.yaml), or increase resources.disk of the component that writes most (maximum ${authorLimits.components.disk} for all together)`;
  return createStalledOutcome('StoppedForDisk', {
    rule: 'run/out-of-disk',
    message: `Commit ${shortenCommit(commit)} exceeded its ${sumDisk({ spec })} of temporary disk ${maximumEvictions} times. It is not restarted until there is a new commit.`,
    fix: `Write less (caches, logs, uploads), ${fix}.`,
  });
}

// A release that fails again and again is given up: a better one serves instead, and one that was never ready occupies no
// resources that others could use.

const haltSchema = z.object({
  template: z.string(),
  rejection: status.shape.rejection.unwrap(),
  /** It failed while another release served, and never replaced it. */
  inTrial: z.boolean().optional(),
});

/** A template that is not started again, with its rejection: its pods are gone, so the rejection is kept here. */
export type Halt = z.output<typeof haltSchema>;

/** Failed restarts after which an app is given up, by rule. Other failures are retried for as long as the release is wanted. */
const maximumRestarts: Readonly<Record<string, number>> = {
  'run/crashed': 3,
  'run/out-of-memory': 2,
  'run/never-listened': 0,
  'run/no-such-user': 0,
};
/** Failures that the author did not cause, and that the kubelet retries. */
const passing: ReadonlySet<string> = new Set(['run/image-pull', 'run/misconfigured']);
/** An annotation cannot hold a whole log. */
const longestLog = 8_000;

/** The starts of the wanted release; all of it outlives the operator. */
export interface Attempts {
  readonly deployment: Deployment | undefined;
  /** Hash of the template that was last ready. */
  readonly readyTemplate: string | undefined;
  readonly pods: readonly Pod[];
  /** Hash of the wanted release's template. */
  readonly hash: string;
  /** Whether there is another release to run. `better`: even if the wanted release was ready before. */
  readonly fallback: 'none' | 'any' | 'better';
  /** The old pod ends before the new one starts, so nothing serves while a release that was never ready is tried. */
  readonly isRecreated: boolean;
  /** Its pods run while another release serves. */
  readonly inTrial: boolean;
  /** Why its pods cannot serve, if they cannot. */
  readonly rejection: Rejection | undefined;
}

/**
 * Whether the wanted template is given up, now or before. One that was ready before is given up only for a better release.
 */
export function findHalt(attempts: Attempts): Halt | undefined {
  const { deployment, readyTemplate, hash, fallback } = attempts;
  const noted = readHalt(deployment?.metadata.annotations?.[annotations.halted]);
  if (noted?.template === hash) return noted;
  return readyTemplate === hash && fallback !== 'better' ? undefined : giveUp(attempts);
}

function giveUp(attempts: Attempts): Halt | undefined {
  const { pods, hash, rejection } = attempts;
  const maximum = rejection === undefined ? undefined : countAllowedRestarts(attempts, rejection);
  if (rejection === undefined || maximum === undefined) return undefined;
  const restarts = Math.max(0, ...pods.filter((pod) => readTemplateHash(pod) === hash).map(countRestarts));
  if (restarts < maximum) return undefined;
  const halt = { template: hash, rejection: { ...rejection, ...truncateLog(rejection.log) } };
  return attempts.inTrial ? { ...halt, inTrial: true } : halt;
}

function countAllowedRestarts(attempts: Attempts, { rule, log }: Rejection): number | undefined {
  const { isRecreated, inTrial, readyTemplate, hash, fallback } = attempts;
  // While another release serves, there is time for failures that may pass by themselves.
  const isUrgent = isRecreated && !(inTrial && passing.has(rule));
  if (isUrgent && readyTemplate !== hash && fallback !== 'none') return 0;
  const enough = maximumRestarts[rule];
  // The log can arrive late, and is all that the author has once there is no pod.
  return enough !== undefined && enough > 0 && log === undefined ? enough + 2 : enough;
}

export function reportHalt({ rejection }: Halt): Extract<Outcome, { kind: 'stalled' }> {
  const message = `${rejection.message} It is not started again until there is a new commit, other settings or another submission.`;
  return createStalledOutcome(toReason(rejection.rule), { ...rejection, message });
}

/** Skips a release that was given up: the fallback serves instead, or nothing until the template changes. */
export function skipCrashLoop(
  plan: RunPlan,
  wantedRelease: Release,
  halted: Halt | undefined,
  fallback: Release | undefined,
): RunPlan {
  if (halted === undefined) return plan;
  const marks = { ...plan.marks, [annotations.halted]: JSON.stringify(halted) };
  if (plan.release !== wantedRelease || plan.isStopped) return { ...plan, marks };
  if (fallback === undefined) return { ...plan, marks, isStopped: true };
  return {
    ...plan,
    release: fallback,
    marks: { ...marks, [annotations.release]: JSON.stringify(fallback) },
    isRolledBack: true,
  };
}

function readHalt(text: string | undefined): Halt | undefined {
  if (text === undefined) return undefined;
  try {
    return haltSchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

function truncateLog(log: string | undefined): { log?: string } {
  return log === undefined ? {} : { log: log.slice(-longestLog) };
}
