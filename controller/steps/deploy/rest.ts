// Puts unused apps to rest and wakes them: decides by what the activators have seen, and applies that to the deploy step.
import type { HostedApp, HostedAppStatus } from '../../../crds/hosted-app.ts';
import { annotations } from '../../../crds/names.ts';
import { keptGaps, keptWakes, type IdleState, type IdleStatus } from '../../../crds/status.ts';
import { parseDuration, omitUndefined } from '../../../lib/values.ts';
import {
  isConditionTrue,
  listContainers,
  type Pod,
  formatTimestamp,
  parseBytes,
  parseMilli,
} from '../../objects/kinds.ts';
import type { InstallationConfig } from '../../reconcile/installation-config.ts';
import { createDoneOutcome, type Action, type Outcome } from '../../reconcile/outcome.ts';
import type { IdleView, Snapshot } from '../../reconcile/snapshot.ts';
import { listAppComponents } from './components.ts';
import { resolveReplicas } from './objects.ts';
import { deriveRequests } from './pod-template.ts';
import { isReady, readTemplateHash } from './pods.ts';

/** How an app that may rest continues. */
export interface RestResult {
  /** For the status; undefined: the app is reached directly. */
  readonly status: IdleStatus | undefined;
  /** No pod should run. */
  readonly isAsleep: boolean;
  /** Its release was ready before, so starting pods are a wake and not a rollout. */
  readonly isKnown: boolean;
  readonly actions: readonly Action[];
  readonly afterMs: number | undefined;
}

/**
 * @param snapshot with the settings of the wanted release
 * @param hash of the template of the wanted release
 * @param isKnown whether that release was ready before
 */
export function keepRest(snapshot: Snapshot, hash: string, isKnown: boolean): RestResult {
  const { app, pods } = snapshot;
  const { status, close, afterMs } = decideRest(toRestInput(snapshot, hash, isKnown));
  const asks: Action[] = close === undefined ? [] : [{ kind: 'close', request: { app: app.metadata.name, ...close } }];
  const naps = planNaps(app, pods, status?.state === 'Napping');
  // The activators must see that the app sleeps before its pods go.
  const isAsleep = status?.state === 'Asleep' && isStateWritten(app, status);
  return {
    status,
    isAsleep,
    isKnown,
    actions: [...asks, ...naps],
    afterMs: status?.state === 'Asleep' && !isAsleep ? 0 : afterMs,
  };
}

function isStateWritten({ status }: HostedApp, { state, number }: IdleStatus): boolean {
  return status?.idle?.state === state && status.idle.number === number;
}

const unknown: IdleView = { activators: 'unknown', activity: undefined, isClosed: undefined };

function toRestInput(snapshot: Snapshot, hash: string, isKnown: boolean): RestInput {
  const { app, config, idle = unknown, now, pods } = snapshot;
  const hasWorkers = listAppComponents(app).some(({ kind }) => kind === 'worker');
  return {
    ...idle,
    workers: hasWorkers ? idle.workers : undefined,
    now,
    policy: resolveRestPolicy(app, config),
    before: app.status?.idle,
    // NaN matches no rest.
    wantedNumber: Number(app.metadata.annotations?.[annotations.wake]),
    isSettled: isSettled(snapshot),
    isNew: !isKnown,
    isReady: pods.some((pod) => isReady(pod) && readTemplateHash(pod) === hash),
  };
}

/** It serves and was seen to work; a newer commit may be in the pipeline, or was rejected. */
function isSettled({ app, config }: Snapshot): boolean {
  const { conditions, served, page, answer } = app.status ?? {};
  const isJudged = answer === undefined || answer.answeredAt !== undefined || answer.rejection !== undefined;
  const isSeen = config.probeUrl === undefined || (page?.seenAt !== undefined && page.image === served?.image);
  return (
    served !== undefined &&
    isSeen &&
    isJudged &&
    ['Deployed', 'Routed'].every((type) => isConditionTrue(conditions, type))
  );
}

