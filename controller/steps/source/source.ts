// Step Source: resolves the revision to a commit, or a version of a package to the hash of its file, and polls the repository or
// registry at its interval.
import { createHash } from 'node:crypto';
import type { HostedApp } from '../../../crds/hosted-app.ts';
import { annotations } from '../../../crds/names.ts';
import { type GitAccess, isCommitId, listReferences, type References } from '../../../lib/git/git.ts';
import { findRelease, type RegistryOrigins, ReleaseError } from '../../../lib/packages.ts';
import { type PackageName, RepositoryError, type Repository } from '../../../lib/repository.ts';
import { parseDuration } from '../../../lib/values.ts';
import { formatTimestamp } from '../../objects/kinds.ts';
import { toOneLine } from '../../pipeline/text.ts';
import {
  createDoneOutcome,
  shortenCommit,
  createStalledOutcome,
  createWaitingOutcome,
  type Outcome,
  type Progress,
  type ReasonOf,
  type StatusFields,
  type StepResult,
} from '../../reconcile/outcome.ts';
import type { Snapshot } from '../../reconcile/snapshot.ts';

const retryMs = 30_000;
/** If no commit is known and the repository is unreachable for this long, it is rejected, and polled less often. */
const unreachableMs = 3_600_000;
const rejectedRetryMs = 300_000;

/**
 * Identifies a poll of a repository: `<source>` or `<source>-<value of the poll annotation>`, hashed. Equal polls are made
 * once.
 */
export function identifySource(app: HostedApp): string {
  const { repo, revision, private: isPrivate = false } = app.spec.source;
  const requested = app.metadata.annotations?.[annotations.poll];
  const source = hashText(JSON.stringify([repo, revision ?? null]));
  // A repository that becomes private is polled with its key. Its commit stays known, and what was known of others too.
  const poll = isPrivate ? `private ${requested ?? ''}` : requested;
  return poll === undefined ? source : `${source}-${hashText(poll)}`;
}

export function runSourceStep(snapshot: Snapshot, { fields }: Progress): StepResult {
  const { app, poll, repository } = snapshot;
  const identity = identifySource(app);
  const knownSource = fields.source;
  const source = readSourceHash(knownSource?.polledFor) === readSourceHash(identity) ? knownSource : undefined;
  if (repository instanceof RepositoryError) {
    const outcome = reportFailure(rejectRepository(repository), knownSource !== undefined);
    return { outcomes: { SourceResolved: outcome }, statusPatch: { source } };
  }
  if (poll !== undefined) return takeResult(snapshot, source, identity, poll);
  const dueIn = computeDueMs(snapshot, source, identity);
  return {
    outcomes: { SourceResolved: reportBetweenPolls(snapshot, source, dueIn) },
    statusPatch: { source },
    actions: dueIn <= 0 ? [{ kind: 'poll', repository }] : [],
  };
}

type Source = NonNullable<StatusFields['source']>;

function takeResult(
  snapshot: Snapshot,
  knownSource: Source | undefined,
  identity: string,
  result: RevisionResult,
): StepResult {
  const polledAt = formatTimestamp(snapshot.now);
  if (result.ok) {
    const source = { commit: result.commit, reference: result.reference, polledAt, polledFor: identity };
    const outcome = reportResolved(source, computeDueMs(snapshot, source, identity));
    return { outcomes: { SourceResolved: outcome }, statusPatch: { source } };
  }
  const source = knownSource === undefined ? undefined : { ...knownSource, polledAt, polledFor: identity };
  const afterMs = source === undefined ? addJitter(snapshot.app, retryMs) : computeDueMs(snapshot, source, identity);
  const outcome =
    !result.final && source === undefined
      ? reportUnreached(snapshot, result, afterMs)
      : reportFailure(result, source !== undefined, afterMs);
  return { outcomes: { SourceResolved: outcome }, statusPatch: { source } };
}

/** No commit is known, and the git server does not answer: retried, and rejected after an hour. */
function reportUnreached(
  snapshot: Snapshot,
  { reason, rule, message, fix }: RevisionFailure,
  afterMs: number,
): Outcome {
  const last = snapshot.app.status?.conditions?.find((condition) => condition.type === 'SourceResolved');
  const since = last?.status === 'False' ? Date.parse(last.lastTransitionTime) : snapshot.now.getTime();
  if (snapshot.now.getTime() - since < unreachableMs)
    return {
      kind: 'failed',
      reason,
      message: `${message} ${fix} If it cannot be reached for an hour, it is rejected.`,
      afterMs,
    };
  return createStalledOutcome(
    'RepositoryUnreachable',
    {
      rule,
      message: `The repository could not be reached since ${formatTimestamp(new Date(since))}. ${message}`,
      fix: 'Check its address, and that its git server responds. It is asked every five minutes, and the app continues when it responds.',
    },
    addJitter(snapshot.app, rejectedRetryMs),
  );
}

