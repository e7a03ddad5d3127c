// Whether a repository can be hosted, before a name is taken for it: its git server is asked, through the operator.
import type { LookupAnswer } from '../../../lib/git/lookup.ts';
import { Problem } from '../../../lib/problem.ts';
import type { Repository } from '../../../lib/repository.ts';
import { createValidationProblem } from '../../http/index.ts';
import { repositoryNotFound, repositoryUnreachable, tooManySubmissions } from './problems.ts';

/** A repository as it was submitted: with the branch of an address that names one, such as …/tree/main. */
export interface SubmittedAddress {
  readonly repository: Repository;
  readonly branch?: string | undefined;
}

export interface RepositoryCheckOptions {
  readonly lookUp: (repository: Repository) => Promise<LookupAnswer>;
  /** Repositories in vain from one network within ten minutes. */
  readonly failures?: number;
  readonly now?: () => number;
}

const windowMs = 600_000;

/**
 * Checks that the repository can be read, and that a branch which its address names is the default branch: another one
 * would not be hosted, and must not be dropped without a word.
 * @throws Problem (repository-not-found, repository-unreachable, too-many-submissions, invalid-request)
 */
export type CheckRepository = (submitted: SubmittedAddress, network: string) => Promise<void>;

export function createRepositoryCheck(options: RepositoryCheckOptions): CheckRepository {
  const { lookUp, failures: maximum = 30, now = Date.now } = options;
  const failures = new Map<string, number[]>();

  function recent(network: string): number[] {
    const times = (failures.get(network) ?? []).filter((time) => now() - time < windowMs);
    if (times.length === 0) failures.delete(network);
    else failures.set(network, times);
    return times;
  }

  function fail(network: string): void {
    for (const known of failures.keys()) recent(known);
    failures.set(network, [...recent(network), now()]);
  }

  return async ({ repository, branch }, network) => {
    const [oldest, ...more] = recent(network);
    if (oldest !== undefined && more.length + 1 >= maximum) throw tooMany(maximum, oldest + windowMs - now());
    const answer = await lookUp(repository).catch(() => undefined);
    if (answer?.ok === true) {
      assertDefaultBranch(branch, answer.reference);
      return;
    }
    fail(network);
    if (answer?.final === true)
      throw new Problem(repositoryNotFound, `${answer.message} ${answer.fix} Nothing was created.`, {
        members: { rule: answer.rule },
      });
    throw new Problem(
      repositoryUnreachable,
      `${answer?.message ?? 'The repository could not be checked in time.'} Nothing was created. Submit it again in a minute.`,
      { headers: { 'retry-after': '60' } },
    );
  };
}

function tooMany(maximum: number, waitMs: number): Problem {
  const seconds = Math.max(1, Math.ceil(waitMs / 1000));
  return new Problem(
    tooManySubmissions,
    `${maximum} repositories that your network submitted in the last ten minutes could not be read. Check the addresses, and submit again in ${seconds} seconds.`,
    { headers: { 'retry-after': String(seconds) } },
  );
}

function assertDefaultBranch(branch: string | undefined, reference: string): void {
  if (branch === undefined) return;
  const main = reference.replace(/^refs\/heads\//, '');
  if (branch === main) return;
  const isFolder = branch.startsWith(`${main}/`);
  throw createValidationProblem([
    {
      in: 'body',
      field: 'repo',
      message: isFolder
        ? `names the folder ${branch.slice(main.length + 1)}, and a repository is submitted as a whole`
        : `names the branch ${branch}, and the default branch (${main}) is what is hosted`,
      fix: isFolder
        ? 'Submit owner/name, and set source.path in moorage.yaml.'
        : 'Submit owner/name to host the default branch, or ask the operator of this installation to set spec.source.revision.',
    },
  ]);
}