/** True when there is intentionally no pod: the release that served before still counts as serving. */
export function isResting(idle: HostedAppStatus['idle']): boolean {
  return idle?.state === 'Asleep' || idle?.state === 'Waking';
}

/** The outcome of the step, adjusted for rest. */
export function reportRest(outcome: Outcome, { status, isKnown, afterMs }: RestResult): Outcome {
  const times = [outcome.afterMs, afterMs].filter((each) => each !== undefined);
  const next = times.length === 0 ? undefined : Math.min(...times);
  const isWell = outcome.kind === 'done' || outcome.kind === 'waiting';
  const atRest = isWell ? describeRest(outcome, status?.state, isKnown) : undefined;
  return { ...(atRest ?? outcome), afterMs: next };
}

function describeRest(outcome: Outcome, state: IdleState | undefined, isKnown: boolean): Outcome | undefined {
  switch (state) {
    case 'Asleep':
      return createDoneOutcome('Asleep', asleepMessage);
    case 'Waking':
      // For a release that was never ready it is a normal rollout.
      return outcome.kind === 'waiting' && isKnown
        ? createDoneOutcome('Waking', `The app wakes up. ${outcome.message}`)
        : undefined;
    case 'Napping':
      return outcome.kind === 'done' ? createDoneOutcome('Napping', nappingMessage) : undefined;
    default:
      return undefined;
  }
}

const nappingMessage = 'The app is not used and requests a minimum. It answers as usual.';
const asleepMessage = 'The app is asleep, since it was not used. The next request wakes it.';

/** How a resting app is published; undefined: by its answers. */
export function reportPublishedAtRest(idle: HostedAppStatus['idle']): Outcome | undefined {
  if (idle?.state === 'Asleep') return createDoneOutcome('Asleep', asleepMessage);
  return idle?.state === 'Waking'
    ? createDoneOutcome('Waking', 'The app wakes up; requests are held until it serves.')
    : undefined;
}

// The state machine of rest. Pure.

/** A past time without use. */
export interface Gap {
  /** When it ended, in whole seconds, as milliseconds since 1970. */
  readonly at: number;
  readonly seconds: number;
}

/** The use of an app, as seen by all activators together. */
export interface AppActivity {
  /** Requests and connections in progress, held ones included. */
  readonly inFlight: number;
  /** Milliseconds since 1970; undefined: not since the activators started. */
  readonly lastUsedAt: number | undefined;
  readonly gaps: readonly Gap[];
  readonly wakes: readonly Wake[];
}

/** What is known about the workers of an app, which no request shows. Times are milliseconds since 1970. */
export interface WorkerUse {
  /** When one of them was last busy; undefined: not as far as known. */
  readonly busyAt: number | undefined;
  /** When all of them were last measured, or when measuring began. */
  readonly measuredAt: number;
  /** Whether that was recently. */
  readonly isKnown: boolean;
}

/** Whether there are activators: unknown until they were first polled. */
export type Activators = 'unknown' | 'present' | 'absent';

export interface RestInput {
  readonly now: Date;
  /** Undefined: the app always runs. */
  readonly policy: RestPolicy | undefined;
  readonly before: IdleStatus | undefined;
  readonly activators: Activators;
  /** Undefined unless every activator has answered recently. */
  readonly activity: AppActivity | undefined;
  /** Undefined: it has none, or what apps use is not measured here. */
  readonly workers?: WorkerUse | undefined;
  /** Number of the rest that should end; NaN: none. */
  readonly wantedNumber: number;
  /** Whether the activators agreed to hold requests; undefined: they were not asked. */
  readonly isClosed: boolean | undefined;
  /** It serves, was seen to work, and no rollout is in progress. */
  readonly isSettled: boolean;
  /** Its release was never ready, so it must run until it was seen to work. */
  readonly isNew: boolean;
  /** A pod of it takes requests. */
  readonly isReady: boolean;
}

