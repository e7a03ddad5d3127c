// What a step returns: how it ended, what changes in the status, and the actions it requests.
import type { HostedAppStatus } from '../../crds/hosted-app.ts';
import type { CloseRequest } from '../../crds/reports.ts';
import type { KubeObject, Manifest, Resource } from '../../lib/kubernetes/index.ts';
import type { Repository } from '../../lib/repository.ts';
import { omitUndefined } from '../../lib/values.ts';
import type { PersistentVolumeClaim, Pod } from '../objects/kinds.ts';

export type Rejection = NonNullable<HostedAppStatus['rejection']>;

/** What every outcome reports: `reason` (CamelCase) and `message` become those of a condition and of an event. */
interface Report {
  readonly reason: string;
  readonly message: string;
  /** Look again after this many milliseconds, even if nothing changes. */
  readonly afterMs?: number | undefined;
}

/**
 * - `done`: the step holds.
 * - `waiting`: nothing is wrong; something else has to happen first.
 * - `stalled`: a person has to change something; `rejection` says what.
 * - `failed`: something broke that may well work the next time; it is tried again.
 * `blocking: false` means that it is worth a condition, but the app as a whole is not affected.
 */
export type Outcome =
  | (Report & { readonly kind: 'done' })
  | (Report & { readonly kind: 'waiting' })
  | (Report & { readonly kind: 'stalled'; readonly rejection?: Rejection })
  | (Report & { readonly kind: 'failed'; readonly blocking?: boolean });

export function createDoneOutcome(reason: ReasonOf<'done'>, message: string, afterMs?: number): Outcome {
  return { kind: 'done', reason, message, afterMs };
}

/** Reason of an app that is live and whose page shows faults. */
export const warnedReason = 'LiveWithErrors';

const failingReasons = ['RespondsWithErrors', 'Unreachable'] as const;

/** Whether this reason of a condition means that the URL of a released app fails. */
export function isFailingReason(reason: string): reason is (typeof failingReasons)[number] {
  return failingReasons.some((each) => each === reason);
}

const urlRejections = ['AppResponds404', 'AppRespondsWithErrors', 'AppSilent'] as const;

/** Whether this reason of a condition means that a release was rejected for what its URL answers. */
export function isUrlRejection(reason: string): reason is (typeof urlRejections)[number] {
  return urlRejections.some((each) => each === reason);
}

export function createWaitingOutcome(reason: ReasonOf<'waiting'>, message: string, afterMs?: number): Outcome {
  return { kind: 'waiting', reason, message, afterMs };
}

export function createStalledOutcome(
  reason: ReasonOf<'stalled'>,
  rejection: Rejection,
  afterMs?: number,
): Extract<Outcome, { kind: 'stalled' }> {
  return { kind: 'stalled', reason, message: `${rejection.message} ${rejection.fix}`, rejection, afterMs };
}

export function createFailedOutcome(reason: ReasonOf<'failed'>, message: string, afterMs?: number): Outcome {
  return { kind: 'failed', reason, message, afterMs };
}

/** A change that a step requests. Steps are pure; only reconcile.ts carries these out. */
export type Action =
  | {
      readonly kind: 'apply';
      readonly resource: Resource;
      readonly manifest: Manifest;
      readonly cached: KubeObject | undefined;
    }
  | {
      readonly kind: 'create';
      readonly resource: Resource;
      readonly manifest: Manifest;
      /** Id of a run that the author has requested: created only if the server confirms that it is to be started. */
      readonly request?: string;
    }
  | {
      readonly kind: 'delete';
      readonly resource: Resource;
      readonly object: KubeObject;
      /** The object belongs to another app of this name: deleted only if the server confirms that this app is the current one. */
      readonly isStranger?: boolean;
    }
  /** Delete an object that is not cached, if it exists. Its name must never have stood, nor stand later, for another one. */
  | {
      readonly kind: 'deleteNamed';
      readonly resource: Resource;
      readonly ref: { readonly namespace: string; readonly name: string };
    }
  /** Change annotations of a claim; null removes one. */
  | {
      readonly kind: 'annotate';
      readonly object: PersistentVolumeClaim;
      readonly annotations: Readonly<Record<string, string | null>>;
    }
  | { readonly kind: 'poll'; readonly repository: Repository }
  /**
   * `template`: the pod template that it is about. `paths`: where a page may be if there is none at /. `isLive`: the app was
   * reached before, so that a failure is confirmed before it is reported. `isPatient`: it has not responded in time so far.
   */
  | {
      readonly kind: 'probe';
      readonly host: string;
      readonly template: string | undefined;
      readonly paths: readonly string[];
      readonly isLive?: boolean;
      readonly isPatient?: boolean;
    }
  /** Look up the DNS records that prove domains. */
  | { readonly kind: 'prove'; readonly domains: readonly string[] }
  /** Ask the activators to hold the requests of an app. */
  | { readonly kind: 'close'; readonly request: CloseRequest }
  /** Change what containers of a running pod request, by their names, in place. */
  | {
      readonly kind: 'resize';
      readonly pod: Pod;
      readonly requests: Readonly<Record<string, { readonly cpu: string; readonly memory: string }>>;
    }
  /** `path`: where its page is. `release`: the release that the page belongs to. */
  | {
      readonly kind: 'look';
      readonly host: string;
      readonly path: string;
      readonly release: { readonly image: string; readonly commit: string };
    };

