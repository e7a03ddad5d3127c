// Puts the decision about rest into a reconcile: what the status says, what is asked for, and how the step then stands.
import type { HostedApp, HostedAppStatus } from '../../../../crds/hosted-app.ts';
import type { IdleState, IdleStatus } from '../../../../crds/status.ts';
import { annotations } from '../../../../crds/names.ts';
import { isTrue } from '../../../objects/kinds.ts';
import { done, type Action, type Draft, type Outcome } from '../../../reconcile/outcome.ts';
import type { IdleView, Snapshot } from '../../../reconcile/snapshot.ts';
import { isReady, templateOf } from '../pods.ts';
import { napActions } from './nap.ts';
import { restPolicy } from './policy.ts';
import { decideRest, type RestInput } from './rest.ts';

/** How an app that may rest goes on. */
export interface KeptRest {
  /** No pod is to run. */
  readonly isAsleep: boolean;
  /** Its release was ready before, so that pods on their way are a wake and no rollout. */
  readonly isKnown: boolean;
  readonly actions: readonly Action[];
  readonly afterMs: number | undefined;
}

/** `snapshot` has the settings of the manifest; `hash` is that of the wanted template. Fills in `draft.idle`. */
export function keepRest(snapshot: Snapshot, draft: Draft, hash: string): KeptRest {
  const { app, pods } = snapshot;
  const isKnown = draft.readyTemplate === hash;
  const { status, close, afterMs } = decideRest(inputOf(snapshot, hash, isKnown));
  if (status === undefined) delete draft.idle;
  else draft.idle = status;
  const asks: Action[] = close === undefined ? [] : [{ kind: 'close', request: { app: app.metadata.name, ...close } }];
  const naps = napActions(app, pods, status?.state === 'Napping');
  // Before its pods go, everybody has to be able to see that it sleeps.
  const isAsleep = status?.state === 'Asleep' && isWritten(app, status);
  return {
    isAsleep,
    isKnown,
    actions: [...asks, ...naps],
    afterMs: status?.state === 'Asleep' && !isAsleep ? 0 : afterMs,
  };
}

function isWritten({ status }: HostedApp, { state, number }: IdleStatus): boolean {
  return status?.idle?.state === state && status.idle.number === number;
}

const unknown: IdleView = { activators: 'unknown', activity: undefined, isClosed: undefined };

function inputOf(snapshot: Snapshot, hash: string, isKnown: boolean): RestInput {
  const { app, config, idle = unknown, now, pods } = snapshot;
  return {
    ...idle,
    now,
    policy: restPolicy(app, config),
    before: app.status?.idle,
    // Not a number: of no rest.
    wanted: Number(app.metadata.annotations?.[annotations.wake]),
    isSettled: isSettled(snapshot),
    isNew: !isKnown,
    isReady: pods.some((pod) => isReady(pod) && templateOf(pod) === hash),
  };
}

/** It serves and was seen to; a newer commit may be on its way, or was rejected. */
function isSettled({ app, config }: Snapshot): boolean {
  const { conditions, served, page } = app.status ?? {};
  const isSeen = config.probeUrl === undefined || (page?.seenAt !== undefined && page.image === served?.image);
  return served !== undefined && isSeen && ['Deployed', 'Routed'].every((type) => isTrue(conditions, type));
}

/** True when there is no pod to serve, and that is as it should be: what served before still stands for the app. */
export function isResting(idle: HostedAppStatus['idle']): boolean {
  return idle?.state === 'Asleep' || idle?.state === 'Waking';
}

/** How the step stands with regard to rest. */
export function withRest(outcome: Outcome, { idle }: Draft, { isKnown, afterMs }: KeptRest): Outcome {
  const times = [outcome.afterMs, afterMs].filter((each) => each !== undefined);
  const next = times.length === 0 ? undefined : Math.min(...times);
  const isWell = outcome.kind === 'done' || outcome.kind === 'waiting';
  const atRest = isWell ? outcomeAtRest(outcome, idle?.state, isKnown) : undefined;
  return { ...(atRest ?? outcome), afterMs: next };
}

function outcomeAtRest(outcome: Outcome, state: IdleState | undefined, isKnown: boolean): Outcome | undefined {
  switch (state) {
    case 'Asleep':
      return done('Asleep', asleepMessage);
    case 'Waking':
      // Of a release that was never ready it is a rollout like any other.
      return outcome.kind === 'waiting' && isKnown ? done('Waking', `The app wakes up. ${outcome.message}`) : undefined;
    case 'Napping':
      return outcome.kind === 'done' ? done('Napping', nappingMessage) : undefined;
    default:
      return undefined;
  }
}

const nappingMessage = 'The app is not used and requests a minimum. It answers as usual.';
const asleepMessage = 'The app is asleep, since it was not used. The next request wakes it.';

/** How an app that rests is published; undefined: by what answers. */
export function publishedAtRest({ idle }: Draft): Outcome | undefined {
  if (idle?.state === 'Asleep') return done('Asleep', asleepMessage);
  return idle?.state === 'Waking' ? done('Waking', 'The app wakes up; requests are held until it serves.') : undefined;
}
