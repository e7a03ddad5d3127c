// Step Source: keeps the commit that the revision resolves to, and polls the repository at its interval.
import { timestamp } from '../../objects/timestamp.ts';
import { createHash } from 'node:crypto';
import type { HostedApp } from '../../../crds/hosted-app.ts';
import { parseDuration } from '../../../lib/values.ts';
import { annotations } from '../../../crds/names.ts';
import type { Snapshot } from '../../reconcile/snapshot.ts';
import { done, short, stalled, waiting, type Draft, type Outcome, type StepResult } from '../../reconcile/outcome.ts';
import { isCommitId } from '../../../lib/git/git.ts';
import { RepositoryError } from '../../../lib/repository.ts';
import { refusedRepository, type RevisionFailure, type RevisionResult } from './revision.ts';

const retryMs = 30_000;
/** A repository of which no commit is known is rejected once it could not be reached for this long; it is asked less often then. */
const unreachableMs = 3_600_000;
const rejectedRetryMs = 300_000;

/**
 * What makes two polls of a repository the same: `<source>` or `<source>-<value of the poll annotation>`, hashed.
 */
export function sourceIdentity(app: HostedApp): string {
  const { repo, revision } = app.spec.source;
  const asked = app.metadata.annotations?.[annotations.poll];
  const source = digest(JSON.stringify([repo, revision ?? null]));
  return asked === undefined ? source : `${source}-${digest(asked)}`;
}

export function sourceStep(snapshot: Snapshot, draft: Draft): StepResult {
  const { app, poll, repository } = snapshot;
  const identity = sourceIdentity(app);
  const known = draft.source;
  if (known !== undefined && sourceHash(known.polledFor) !== sourceHash(identity)) delete draft.source;
  if (repository instanceof RepositoryError)
    return { outcomes: { SourceResolved: failed(refusedRepository(repository), known !== undefined) } };
  if (poll !== undefined) return { outcomes: { SourceResolved: take(snapshot, draft, identity, poll) } };
  const dueIn = untilDue(snapshot, draft.source, identity);
  const actions = dueIn <= 0 ? [{ kind: 'poll', repository } as const] : [];
  return { outcomes: { SourceResolved: standing(snapshot, draft, dueIn) }, actions };
}

function take(snapshot: Snapshot, draft: Draft, identity: string, result: RevisionResult): Outcome {
  const polledAt = timestamp(snapshot.now);
  if (result.ok) {
    draft.source = { commit: result.commit, reference: result.reference, polledAt, polledFor: identity };
    return resolved(draft.source, untilDue(snapshot, draft.source, identity));
  }
  if (draft.source !== undefined) draft.source = { ...draft.source, polledAt, polledFor: identity };
  const afterMs =
    draft.source === undefined ? jitter(snapshot.app, retryMs) : untilDue(snapshot, draft.source, identity);
  if (!result.final && draft.source === undefined) return unreached(snapshot, result, afterMs);
  return failed(result, draft.source !== undefined, afterMs);
}

/** No commit is known, and the git server does not answer: tried again, and rejected after an hour of that. */
function unreached(snapshot: Snapshot, { reason, rule, message, fix }: RevisionFailure, afterMs: number): Outcome {
  const last = snapshot.app.status?.conditions?.find((condition) => condition.type === 'SourceResolved');
  const since = last?.status === 'False' ? Date.parse(last.lastTransitionTime) : snapshot.now.getTime();
  if (snapshot.now.getTime() - since < unreachableMs)
    return {
      kind: 'failed',
      reason,
      message: `${message} ${fix} If it cannot be reached for an hour, it is rejected.`,
      afterMs,
    };
  return stalled(
    'RepositoryUnreachable',
    {
      rule,
      message: `The repository could not be reached since ${timestamp(new Date(since))}. ${message}`,
      fix: 'Check its address, and that its git server responds. It is asked every five minutes, and the app continues when it responds.',
    },
    jitter(snapshot.app, rejectedRetryMs),
  );
}

function failed(failure: RevisionFailure, isKnown: boolean, afterMs?: number): Outcome {
  const { rule, message, fix } = failure;
  if (failure.final) return stalled(failure.reason, { rule, message, fix }, afterMs);
  // A git server that is down for an hour must not make every app on it look broken.
  return { kind: 'failed', reason: failure.reason, message: `${message} ${fix}`, afterMs, blocking: !isKnown };
}

/** Between two polls: the result of the last one still holds, a failure included. */
function standing(snapshot: Snapshot, draft: Draft, dueIn: number): Outcome {
  const afterMs = dueIn > 0 ? dueIn : undefined;
  const last = snapshot.app.status?.conditions?.find((condition) => condition.type === 'SourceResolved');
  if (draft.source === undefined)
    return last?.status === 'False'
      ? again(snapshot, last.reason, last.message, false, afterMs)
      : waiting('Resolving', 'Resolving the newest commit of the repository.');
  if (last?.status === 'False') return again(snapshot, last.reason, last.message, true, afterMs);
  return resolved(draft.source, afterMs);
}

function again(
  snapshot: Snapshot,
  reason: string,
  message: string,
  known: boolean,
  afterMs: number | undefined,
): Outcome {
  const rejection = snapshot.app.status?.rejection;
  const isRejected = !known && rejection?.rule === 'source/repository-unreachable';
  if (reason === 'RepositoryUnreachable' && !isRejected)
    return { kind: 'failed', reason, message, afterMs, blocking: !known };
  return {
    kind: 'stalled',
    reason,
    message,
    afterMs,
    ...(rejection?.rule.startsWith('source/') === true ? { rejection } : {}),
  };
}

function resolved(source: NonNullable<Draft['source']>, afterMs: number | undefined): Outcome {
  const from = (source.reference ?? '').replace(/^refs\/(heads|tags)\//, '');
  return done(
    'Resolved',
    from === '' || from === source.commit
      ? `Commit ${short(source.commit)}.`
      : `${from} is at commit ${short(source.commit)}.`,
    afterMs,
  );
}

/** Milliseconds until the repository is to be asked; 0 or less: now. Infinity for a commit id, which cannot move. */
function untilDue(snapshot: Snapshot, source: Draft['source'], identity: string): number {
  const { app, now } = snapshot;
  if (app.spec.suspend && source !== undefined) return Infinity;
  if (source?.polledAt === undefined || source.polledFor !== identity) return 0;
  if (isCommitId(app.spec.source.revision)) return Infinity;
  const interval = Math.max(30_000, parseDuration(app.spec.source.interval));
  return Date.parse(source.polledAt) + jitter(app, interval) - now.getTime();
}

/**
 * 90 to 110 % of `ms`, the same for an app each time, so that apps made together drift apart and a restart changes
 * nothing.
 */
function jitter(app: HostedApp, ms: number): number {
  const share = createHash('sha256').update(app.metadata.uid).digest().readUInt32BE(0) / 0xffff_ffff;
  return Math.round(ms * (0.9 + 0.2 * share));
}

function sourceHash(identity: string | undefined): string | undefined {
  return identity?.split('-')[0];
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 12);
}