export interface Rest {
  /** Undefined: the app is reached directly. */
  readonly status: IdleStatus | undefined;
  /** Ask the activators to hold requests from now on, if the app was unused for `idleMs`. */
  readonly close?: { readonly number: number; readonly idleMs: number };
  /** Check again after this many milliseconds. */
  readonly afterMs?: number;
}

/** About how often the activators are polled. */
const lookAgainMs = 5_000;
const leastMs = 100;
/** A worker whose use cannot be measured keeps its app awake no longer than this. */
const unmeasuredMs = 10 * 60_000;
/** A use is written to the status no more often. */
const writtenMs = 60_000;

export function decideRest(input: RestInput): Rest {
  const { policy, before, activators, now } = input;
  if (policy === undefined || activators === 'absent') return { status: undefined };
  if (before === undefined && activators === 'unknown') return { status: undefined, afterMs: lookAgainMs };
  const fresh: IdleStatus = { state: 'Awake', since: formatTimestamp(now), number: 0, afterSeconds: 0 };
  const status = addActivity(before ?? fresh, input, policy);
  return transitions[status.state](status, input, policy);
}

/** The transitions of each state. */
const transitions: Readonly<Record<IdleState, (status: IdleStatus, input: RestInput, policy: RestPolicy) => Rest>> = {
  Awake: decideAwake,
  Waking: (status, input) => ({ status: input.isReady ? enterState(status, 'Awake', input) : status }),
  Asleep: (status, input, policy) => ({
    status: shouldWake(status, input, policy) ? enterState(status, 'Waking', input) : status,
  }),
  Napping: (status, input, policy) => ({
    status:
      shouldWake(status, input, policy) || isBusySince(status, input) ? enterState(status, 'Awake', input) : status,
  }),
};

/** In a nap the workers go on with a minimum of CPU, which would slow down one that has something to do. */
function isBusySince({ since }: IdleStatus, { workers }: RestInput): boolean {
  return (workers?.busyAt ?? 0) > Date.parse(since);
}

function enterState(status: IdleStatus, state: IdleState, { now }: RestInput): IdleStatus {
  return { ...status, state, since: formatTimestamp(now) };
}

/** A request in progress wakes the app even if the request to end the rest was lost. */
function shouldWake(status: IdleStatus, { wantedNumber, isNew, activity }: RestInput, policy: RestPolicy): boolean {
  const isOtherDepth = (status.state === 'Napping') !== (policy.depth === 'nap');
  return wantedNumber === status.number || isNew || isOtherDepth || (activity !== undefined && activity.inFlight > 0);
}

function decideAwake(status: IdleStatus, input: RestInput, policy: RestPolicy): Rest {
  const { isClosed, now } = input;
  const number = status.number + 1;
  // Requests are held already, so nothing else counts.
  if (isClosed === true) return { status: { ...enterState(status, 'Asleep', input), number } };
  const idleMs = status.afterSeconds * 1000;
  const remainingMs = idleMs - (now.getTime() - findLastUse(status, input));
  if (!canRest(input) || hasUnknownWorkers(status, input) || hasBusyWorker(input))
    return { status, afterMs: lookAgainMs };
  if (remainingMs > 0) return { status, afterMs: Math.max(remainingMs, leastMs) };
  // In a nap the process stays and answers, so no requests have to be held.
  if (policy.depth === 'nap') return { status: { ...enterState(status, 'Napping', input), number } };
  return isClosed === undefined ? { status, close: { number, idleMs } } : { status, afterMs: lookAgainMs };
}

function canRest({ activity, isSettled }: RestInput): boolean {
  return activity !== undefined && activity.inFlight === 0 && isSettled;
}

/** Whether its workers may be busy without being seen: they were not measured since it woke, or not for a while. */
function hasUnknownWorkers({ since }: IdleStatus, { workers, now }: RestInput): boolean {
  if (workers === undefined) return false;
  const wokeAt = Date.parse(since);
  const isKnown = workers.isKnown && workers.measuredAt > wokeAt;
  return !isKnown && now.getTime() - Math.max(wokeAt, workers.measuredAt) < unmeasuredMs;
}

