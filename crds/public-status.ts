// Derives the public status of a HostedApp (live, in_pipeline or rejected) for people who never see the cluster.
import { isSuspended } from './control.ts';
import type { HostedAppStatus, StoredHostedApp } from './hosted-app.ts';
import { annotations } from './names.ts';

/** The stage of a revision, in lower case. */
export type PublicStage = 'pending' | 'queued' | 'cloning' | 'reviewing' | 'building' | 'deploying' | 'routing';

/** Why something is not served, and what its author can do about it. */
export interface PublicReason {
  /** Name of the rule, like `secrets/aws-access-token`, `build/timeout` or `run/never-listened`. */
  readonly rule: string;
  readonly file?: string | undefined;
  readonly line?: number | undefined;
  readonly message: string;
  /** What to change. */
  readonly fix: string;
  /** Last lines of the log, where there is one. */
  readonly log?: string | undefined;
}

/** How far a revision has come. */
export interface PublicProgress {
  readonly stage: PublicStage;
  /** Start of this stage, RFC 3339. */
  readonly since?: string;
  readonly commit?: string;
  /** Position in the build queue, from 1, while queued. */
  readonly position?: number;
  /** What it is waiting for, in a sentence. */
  readonly message?: string;
}

/** A release that the author chose; nothing newer is deployed until the next deploy. */
export interface PublicPin {
  readonly commit: string;
  /** Newest commit of the repository, if it is another one. */
  readonly newest?: string;
}

/**
 * The public status. `live` means that something answers at `url`. A newer commit in progress is in `update`, a rejected
 * one in `problem`; with either, the app stays `live`.
 */
export type PublicStatus = { readonly pinned?: PublicPin } & (
  | {
      readonly status: 'live';
      readonly url: string;
      readonly commit: string;
      readonly since: string;
      readonly warning?: string;
      readonly update?: PublicProgress;
      readonly problem?: PublicReason;
    }
  | ({ readonly status: 'in_pipeline' } & PublicProgress)
  | { readonly status: 'rejected'; readonly reason: PublicReason; readonly since?: string; readonly commit?: string }
);

type Input = Pick<StoredHostedApp, 'status'> & {
  readonly spec: Pick<StoredHostedApp['spec'], 'suspend' | 'control'>;
  readonly metadata?: { readonly annotations?: Readonly<Record<string, string>> | undefined };
};

/** Derives the public status of an app from its resource alone. An app without a status is `pending`. */
export function toPublicStatus(app: Input): PublicStatus {
  const status = app.status ?? {};
  if (isSuspended(app.spec)) return toSuspended(app.spec, status);
  const pinned = app.spec.control?.release;
  if (pinned === undefined) return toRunning(app, status, status.source?.commit);
  const newest = status.source?.commit;
  const pin: PublicPin = { commit: pinned, ...(newest === pinned ? {} : toOptionalField('newest', newest)) };
  return { ...toRunning(app, status, pinned), pinned: pin };
}

/** @param commit the one that should be deployed */
function toRunning(app: Input, status: HostedAppStatus, commit: string | undefined): PublicStatus {
  const { served, url } = status;
  if (served !== undefined && url !== undefined) return toLive(app, served, url, commit);
  if (status.rejection !== undefined && isRetryRequested(app)) {
    return {
      status: 'in_pipeline',
      stage: 'pending',
      ...toOptionalField('commit', commit),
      message: 'A retry was requested.',
    };
  }
  if (status.rejection !== undefined) {
    return {
      status: 'rejected',
      reason: status.rejection,
      ...toOptionalField('since', status.since),
      ...toOptionalField('commit', commit),
    };
  }
  return { status: 'in_pipeline', ...toProgress(status, commit) };
}

/** A rebuild was requested, and the status does not reflect it yet. */
function isRetryRequested({ metadata, status }: Input): boolean {
  const requested = metadata?.annotations?.[annotations.rebuild];
  return requested !== undefined && requested.slice(0, 100) !== status?.attempt;
}

function toLive(
  { spec, status = {} }: Input,
  served: NonNullable<HostedAppStatus['served']>,
  url: string,
  commit: string | undefined,
): PublicStatus {
  // The operator has not seen the pin yet.
  const isLeaving = spec.control?.release !== undefined && served.commit !== commit;
  const isSettled = (status.phase === 'Live' && !isLeaving) || status.phase === 'Failing';
  return {
    status: 'live',
    url,
    commit: served.commit,
    since: served.since,
    ...(status.rejection === undefined && !isSettled ? { update: toProgress(status, commit) } : {}),
    ...toOptionalField('warning', status.warning),
    ...toOptionalField('problem', status.rejection),
  };
}

function toSuspended({ suspend, control }: Input['spec'], status: HostedAppStatus): PublicStatus {
  const isDeleted = control?.deleteAfter !== undefined;
  const byOperator = 'The operator of this installation can resume the app by setting spec.suspend to false.';
  const reason = {
    rule: 'platform/suspended',
    message: isDeleted
      ? 'Its author deleted the app. It is suspended until it is removed, and its data and its URL are kept until then.'
      : 'The app is suspended: no replicas run and no builds start. Its data and its URL are kept.',
    fix:
      suspend === true
        ? byOperator
        : `The author of the app can ${isDeleted ? 'restore' : 'resume'} it with their author key.`,
  };
  return {
    status: 'rejected',
    reason,
    ...(status.phase === 'Suspended' ? toOptionalField('since', status.since) : {}),
  };
}

function toProgress(status: HostedAppStatus, commit: string | undefined): PublicProgress {
  return {
    stage: stages[status.phase ?? 'Pending'],
    ...toOptionalField('since', status.since),
    ...toOptionalField('commit', commit),
    ...toOptionalField('position', status.phase === 'Queued' ? status.pipeline?.position : undefined),
    ...toOptionalField('message', readReadyMessage(status)),
  };
}

const stages: Readonly<Record<NonNullable<HostedAppStatus['phase']>, PublicStage>> = {
  Pending: 'pending',
  Queued: 'queued',
  Cloning: 'cloning',
  Reviewing: 'reviewing',
  Building: 'building',
  Deploying: 'deploying',
  Routing: 'routing',
  // Live without anything that answers: the last step is being confirmed again.
  Live: 'routing',
  Failing: 'routing',
  Rejected: 'pending',
  Suspended: 'pending',
};

function readReadyMessage(status: HostedAppStatus): string | undefined {
  const ready = status.conditions?.find((condition) => condition.type === 'Ready');
  return ready === undefined || ready.status === 'True' ? undefined : ready.message;
}

function toOptionalField<Key extends string, Value>(key: Key, value: Value | undefined): Partial<Record<Key, Value>> {
  return value === undefined ? {} : ({ [key]: value } as Record<Key, Value>);
}
