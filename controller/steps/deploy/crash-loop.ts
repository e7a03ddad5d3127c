// Ends the restarts of a release that fails again and again: a better one serves instead, and one that was never ready
// keeps no pod that others could use.
import { z } from 'zod';
import { status } from '../../../crds/hosted-app.ts';
import { annotations } from '../../../crds/names.ts';
import type { Deployment, Pod } from '../../objects/kinds.ts';
import { stalled, type Outcome, type Rejection } from '../../reconcile/outcome.ts';
import type { Course } from './over-disk.ts';
import { restartsOf, templateOf } from './pods.ts';
import { reasonOfRule } from './rollout.ts';
import type { Release } from './template.ts';

const halt = z.object({
  template: z.string(),
  rejection: status.shape.rejection.unwrap(),
  /** It failed while another release served, and never replaced it. */
  inTrial: z.boolean().optional(),
});

/** A template that is not started again, and what was said of it: its pods, which could say more, are gone. */
export type Halt = z.output<typeof halt>;

/** Starts in vain after which an app is given up, by what ended them; what is not in it is tried for as long as it is wanted. */
const maximumRestarts: Readonly<Record<string, number>> = {
  'run/crashed': 3,
  'run/out-of-memory': 2,
  'run/never-listened': 0,
  'run/no-such-user': 0,
};
/** What the author did not cause, and is tried again by the kubelet. */
const passing: ReadonlySet<string> = new Set(['run/image-pull', 'run/misconfigured']);
/** An annotation is no place for a whole log. */
const longestLog = 8_000;

/** What is looked at; all of it outlives the operator. */
export interface Attempts {
  readonly deployment: Deployment | undefined;
  /** Hash of the template that was last ready. */
  readonly readyTemplate: string | undefined;
  readonly pods: readonly Pod[];
  /** Hash of the wanted release's template. */
  readonly hash: string;
  /** There is another release to run. `better`: also instead of a wanted one that was ready before. */
  readonly fallback: 'none' | 'any' | 'better';
  /** The old pod ends before the new one starts, so nothing serves while a release that was never ready is tried. */
  readonly isRecreated: boolean;
  /** Its pods run while another release serves. */
  readonly inTrial: boolean;
  /** Why its pods cannot serve, if they cannot. */
  readonly rejection: Rejection | undefined;
}

/**
 * Whether the wanted template was given up, now or before. One that was ready before is given up for a better release
 * only.
 */
export function haltOf(attempts: Attempts): Halt | undefined {
  const { deployment, readyTemplate, hash, fallback } = attempts;
  const noted = readHalt(deployment?.metadata.annotations?.[annotations.halted]);
  if (noted?.template === hash) return noted;
  return readyTemplate === hash && fallback !== 'better' ? undefined : givenUp(attempts);
}

function givenUp(attempts: Attempts): Halt | undefined {
  const { pods, hash, rejection } = attempts;
  const maximum = rejection === undefined ? undefined : restartsAllowed(attempts, rejection);
  if (rejection === undefined || maximum === undefined) return undefined;
  const restarts = Math.max(0, ...pods.filter((pod) => templateOf(pod) === hash).map(restartsOf));
  if (restarts < maximum) return undefined;
  const given = { template: hash, rejection: { ...rejection, ...shortened(rejection.log) } };
  return attempts.inTrial ? { ...given, inTrial: true } : given;
}

function restartsAllowed(attempts: Attempts, { rule, log }: Rejection): number | undefined {
  const { isRecreated, inTrial, readyTemplate, hash, fallback } = attempts;
  // Beside a release that serves there is time for what may pass by itself.
  const isUrgent = isRecreated && !(inTrial && passing.has(rule));
  if (isUrgent && readyTemplate !== hash && fallback !== 'none') return 0;
  const enough = maximumRestarts[rule];
  // Its last words come late at times, and are all that its author has once there is no pod.
  return enough !== undefined && enough > 0 && log === undefined ? enough + 2 : enough;
}

/** What is said of it. */
export function haltedOutcome({ rejection }: Halt): Extract<Outcome, { kind: 'stalled' }> {
  const message = `${rejection.message} It is not started again until there is a new commit, other settings or another submission.`;
  return stalled(reasonOfRule(rejection.rule), { ...rejection, message });
}

/** Passes over a release that was given up: the fallback serves instead, or nothing until the template changes. */
export function withoutCrashLoop(
  course: Course,
  wanted: Release,
  halted: Halt | undefined,
  fallback: Release | undefined,
): Course {
  if (halted === undefined) return course;
  const marks = { ...course.marks, [annotations.halted]: JSON.stringify(halted) };
  if (course.release !== wanted || course.isStopped) return { ...course, marks };
  if (fallback === undefined) return { ...course, marks, isStopped: true };
  return {
    ...course,
    release: fallback,
    marks: { ...marks, [annotations.release]: JSON.stringify(fallback) },
    isRolledBack: true,
  };
}

function readHalt(text: string | undefined): Halt | undefined {
  if (text === undefined) return undefined;
  try {
    return halt.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

function shortened(log: string | undefined): { log?: string } {
  return log === undefined ? {} : { log: log.slice(-longestLog) };
}