/** Whether a worker was busy when it was last measured, which may be longer ago than the app's idle time. */
function hasBusyWorker({ workers }: RestInput): boolean {
  return workers?.isKnown === true && workers.busyAt !== undefined && workers.busyAt >= workers.measuredAt;
}

/** Milliseconds since 1970. A busy worker is a use. */
function findLastUse({ lastUsedAt, since }: IdleStatus, { activity, workers }: RestInput): number {
  const times = [Date.parse(since), lastUsedAt === undefined ? 0 : Date.parse(lastUsedAt)];
  return Math.max(...times, activity?.lastUsedAt ?? 0, workers?.busyAt ?? 0);
}

/** Adds the use since the last reconcile. */
function addActivity(status: IdleStatus, { activity }: RestInput, policy: RestPolicy): IdleStatus {
  const used = activity === undefined ? status : addUses(status, activity);
  const { gaps = [], wakes } = used;
  const afterSeconds = policy.after === 'auto' ? chooseIdleSeconds(gaps, wakes?.p95Ms) : policy.after / 1000;
  return { ...used, afterSeconds };
}

function addUses(status: IdleStatus, { lastUsedAt = 0, gaps, wakes }: AppActivity): IdleStatus {
  const known = status.lastUsedAt === undefined ? 0 : Date.parse(status.lastUsedAt);
  const added = gaps.filter(({ at }) => at > known).map(({ seconds }) => seconds);
  const isDue = added.length > 0 || lastUsedAt - known >= writtenMs;
  return omitUndefined({
    ...status,
    lastUsedAt: isDue ? formatTimestamp(new Date(lastUsedAt)) : status.lastUsedAt,
    gaps: added.length === 0 ? status.gaps : [...(status.gaps ?? []), ...added].slice(-keptGaps),
    wakes: addWakes(status.wakes, wakes),
  });
}

// The policy: whether and when an app rests, by its settings or those of the installation.

export interface RestPolicy {
  readonly depth: 'sleep' | 'nap';
  /** Milliseconds without use; auto: chosen from the app's past gaps. */
  readonly after: number | 'auto';
}

/** Undefined: it always runs. @param app with the settings of its manifest */
export function resolveRestPolicy(app: HostedApp, { idle }: InstallationConfig): RestPolicy | undefined {
  const { idleAfter = idle?.after, idle: depth } = app.spec.run;
  if (idle === undefined || idleAfter === undefined || idleAfter === 'never' || resolveReplicas(app) === 0)
    return undefined;
  return { depth, after: idleAfter === 'auto' ? 'auto' : parseDuration(idleAfter) };
}

// How long an unused app stays awake with `auto`: the ski rental problem. Staying awake costs a little each second (rent),
// resting costs one wake (buy), and the time of the next use is unknown.
//
// The break-even time B is the idle time that costs as much as a wake: B = worth × wake. Rest after exactly B, and no
// sequence of gaps costs more than twice the optimum with a known future. With enough gaps of the app itself, T is the time
// that would have cost least over them,
//
//   cost(T) = Σ over gaps g of (g ≤ T ? g : T + B),
//
// among B/2 ≤ T ≤ 2B: within these bounds the worst sequence costs at most three times the best (B/2: 1.5 B against
// 0.5 B; 2B: 3 B against B), however badly the past predicts the future.

/** A second that a person waits for a wake is worth this many seconds of an idle pod. */
const worth = 60;
const leastSeconds = 60;
const maximumSeconds = 3_600;
/** Fewer gaps are too few to learn from. */
const enoughGaps = 10;
/** Assumed as long as no wake was measured. */
const usualMs = 5_000;

/** The idle time in seconds that costs as much as a wake. @param wakeMs how long wakes of the app take */
export function computeBreakEvenSeconds(wakeMs = usualMs): number {
  return Math.min(maximumSeconds, Math.max(leastSeconds, Math.round((worth * wakeMs) / 1000)));
}