/** The status without what status.ts makes of the outcomes: conditions, phase and since. */
export type StatusFields = Omit<
  HostedAppStatus,
  'conditions' | 'phase' | 'since' | 'checkedAt' | 'observedGeneration' | 'rejection'
>;

/** Status fields that a step sets; one that is undefined is removed. */
export type StatusPatch = { readonly [Field in keyof StatusFields]?: StatusFields[Field] | undefined };

/** The fields as a patch leaves them. A removed field is absent: the API server keeps no undefined one. */
export function applyPatch(fields: StatusFields, patch: StatusPatch = {}): StatusFields {
  return omitUndefined({ ...fields, ...patch });
}

/** What a step returns. */
export interface StepResult {
  /** By condition type. Absent while the turn of the step has not come. */
  readonly outcomes?: Outcomes;
  readonly statusPatch?: StatusPatch;
  /** Carried out immediately, in order. */
  readonly actions?: readonly Action[];
  /** Carried out once the status that reports them is written: a deletion must not be missing from history. */
  readonly afterStatus?: readonly Action[];
}

/** Conditions of the steps in order; `Published` is reported by Ready alone. */
export const stepConditions = ['SourceResolved', 'Reviewed', 'Built', 'Deployed', 'Routed', 'Published'] as const;
export type StepCondition = (typeof stepConditions)[number];
export type Outcomes = Readonly<Partial<Record<StepCondition, Outcome>>>;

/** What the steps before have decided; a step gets it with the snapshot, and changes neither. */
export interface Progress {
  readonly fields: StatusFields;
  readonly outcomes: Outcomes;
}

/** First characters of a commit id, as people write it. */
export function shortenCommit(commit: string): string {
  return commit.slice(0, 7);
}

// Every reason of a step's condition, with the kinds of outcome that may have it. Steps cannot use others, and the
// reference lists them.

type Kind = Outcome['kind'];
type Reasons = Readonly<Record<string, readonly Kind[]>>;

/** By condition. `Published` is reported by Ready. */
export const reasons = {
  SourceResolved: {
    Resolved: ['done'],
    Resolving: ['waiting'],
    RepositoryUnreachable: ['failed', 'stalled'],
    RepositoryRefused: ['stalled'],
    RepositoryNotFound: ['stalled'],
    DeployKeyRefused: ['stalled'],
    RepositoryMoved: ['stalled'],
    RepositoryEmpty: ['stalled'],
    RevisionNotFound: ['stalled'],
  },
  Reviewed: {
    ReviewPassed: ['done'],
    Resolving: ['waiting'],
    Starting: ['waiting'],
    Queued: ['waiting'],
    WaitingForRoom: ['waiting'],
    WaitingForSpace: ['waiting'],
    Cloning: ['waiting'],
    Reviewing: ['waiting'],
    ReviewRejected: ['stalled'],
    ApprovalNeeded: ['stalled'],
  },
  Built: {
    Built: ['done'],
    Pinned: ['done'],
    PinnedReleaseGone: ['stalled'],
    Building: ['waiting'],
    PreparingImage: ['waiting'],
    PipelineFaulted: ['failed', 'stalled'],
    BuildRejected: ['stalled'],
    BuildTimedOut: ['stalled'],
  },
  Deployed: {
    Available: ['done'],
    Asleep: ['done'],
    Waking: ['done'],
    Napping: ['done'],
    ScaledToZero: ['done'],
    Suspended: ['done'],
    Trying: ['waiting'],
    RollingOut: ['waiting'],
    ServicesStarting: ['waiting'],
    PreparingImage: ['waiting'],
    ServiceNotReady: ['failed'],
    ServiceFailed: ['stalled'],
    ServiceUnavailable: ['stalled'],
    WaitingForRoom: ['waiting'],
    ReplicaRefused: ['failed'],
    RunningTasks: ['waiting'],
    TaskFailed: ['stalled'],
    RolloutTimedOut: ['failed'],
    RolloutFailed: ['stalled'],
    RolloutTakenBack: ['stalled'],
    AppCrashed: ['stalled'],
    AppMisconfigured: ['stalled'],
    AppNeverListened: ['stalled'],
    AppOutOfDisk: ['stalled'],
    AppOutOfMemory: ['stalled'],
    ImagePullFailed: ['stalled'],
    StoppedForDisk: ['stalled'],
  },
  Routed: {
    Routed: ['done'],
    RoutePending: ['waiting'],
    RouteRefused: ['failed'],
  },
  Published: {
    Live: ['done'],
    LiveWithErrors: ['done'],
    Asleep: ['done'],
    Waking: ['done'],
    RespondsWithErrors: ['failed'],
    Unreachable: ['failed'],
    AppResponds404: ['stalled'],
    AppRespondsWithErrors: ['stalled'],
    AppSilent: ['stalled'],
    Confirming: ['waiting'],
    ScaledToZero: ['waiting'],
  },
} as const satisfies Record<StepCondition, Reasons>;

/** Reasons that every condition may have. */
export const commonReasons = { NotReached: ['waiting'], Refused: ['failed'] } as const satisfies Reasons;

type ReasonNames<List extends Reasons, Of extends Kind> = {
  [Name in keyof List & string]: Of extends List[Name][number] ? Name : never;
}[keyof List & string];

/** The reasons that an outcome of this kind may have. */
export type ReasonOf<Of extends Kind> =
  | ReasonNames<typeof commonReasons, Of>
  | { [Condition in StepCondition]: ReasonNames<(typeof reasons)[Condition], Of> }[StepCondition];
