// Every reason of a step's condition, and how the step then stands. The steps may use no other; the reference lists them.
import type { Outcome, StepCondition } from './outcome.ts';

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
    Building: ['waiting'],
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
    ServiceNotReady: ['failed'],
    ServiceFailed: ['stalled'],
    ServiceUnavailable: ['stalled'],
    WaitingForRoom: ['waiting'],
    ReplicaRefused: ['failed'],
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
    Confirming: ['waiting'],
    ScaledToZero: ['waiting'],
  },
} as const satisfies Record<StepCondition, Reasons>;

/** Those that every condition may have. */
export const commonReasons = { NotReached: ['waiting'], Refused: ['failed'] } as const satisfies Reasons;

type NamesIn<List extends Reasons, Of extends Kind> = {
  [Name in keyof List & string]: Of extends List[Name][number] ? Name : never;
}[keyof List & string];

/** The reasons with which a step may stand so. */
export type ReasonOf<Of extends Kind> =
  | NamesIn<typeof commonReasons, Of>
  | { [Condition in StepCondition]: NamesIn<(typeof reasons)[Condition], Of> }[StepCondition];