/** The idle time to rest after, in seconds. @param gaps past times without use, in seconds */
export function chooseIdleSeconds(gaps: readonly number[], wakeMs?: number): number {
  const even = computeBreakEvenSeconds(wakeMs);
  if (gaps.length < enoughGaps) return even;
  const [least, maximum] = [Math.ceil(even / 2), even * 2];
  // Between two gaps the cost only grows, so the optimum is at a bound or at a gap.
  const candidates = [even, least, maximum, ...gaps.filter((gap) => gap > least && gap < maximum)];
  const computeCost = (after: number): number =>
    gaps.reduce((sum, gap) => sum + (gap <= after ? gap : after + even), 0);
  // At equal cost the shortest, which frees the node sooner.
  return candidates.toSorted((one, other) => computeCost(one) - computeCost(other) || one - other)[0] ?? even;
}

// Wake times: the last ones, and their percentiles.

/** One wake, as an activator measured it. */
export interface Wake {
  /** The rest that it ended. */
  readonly number: number;
  readonly ms: number;
}

type Wakes = NonNullable<IdleStatus['wakes']>;

/** Adds new wakes; if several activators measured the same one, the longest time counts. */
export function addWakes(before: Wakes | undefined, measured: readonly Wake[]): Wakes | undefined {
  const known = before ?? { count: 0, number: 0, recentMs: [] };
  const longest = new Map<number, number>();
  for (const { number, ms } of measured)
    if (number > known.number) longest.set(number, Math.max(ms, longest.get(number) ?? 0));
  if (longest.size === 0) return before;
  const added = [...longest].toSorted(([one], [other]) => one - other).map(([, ms]) => Math.round(ms));
  const recentMs = [...known.recentMs, ...added].slice(-keptWakes);
  return {
    count: known.count + added.length,
    number: Math.max(...longest.keys()),
    p50Ms: computePercentile(recentMs, 0.5),
    p95Ms: computePercentile(recentMs, 0.95),
    recentMs,
  };
}

/** By the nearest rank. */
export function computePercentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? 0;
}

// Naps: the process stays, and an in-place resize lowers its requests to a minimum.

/** The requests of a napping pod. If the node needs memory, it is the first to be evicted. */
export const napRequests = { cpu: '1m', memory: '1Mi' } as const;

/** Resizes pods whose requests do not match. After a nap they get their initial requests again. */
export function planNaps(app: HostedApp, pods: readonly Pod[], isNapping: boolean): Action[] {
  const components = listAppComponents(app);
  return pods.flatMap((pod): Action[] => {
    const changes = listRequests(pod).flatMap(([name, present]) => {
      const component = components.find((each) => each.name === name);
      if (component === undefined || isNap(present) === isNapping) return [];
      const { cpu = '', memory = '' } = deriveRequests(component.resources);
      return [[name, isNapping ? napRequests : { cpu, memory }] as const];
    });
    return changes.length === 0 ? [] : [{ kind: 'resize', pod, requests: Object.fromEntries(changes) }];
  });
}

/** Whether the pod has the requests of a nap, which fitting to use must not raise. */
export function isNapping(pod: Pod): boolean {
  const present = listRequests(pod);
  return present.length > 0 && present.every(([, requests]) => isNap(requests));
}

interface Requests {
  readonly cpu: string;
  readonly memory: string;
}

/** What each container of a running pod requests. */
function listRequests(pod: Pod): (readonly [string, Requests])[] {
  if (pod.metadata.deletionTimestamp !== undefined || pod.status?.phase !== 'Running') return [];
  return listContainers(pod).flatMap(({ name, resources }) => {
    const { cpu, memory } = resources?.requests ?? {};
    return cpu === undefined || memory === undefined ? [] : [[name, { cpu, memory }] as const];
  });
}

/** No container that is awake requests as little: the minimum for fitted apps is at least twice as much. */
function isNap({ cpu, memory }: Requests): boolean {
  return parseMilli(cpu) <= parseMilli(napRequests.cpu) && parseBytes(memory) <= parseBytes(napRequests.memory);
}
