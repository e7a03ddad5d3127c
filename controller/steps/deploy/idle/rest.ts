// Decides whether an app is awake or at rest, from what the activators have seen of it. Pure.
import { keptGaps, type IdleState, type IdleStatus } from '../../../../crds/status.ts';
import { present } from '../../../objects/present.ts';
import { timestamp } from '../../../objects/timestamp.ts';
import { chooseIdleSeconds } from './idle-time.ts';
import type { RestPolicy } from './policy.ts';
import { withWakes, type Wake } from './wakes.ts';

/** A time without use that has ended. */
export interface Gap {
  /** When it ended, in whole seconds, as milliseconds since 1970. */
  readonly at: number;
  readonly seconds: number;
}

/** What all activators together have seen of an app. */
export interface AppActivity {
  /** Requests and connections in progress, held ones included. */
  readonly inFlight: number;
  /** Milliseconds since 1970; undefined: never since they look. */
  readonly lastUsedAt: number | undefined;
  readonly gaps: readonly Gap[];
  readonly wakes: readonly Wake[];
}

/** Whether there are activators: unknown until they were asked. */
export type Activators = 'unknown' | 'present' | 'absent';

export interface RestInput {
  readonly now: Date;
  /** Undefined: the app always runs. */
  readonly policy: RestPolicy | undefined;
  readonly before: IdleStatus | undefined;
  readonly activators: Activators;
  /** Undefined unless every activator has answered a moment ago. */
  readonly activity: AppActivity | undefined;
  /** The rest that somebody wants to end; NaN: none. */
  readonly wanted: number;
  /** Whether the activators agreed to hold what comes; undefined: they were not asked. */
  readonly isClosed: boolean | undefined;
  /** It serves, was seen to work, and nothing is on its way. */
  readonly isSettled: boolean;
  /** Its release was never ready, so it has to be seen to work. */
  readonly isNew: boolean;
  /** A pod of it takes requests. */
  readonly isReady: boolean;
}

export interface Rest {
  /** Undefined: the app is reached directly. */
  readonly status: IdleStatus | undefined;
  /** Ask the activators to hold what comes from now on, if it was unused for `idleMs`. */
  readonly close?: { readonly number: number; readonly idleMs: number };
  /** Look again after this many milliseconds. */
  readonly afterMs?: number;
}

/** Activators are asked about as often. */
const lookAgainMs = 5_000;
const leastMs = 100;
/** A use is written down no more often. */
const writtenMs = 60_000;

export function decideRest(input: RestInput): Rest {
  const { policy, before, activators, now } = input;
  if (policy === undefined || activators === 'absent') return { status: undefined };
  if (before === undefined && activators === 'unknown') return { status: undefined, afterMs: lookAgainMs };
  const fresh: IdleStatus = { state: 'Awake', since: timestamp(now), number: 0, afterSeconds: 0 };
  const status = withActivity(before ?? fresh, input, policy);
  return next[status.state](status, input, policy);
}

/** What comes of each state. */
const next: Readonly<Record<IdleState, (status: IdleStatus, input: RestInput, policy: RestPolicy) => Rest>> = {
  Awake: awake,
  Waking: (status, input) => ({ status: input.isReady ? entered(status, 'Awake', input) : status }),
  Asleep: (status, input, policy) => ({
    status: mustWake(status, input, policy) ? entered(status, 'Waking', input) : status,
  }),
  Napping: (status, input, policy) => ({
    status: mustWake(status, input, policy) ? entered(status, 'Awake', input) : status,
  }),
};

function entered(status: IdleStatus, state: IdleState, { now }: RestInput): IdleStatus {
  return { ...status, state, since: timestamp(now) };
}

/** A use that began since is seen even if the word of it was lost. */
function mustWake(status: IdleStatus, { wanted, isNew, activity }: RestInput, policy: RestPolicy): boolean {
  const isOther = (status.state === 'Napping') !== (policy.depth === 'nap');
  return wanted === status.number || isNew || isOther || (activity !== undefined && activity.inFlight > 0);
}

function awake(status: IdleStatus, input: RestInput, policy: RestPolicy): Rest {
  const { activity, isClosed, now } = input;
  const number = status.number + 1;
  // What comes is held already, so nothing else counts.
  if (isClosed === true) return { status: { ...entered(status, 'Asleep', input), number } };
  const idleMs = status.afterSeconds * 1000;
  const left = idleMs - (now.getTime() - lastUse(status, activity));
  if (!mayRest(input)) return { status, afterMs: lookAgainMs };
  if (left > 0) return { status, afterMs: Math.max(left, leastMs) };
  // A process that stays needs no holding of what comes: it answers all the time.
  if (policy.depth === 'nap') return { status: { ...entered(status, 'Napping', input), number } };
  return isClosed === undefined ? { status, close: { number, idleMs } } : { status, afterMs: lookAgainMs };
}

function mayRest({ activity, isSettled }: RestInput): boolean {
  return activity !== undefined && activity.inFlight === 0 && isSettled;
}

/** Milliseconds since 1970. */
function lastUse({ lastUsedAt, since }: IdleStatus, activity: AppActivity | undefined): number {
  return Math.max(Date.parse(since), lastUsedAt === undefined ? 0 : Date.parse(lastUsedAt), activity?.lastUsedAt ?? 0);
}

/** With what has been seen of it since. */
function withActivity(status: IdleStatus, { activity }: RestInput, policy: RestPolicy): IdleStatus {
  const used = activity === undefined ? status : withUses(status, activity);
  const { gaps = [], wakes } = used;
  const afterSeconds = policy.after === 'auto' ? chooseIdleSeconds(gaps, wakes?.p95Ms) : policy.after / 1000;
  return { ...used, afterSeconds };
}

function withUses(status: IdleStatus, { lastUsedAt = 0, gaps, wakes }: AppActivity): IdleStatus {
  const known = status.lastUsedAt === undefined ? 0 : Date.parse(status.lastUsedAt);
  const added = gaps.filter(({ at }) => at > known).map(({ seconds }) => seconds);
  const isNews = added.length > 0 || lastUsedAt - known >= writtenMs;
  return present({
    ...status,
    lastUsedAt: isNews ? timestamp(new Date(lastUsedAt)) : status.lastUsedAt,
    gaps: added.length === 0 ? status.gaps : [...(status.gaps ?? []), ...added].slice(-keptGaps),
    wakes: withWakes(status.wakes, wakes),
  });
}
