// Step Source: keeps the commit that the revision is at, and asks the repository again when its time has come.
import { timestamp } from '../../objects/timestamp.ts';
import { createHash } from 'node:crypto';
import type { HostedApp } from '../../../crds/hosted-app.ts';
import { parseDuration } from '../../../lib/duration.ts';
import { annotations } from '../../../crds/names.ts';
import type { Observed } from '../../reconcile/snapshot.ts';
import { done, short, stalled, waiting, type Draft, type Outcome, type StepResult } from '../../reconcile/outcome.ts';
import { isCommit, type SourceAnswer } from './ls-remote.ts';

const retryMs = 30_000;

/**
 * What makes two questions to a repository the same: `<settings>` or `<settings>-<value of the poll annotation>`,
 * hashed.
 */
export function sourceIdentity(app: HostedApp): string {
  const { repo, revision } = app.spec.source;
  const asked = app.metadata.annotations?.[annotations.poll];
  const settings = digest(JSON.stringify([repo, revision ?? null]));
  return asked === undefined ? settings : `${settings}-${digest(asked)}`;
}

export function sourceStep(observed: Observed, draft: Draft): StepResult {
  const { app, poll } = observed;
  const identity = sourceIdentity(app);
  const known = draft.source;
  if (known !== undefined && settingsOf(known.polledFor) !== settingsOf(identity)) delete draft.source;
  if (poll !== undefined) return { outcomes: { SourceResolved: take(observed, draft, identity, poll) } };
  const dueIn = untilDue(observed, draft.source, identity);
  const actions = dueIn <= 0 ? [{ kind: 'poll' } as const] : [];
  return { outcomes: { SourceResolved: standing(observed, draft, dueIn) }, actions };
}

function take(observed: Observed, draft: Draft, identity: string, answer: SourceAnswer): Outcome {
  const polledAt = timestamp(observed.now);
  if (answer.ok) {
    draft.source = { commit: answer.commit, reference: answer.reference, polledAt, polledFor: identity };
    return resolved(draft.source, untilDue(observed, draft.source, identity));
  }
  if (draft.source !== undefined) draft.source = { ...draft.source, polledAt, polledFor: identity };
  const afterMs =
    draft.source === undefined ? jitter(observed.app, retryMs) : untilDue(observed, draft.source, identity);
  return refused(answer, draft.source !== undefined, afterMs);
}

function refused(answer: SourceAnswer & { ok: false }, served: boolean, afterMs: number): Outcome {
  const { rule, message, fix, reason } = answer;
  if (answer.final) return stalled(reason, { rule, message, fix }, afterMs);
  // A git server that is down for an hour must not make every app on it look broken.
  return { kind: 'failed', reason, message: `${message} ${fix}`, afterMs, blocking: !served };
}

/** Between two polls: what the last one said still stands, a failure included. */
function standing(observed: Observed, draft: Draft, dueIn: number): Outcome {
  const afterMs = dueIn > 0 ? dueIn : undefined;
  const last = observed.app.status?.conditions?.find((condition) => condition.type === 'SourceResolved');
  if (draft.source === undefined)
    return last?.status === 'False'
      ? again(observed, last.reason, last.message, false, afterMs)
      : waiting('Resolving', 'Asking the repository for its newest commit.');
  if (last?.status === 'False') return again(observed, last.reason, last.message, true, afterMs);
  return resolved(draft.source, afterMs);
}

function again(
  observed: Observed,
  reason: string,
  message: string,
  known: boolean,
  afterMs: number | undefined,
): Outcome {
  const rejection = observed.app.status?.rejection;
  if (reason === 'RepositoryUnreachable') return { kind: 'failed', reason, message, afterMs, blocking: !known };
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
function untilDue(observed: Observed, source: Draft['source'], identity: string): number {
  const { app, now } = observed;
  if (app.spec.suspend && source !== undefined) return Infinity;
  if (source?.polledAt === undefined || source.polledFor !== identity) return 0;
  if (isCommit(app.spec.source.revision)) return Infinity;
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

function settingsOf(identity: string | undefined): string | undefined {
  return identity?.split('-')[0];
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 12);
}
