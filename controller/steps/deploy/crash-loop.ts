// Ends the round of an app that has never been ready and fails again and again: it keeps no pod that others could use.
import { z } from 'zod';
import { status } from '../../../crds/hosted-app.ts';
import { annotations } from '../../../crds/names.ts';
import type { Deployment, Pod } from '../../objects/kinds.ts';
import { stalled, type Outcome, type Rejection } from '../../reconcile/outcome.ts';
import { readRelease } from './last-good.ts';
import type { Course } from './over-disk.ts';
import { restartsOf, templateOf } from './pods.ts';
import { reasonOfRule } from './rollout.ts';
import type { Release } from './template.ts';

const halt = z.object({ template: z.string(), rejection: status.shape.rejection.unwrap() });

/** A template that is not started again, and what was said of it: its pods, which could say more, are gone. */
export type Halt = z.output<typeof halt>;

/** Starts in vain after which an app is given up, by what ended them; what is not in it is tried for as long as it is wanted. */
const maximumRestarts: Readonly<Record<string, number>> = {
  'run/crashed': 3,
  'run/out-of-memory': 2,
  'run/never-listened': 0,
  'run/no-such-user': 0,
};
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
  /** Why its pods cannot serve, if they cannot. */
  readonly rejection: Rejection | undefined;
}

/** Whether the wanted template was given up, now or before. A template that was ready once never is. */
export function haltOf(attempts: Attempts): Halt | undefined {
  const { deployment, readyTemplate, hash } = attempts;
  if (readyTemplate === hash) return undefined;
  const noted = readHalt(deployment?.metadata.annotations?.[annotations.halted]);
  return noted?.template === hash ? noted : givenUp(attempts);
}

function givenUp({ pods, hash, rejection }: Attempts): Halt | undefined {
  const enough = maximumRestarts[rejection?.rule ?? ''];
  if (rejection === undefined || enough === undefined) return undefined;
  // Its last words come late at times, and are all that its author has once there is no pod.
  const maximum = rejection.log === undefined && enough > 0 ? enough + 2 : enough;
  const restarts = Math.max(0, ...pods.filter((pod) => templateOf(pod) === hash).map(restartsOf));
  return restarts < maximum ? undefined : { template: hash, rejection: { ...rejection, ...shortened(rejection.log) } };
}

/** What is said of it. */
export function haltedOutcome({ rejection }: Halt): Extract<Outcome, { kind: 'stalled' }> {
  const message = `${rejection.message} It is not started again until there is a new commit, other settings or another submission.`;
  return stalled(reasonOfRule(rejection.rule), { ...rejection, message });
}

/** Passes over a release that was given up: the one before it serves instead, or nothing until the template changes. */
export function withoutCrashLoop(course: Course, wanted: Release, halted: Halt | undefined): Course {
  if (halted === undefined) return course;
  const marks = { ...course.marks, [annotations.halted]: JSON.stringify(halted) };
  const before = readRelease(course.marks[annotations.before]);
  if (course.release !== wanted || course.isStopped) return { ...course, marks };
  if (before === undefined) return { ...course, marks, isStopped: true };
  return {
    ...course,
    release: before,
    marks: { ...marks, [annotations.release]: JSON.stringify(before) },
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