function reportFailure(failure: RevisionFailure, isKnown: boolean, afterMs?: number): Outcome {
  const { rule, message, fix } = failure;
  if (failure.final) return createStalledOutcome(failure.reason, { rule, message, fix }, afterMs);
  // If a git server is down for an hour, its apps must not all look broken.
  return { kind: 'failed', reason: failure.reason, message: `${message} ${fix}`, afterMs, blocking: !isKnown };
}

/** Between two polls, the result of the last one still holds, including a failure. */
function reportBetweenPolls(snapshot: Snapshot, source: Source | undefined, dueIn: number): Outcome {
  const afterMs = dueIn > 0 ? dueIn : undefined;
  const last = snapshot.app.status?.conditions?.find((condition) => condition.type === 'SourceResolved');
  if (source === undefined)
    return last?.status === 'False'
      ? repeatOutcome(snapshot, last.reason, last.message, false, afterMs)
      : createWaitingOutcome('Resolving', 'Resolving the newest commit of the repository.');
  if (last?.status === 'False') return repeatOutcome(snapshot, last.reason, last.message, true, afterMs);
  return reportResolved(source, afterMs);
}

function repeatOutcome(
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

function reportResolved(source: Source, afterMs: number | undefined): Outcome {
  const from = (source.reference ?? '').replace(/^refs\/(heads|tags)\//, '');
  return createDoneOutcome(
    'Resolved',
    from === '' || from === source.commit
      ? `Commit ${shortenCommit(source.commit)}.`
      : `${from} is at commit ${shortenCommit(source.commit)}.`,
    afterMs,
  );
}

/** Milliseconds until the next poll; 0 or less: now. Infinity for a commit ID, which cannot move. */
function computeDueMs(snapshot: Snapshot, source: Source | undefined, identity: string): number {
  const { app, now } = snapshot;
  if (app.spec.suspend && source !== undefined) return Infinity;
  if (source?.polledAt === undefined || source.polledFor !== identity) return 0;
  if (isCommitId(app.spec.source.revision)) return Infinity;
  const interval = Math.max(30_000, parseDuration(app.spec.source.interval));
  return Date.parse(source.polledAt) + addJitter(app, interval) - now.getTime();
}

/**
 * 90 to 110 % of `ms`, constant per app, so that apps created together drift apart and a restart changes nothing.
 */
function addJitter(app: HostedApp, ms: number): number {
  const share = createHash('sha256').update(app.metadata.uid).digest().readUInt32BE(0) / 0xffff_ffff;
  return Math.round(ms * (0.9 + 0.2 * share));
}

function readSourceHash(identity: string | undefined): string | undefined {
  return identity?.split('-')[0];
}

function hashText(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 12);
}

// Resolving: the git server lists its references, or the registry names a release; nothing is fetched.

export interface RevisionQuery {
  readonly repository: Repository;
  readonly revision?: string | undefined;
}

interface Explanation {
  readonly ok: false;
  readonly rule: string;
  readonly message: string;
  readonly fix: string;
}

/** `final`: a retry cannot help until a person changes something. */
export type RevisionFailure = Explanation &
  (
    | { readonly final: true; readonly reason: ReasonOf<'stalled'> }
    | { readonly final: false; readonly reason: ReasonOf<'failed'> }
  );

export type RevisionResult =
  { readonly ok: true; readonly commit: string; readonly reference: string } | RevisionFailure;

/** Resolves the revision. Never rejects: every error becomes a failure with a reason and a fix. */
export async function resolveRevision(
  { repository, revision }: RevisionQuery,
  access?: GitAccess,
  origins?: RegistryOrigins,
): Promise<RevisionResult> {
  if (repository.package !== undefined && !isCommitId(revision))
    return resolveVersion(repository.package, revision, origins);
  if (revision !== undefined && isForeignReference(revision)) return rejectRevision(revision);
  if (isCommitId(revision)) return { ok: true, commit: revision, reference: revision };
  const names = listCandidates(revision);
  try {
    // A tag object stands for its commit, which is listed under the name with ^{}.
    const references = await listReferences(
      repository,
      names.flatMap((name) => [name, `${name}^{}`]),
      access,
    );
    return chooseReference(references, names) ?? reportNotFound(revision);
  } catch (error) {
    const output = formatError(error);
    return repository.isPrivate === true ? explainSshFailure(output) : explainFailure(output);
  }
}

/** Resolves a version of a package, or its newest one. */
async function resolveVersion(
  packageName: PackageName,
  version: string | undefined,
  origins: RegistryOrigins | undefined,
): Promise<RevisionResult> {
  try {
    const release = await findRelease(packageName, { version }, origins);
    return { ok: true, commit: release.commit, reference: release.version };
  } catch (error) {
    if (!(error instanceof ReleaseError))
      return explainUnreachable(`The registry could not be asked (${toOneLine(formatError(error)).slice(0, 300)}).`);
    const { kind, message, fix } = error;
    const [reason, rule] = releaseFailures[kind];
    return createFinalFailure(reason, rule, message, fix);
  }
}

const releaseFailures = {
  'no-package': ['RepositoryNotFound', 'source/repository-not-found'],
  'no-release': ['RevisionNotFound', 'source/revision-not-found'],
  'no-source': ['RepositoryRefused', 'source/package-without-source'],
} as const satisfies Record<ReleaseError['kind'], readonly [ReasonOf<'stalled'>, string]>;

export function rejectRepository(error: RepositoryError): RevisionFailure {
  return createFinalFailure(
    'RepositoryRefused',
    'source/repository-refused',
    toSentence(error.message),
    toSentence(error.fix),
  );
}

/** References other than branches and tags belong to pull and merge requests, which anybody can open. */
function isForeignReference(revision: string): boolean {
  return revision.startsWith('refs/') && !/^refs\/(heads|tags)\/./.test(revision);
}

function rejectRevision(revision: string): RevisionFailure {
  return createFinalFailure(
    'RevisionNotFound',
    'source/revision-not-found',
    `${revision} is neither a branch nor a tag. Commits of pull requests are not built, since anybody can open one.`,
    'Ask the operator of this installation to set spec.source.revision to a branch, a tag or a full commit ID, or to remove it.',
  );
}

/** The full names that a revision may stand for; a branch wins over a tag of the same name. */
function listCandidates(revision: string | undefined): string[] {
  if (revision === undefined) return ['HEAD'];
  return revision.startsWith('refs/') ? [revision] : [`refs/heads/${revision}`, `refs/tags/${revision}`];
}

function chooseReference({ commits, symbolic }: References, names: readonly string[]): RevisionResult | undefined {
  for (const name of names) {
    const commit = commits.get(`${name}^{}`) ?? commits.get(name);
    if (commit !== undefined) return { ok: true, commit, reference: symbolic.get(name) ?? name };
  }
  return undefined;
}

function reportNotFound(revision: string | undefined): RevisionFailure {
  if (revision === undefined) {
    return createFinalFailure(
      'RepositoryEmpty',
      'source/repository-empty',
      'The repository has no commits on its default branch.',
      'Push your app to the default branch.',
    );
  }
  return createFinalFailure(
    'RevisionNotFound',
    'source/revision-not-found',
    `The repository has no branch or tag named ${revision}.`,
    'Push it, or ask the operator of this installation to set spec.source.revision to an existing branch, tag or full commit ID.',
  );
}

const redirected = /returned error: 30\d|redirect/i;
const absent =
  /not found|returned error: (401|403|404|410)|could not read Username|Authentication failed|terminal prompts disabled|does not appear to be a git repository|not valid: is this a git repository/i;

function explainFailure(output: string): RevisionFailure {
  const detail = findLastLine(output);
  if (redirected.test(output)) {
    return createFinalFailure(
      'RepositoryMoved',
      'source/repository-moved',
      `The repository has moved to another address (${detail}).`,
      'Submit the repository under its new address.',
    );
  }
  if (absent.test(output)) {
    return createFinalFailure(
      'RepositoryNotFound',
      'source/repository-not-found',
      `No public repository was found at this address (${detail}).`,
      'Check the address, or make the repository public.',
    );
  }
  return explainUnreachable(`The git server could not be reached (${detail}).`);
}

const unreachedBySsh = /^ssh: |^this installation has no|connection (closed|reset|timed out)|no response within/im;

/** The repository has to be given its deploy key. */
export const deployKeyRule = 'source/deploy-key-refused';

/** ssh ends before git when it reaches no server, or one that it does not recognize. What else fails is for the server to say. */
function explainSshFailure(output: string): RevisionFailure {
  const lines = output.split('\n').filter((line) => !/^(fatal|Please make sure|and the repository exists)/.test(line));
  const detail = findLastLine(lines.join('\n'));
  if (/host key verification failed|no matching host key type/i.test(output))
    return explainUnreachable(
      'The git server has another SSH host key than this installation expects. The operator of this installation can set git.sshHostKeys.',
    );
  if (unreachedBySsh.test(output) || !/could not read from remote repository/i.test(output))
    return explainUnreachable(`The git server could not be reached over SSH (${detail}).`);
  return createFinalFailure(
    'DeployKeyRefused',
    deployKeyRule,
    `The git server does not accept the deploy key of this repository (${detail}).`,
    'Add the key to the repository at its forge, with read access. GET /api/deploy-keys/{owner}/{name} and `moorage deploy-key` show it.',
  );
}

function explainUnreachable(message: string): RevisionFailure {
  return {
    ...{ ok: false, final: false, reason: 'RepositoryUnreachable', rule: 'source/repository-unreachable' },
    ...{ message, fix: 'It is retried automatically.' },
  };
}

function formatError(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function findLastLine(output: string): string {
  const lines = output
    .split('\n')
    .map(toOneLine)
    .filter((line) => line !== '');
  return (lines.findLast((line) => line.startsWith('fatal:')) ?? lines.at(-1) ?? 'no response')
    .replace(/^fatal: /, '')
    .slice(0, 300);
}

function createFinalFailure(reason: ReasonOf<'stalled'>, rule: string, message: string, fix: string): RevisionFailure {
  return { ok: false, final: true, reason, rule, message, fix };
}

function toSentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}${text.endsWith('.') ? '' : '.'}`;
}
