// Resolves a revision to a commit by asking the git server, without fetching anything.
import { isCommitId, listReferences, type References } from '../../../lib/git/git.ts';
import type { Repository, RepositoryError } from '../../../lib/repository.ts';
import type { ReasonOf } from '../../reconcile/reasons.ts';
import { toOneLine } from '../../pipeline/text.ts';

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

/** `final`: asking again will not help until a person changes something. */
export type RevisionFailure = Explanation &
  (
    | { readonly final: true; readonly reason: ReasonOf<'stalled'> }
    | { readonly final: false; readonly reason: ReasonOf<'failed'> }
  );

export type RevisionResult =
  { readonly ok: true; readonly commit: string; readonly reference: string } | RevisionFailure;

/** Resolves the revision. Never rejects: whatever goes wrong is a failure with a reason and a fix. */
export async function resolveRevision(
  { repository, revision }: RevisionQuery,
  readSecret?: string,
): Promise<RevisionResult> {
  if (revision !== undefined && isForeignReference(revision)) return refusedRevision(revision);
  if (isCommitId(revision)) return { ok: true, commit: revision, reference: revision };
  const names = candidates(revision);
  try {
    // A tag object stands for the commit that it was made of, which is listed under the name with ^{}.
    const references = await listReferences(
      repository,
      names.flatMap((name) => [name, `${name}^{}`]),
      readSecret,
    );
    return choose(references, names) ?? notFound(revision);
  } catch (error) {
    return explain(error instanceof Error ? error.message : String(error));
  }
}

/** The failure of a repository whose address is refused. */
export function refusedRepository(error: RepositoryError): RevisionFailure {
  return final('RepositoryRefused', 'source/repository-refused', sentence(error.message), sentence(error.fix));
}

/** Other references than branches and tags are those of pull and merge requests, which anybody can open. */
function isForeignReference(revision: string): boolean {
  return revision.startsWith('refs/') && !/^refs\/(heads|tags)\/./.test(revision);
}

function refusedRevision(revision: string): RevisionFailure {
  return final(
    'RevisionNotFound',
    'source/revision-not-found',
    `${revision} is neither a branch nor a tag. Commits of pull requests are not built, since anybody can open one.`,
    'Ask the operator of this installation to set spec.source.revision to a branch, a tag or a full commit ID, or to remove it.',
  );
}

/** Full names that a revision may have; a branch wins over a tag of the same name. */
function candidates(revision: string | undefined): string[] {
  if (revision === undefined) return ['HEAD'];
  return revision.startsWith('refs/') ? [revision] : [`refs/heads/${revision}`, `refs/tags/${revision}`];
}

function choose({ commits, symbolic }: References, names: readonly string[]): RevisionResult | undefined {
  for (const name of names) {
    const commit = commits.get(`${name}^{}`) ?? commits.get(name);
    if (commit !== undefined) return { ok: true, commit, reference: symbolic.get(name) ?? name };
  }
  return undefined;
}

function notFound(revision: string | undefined): RevisionFailure {
  if (revision === undefined) {
    return final(
      'RepositoryEmpty',
      'source/repository-empty',
      'The repository has no commits on its default branch.',
      'Push your app to the default branch.',
    );
  }
  return final(
    'RevisionNotFound',
    'source/revision-not-found',
    `The repository has no branch or tag named ${revision}.`,
    'Push it, or ask the operator of this installation to set spec.source.revision to an existing branch, tag or full commit ID.',
  );
}

const redirected = /returned error: 30\d|redirect/i;
const absent =
  /not found|returned error: (401|403|404|410)|could not read Username|Authentication failed|terminal prompts disabled|does not appear to be a git repository|not valid: is this a git repository/i;

function explain(output: string): RevisionFailure {
  const detail = lastLine(output);
  if (redirected.test(output)) {
    return final(
      'RepositoryMoved',
      'source/repository-moved',
      `The repository has moved to another address (${detail}).`,
      'Submit the repository under its new address.',
    );
  }
  if (absent.test(output)) {
    return final(
      'RepositoryNotFound',
      'source/repository-not-found',
      `No public repository was found at this address (${detail}).`,
      'Check the address, or make the repository public.',
    );
  }
  return {
    ok: false,
    final: false,
    reason: 'RepositoryUnreachable',
    rule: 'source/repository-unreachable',
    message: `The git server could not be reached (${detail}).`,
    fix: 'It is retried automatically.',
  };
}

function lastLine(output: string): string {
  const lines = output
    .split('\n')
    .map(toOneLine)
    .filter((line) => line !== '');
  return (lines.findLast((line) => line.startsWith('fatal:')) ?? lines.at(-1) ?? 'no response')
    .replace(/^fatal: /, '')
    .slice(0, 300);
}

function final(reason: ReasonOf<'stalled'>, rule: string, message: string, fix: string): RevisionFailure {
  return { ok: false, final: true, reason, rule, message, fix };
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}${text.endsWith('.') ? '' : '.'}`;
}
