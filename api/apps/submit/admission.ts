// What a submission has to pass before a name is taken for it: limits on new apps (per caller and day, per network, for the
// installation), and a repository that its git server can serve.
import { labels } from '../../../crds/names.ts';
import { Problem } from '../../../lib/problem.ts';
import {
  platformFull,
  tooManyApps,
  tooManySubmissions,
  repositoryNotFound,
  repositoryUnreachable,
} from '../problems.ts';
import type { App, AppIndex } from '../hosted-apps.ts';
import type { LookupAnswer } from '../../../lib/git/lookup.ts';
import type { Repository } from '../../../lib/repository.ts';
import { createValidationProblem } from '../../http/index.ts';

export interface Limits {
  /** New apps of one caller within 24 hours. */
  readonly perCallerAndDay: number;
  /** Apps of the installation. */
  readonly apps: number;
  /** Apps submitted from one network at any time. */
  readonly perNetwork: number;
}

/** Hashes of the submitting caller and its network. */
export interface Submitter {
  readonly caller: string;
  readonly network: string;
}

const dayMs = 86_400_000;

/**
 * Counts the apps in the cache and those that were created but are not in it yet.
 * @param now milliseconds since the epoch
 * @throws Problem (too-many-submissions with Retry-After, platform-full)
 */
export function assertWithinLimits(
  apps: AppIndex,
  unseen: readonly App[],
  { caller, network }: Submitter,
  limits: Limits,
  now: number,
): void {
  if (apps.size + unseen.length >= limits.apps) {
    throw new Problem(
      platformFull,
      `This installation hosts ${limits.apps} apps, which is its limit. Ask the operator of this installation to raise it.`,
      { headers: { 'retry-after': '3600' } },
    );
  }
  const near = [
    ...apps.listByNetwork(network),
    ...unseen.filter((app) => app.metadata.labels?.[labels.network] === network),
  ].length;
  if (near >= limits.perNetwork) {
    throw new Problem(
      tooManyApps,
      `Your network has ${near} apps here; the limit is ${limits.perNetwork}. An app that never goes live is deleted after a while, which makes room. Ask the operator of this installation to delete one that is no longer needed.`,
      { headers: { 'retry-after': '86400' }, members: { limit: limits.perNetwork, used: near } },
    );
  }
  const mine = [
    ...apps.listByCaller(caller),
    ...unseen.filter((app) => app.metadata.labels?.[labels.caller] === caller),
  ];
  const times = mine
    .map((app) => Date.parse(app.metadata.creationTimestamp))
    .filter((time) => now - time < dayMs)
    .sort((a, b) => a - b);
  const blocking = times[times.length - limits.perCallerAndDay];
  if (times.length < limits.perCallerAndDay || blocking === undefined) return;
  const seconds = Math.max(1, Math.ceil((blocking + dayMs - now) / 1000));
  throw new Problem(
    tooManySubmissions,
    `You have submitted ${times.length} new repositories within 24 hours; the limit is ${limits.perCallerAndDay}. Submit this one in ${formatWait(seconds)}.`,
    {
      headers: { 'retry-after': String(seconds) },
      members: {
        limit: limits.perCallerAndDay,
        used: times.length,
        retry_at: new Date(blocking + dayMs).toISOString(),
      },
    },
  );
}

function formatWait(seconds: number): string {
  if (seconds < 120) return seconds === 1 ? '1 second' : `${seconds} seconds`;
  return seconds < 7200 ? `${Math.ceil(seconds / 60)} minutes` : `${Math.ceil(seconds / 3600)} hours`;
}

/** A repository as it was submitted, with the branch if the address names one, such as …/tree/main. */
export interface SubmittedAddress {
  readonly repository: Repository;
  readonly branch?: string | undefined;
}

export interface RepositoryCheckOptions {
  readonly lookUp: (repository: Repository) => Promise<LookupAnswer>;
  /** Failed checks per network within ten minutes; default 30. */
  readonly failures?: number;
  readonly now?: () => number;
}

const windowMs = 600_000;

/**
 * Checks, through the operator, that the repository can be read, and that a branch in its address is the default branch:
 * another branch would not be hosted, and must not be ignored silently.
 * @throws Problem (repository-not-found, repository-unreachable, too-many-submissions, invalid-request)
 */
export type CheckRepository = (submitted: SubmittedAddress, network: string) => Promise<void>;

export function createRepositoryCheck(options: RepositoryCheckOptions): CheckRepository {
  const { lookUp, failures: maximum = 30, now = Date.now } = options;
  const failures = new Map<string, number[]>();

  function listRecentFailures(network: string): number[] {
    const times = (failures.get(network) ?? []).filter((time) => now() - time < windowMs);
    if (times.length === 0) failures.delete(network);
    else failures.set(network, times);
    return times;
  }

  function fail(network: string): void {
    for (const known of failures.keys()) listRecentFailures(known);
    failures.set(network, [...listRecentFailures(network), now()]);
  }

  return async ({ repository, branch }, network) => {
    const [oldest, ...more] = listRecentFailures(network);
    if (oldest !== undefined && more.length + 1 >= maximum)
      throw createTooManyFailures(maximum, oldest + windowMs - now());
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

function createTooManyFailures(maximum: number, waitMs: number): Problem {
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
