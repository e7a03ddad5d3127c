// Submits a repository: checks what it has to pass, and creates its HostedApp exactly once, no matter who submits it and how often.
import { readSlug } from '../../../crds/slugs.ts';
import { setTimeout as delay } from 'node:timers/promises';
import { type Client, isApiStatus, type Manifest } from '../../../lib/kubernetes/index.ts';
import {
  annotations,
  group,
  isCatalogSlug,
  isReserved,
  kind,
  labels,
  parseRebuildRequest,
  toDnsLabel,
  version,
} from '../../../crds/names.ts';
import { isSuspended } from '../../../crds/control.ts';
import { toPublicStatus } from '../../../crds/public-status.ts';
import { Problem } from '../../../lib/problem.ts';
import { hashRepository, type Repository } from '../../../lib/repository.ts';
import {
  beingRemoved,
  platformFull,
  tooManyApps,
  tooManySubmissions,
  repositoryNotFound,
  repositoryUnreachable,
} from '../problems.ts';
import { type App, type AppIndex, hostedApps, sortByAge, readRepository } from '../hosted-apps.ts';
import type { SlugClaims } from '../author/rename.ts';
import type { LookupAnswer } from '../../../lib/git/lookup.ts';
import { createValidationProblem, FailureCounter } from '../../http/index.ts';

export interface Submission {
  readonly repository: Repository;
  /** Branch in the submitted address. */
  readonly branch?: string | undefined;
  readonly contact?: string | undefined;
  readonly note?: string | undefined;
  /** It was read with its deploy key. */
  readonly isPrivate?: boolean;
  /** Hashes of the caller and of the network. */
  readonly caller: string;
  readonly network: string;
}

/**
 * The result of a submission. `polled`: the repository is checked for a new commit now; `retried`: and its newest commit
 * is built again, even if it is the rejected one.
 */
export interface SubmissionResult {
  readonly app: App;
  readonly created: boolean;
  readonly polled: boolean;
  readonly retried: boolean;
  /** When a rejected app that was retried too recently can be retried. */
  readonly retryAt?: Date;
}

export interface SubmitterOptions {
  readonly client: Client;
  readonly apps: AppIndex;
  readonly namespace: string;
  readonly limits: Limits;
  /** Daily model budget of a new app in USD; undefined if new apps cannot call models. */
  readonly modelsUsd?: string | undefined;
  /** Checks that a repository can be read before a name is taken for it; absent: no check. */
  readonly checkRepository?: CheckRepository | undefined;
  /** Keeps the name of a new app from renames; absent: no app is renamed. */
  readonly claims?: Pick<SlugClaims, 'hold'> | undefined;
  /** Minimum milliseconds between two polls of one repository requested here. */
  readonly pollMs: number;
  /** Milliseconds until a rejected app can be retried the second time; doubles with each retry of its commit. */
  readonly retryMs?: number;
  readonly now?: () => number;
}

const fieldManager = 'moorage-api';
const seenWithinMs = 2_000;
/** How often one name is tried: with growing waits, for about four seconds. */
const conflictAttempts = 10;

/** @throws Problem (platform-full) */
function assertQuotaLeft(error: unknown): void {
  if (isApiStatus(error, 403) && error.message.includes('exceeded quota'))
    throw new Problem(
      platformFull,
      'The resource quota of the apps namespace is exhausted. Ask the operator of this installation to raise it.',
      { cause: error },
    );
}

/**
 * Submits repositories. @throws Problem (too-many-submissions, too-many-apps, platform-full, being-removed, and those of
 * the check of the repository)
 */
export function createSubmitter(options: SubmitterOptions): (submission: Submission) => Promise<SubmissionResult> {
  const { client, apps, namespace, now = Date.now, retryMs = 60_000 } = options;
  const unseen = new Map<string, App>();
  let tail: Promise<unknown> = Promise.resolve();

  /**
   * Runs one at a time in this process, so that counting and creating are one step. Between replicas, the API server
   * decides.
   */
  async function runExclusively<Result>(run: () => Promise<Result>): Promise<Result> {
    const turn = tail.then(run);
    tail = turn.catch(() => undefined);
    return turn;
  }

  async function findLive(hash: string): Promise<App | undefined> {
    const page = await client.list(hostedApps, { namespace, labelSelector: `${labels.repository}=${hash}` });
    return sortByAge(page.items)[0];
  }

  async function createOrFind(submission: Submission, hash: string): Promise<{ app: App; created: boolean }> {
    const known = await findLive(hash);
    if (known !== undefined) return { app: known, created: false };
    for (const [name, seen] of unseen)
      if (apps.get(name) !== undefined || now() - Date.parse(seen.metadata.creationTimestamp) > 60_000)
        unseen.delete(name);
    assertWithinLimits(apps, [...unseen.values()], submission, options.limits, now());
    for (const slug of listSlugCandidates(submission.repository)) {
      // It may be what another app is called by now, or was until lately.
      const holder = apps.findNameHolder(slug);
      const isHeld = holder !== undefined && holder.metadata.name !== slug;
      const attempt = (): ReturnType<typeof tryName> => tryName(slug, submission, hash);
      const app = isHeld ? undefined : await (options.claims?.hold(slug, hash, attempt) ?? attempt());
      if (app !== undefined) return app;
    }
    throw new Error(`every name for ${submission.repository.url} is taken`);
  }

  /**
   * Creates the app under this name or finds that it exists already; undefined if another repository has the name.
   *
   * A 409 without an app of that name does not mean that the name is taken: the app was deleted in the meantime, or
   * several apps were created at the same moment and the API server could not update the resource quota for this one.
   */
  async function tryName(
    slug: string,
    submission: Submission,
    hash: string,
  ): Promise<{ app: App; created: boolean } | undefined> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        const app = await client.create(hostedApps, buildManifest(slug, options, submission, hash), { fieldManager });
        unseen.set(slug, app);
        return { app, created: true };
      } catch (error) {
        assertQuotaLeft(error);
        if (!isApiStatus(error, 409)) throw error;
        const holder = await client.get(hostedApps, { namespace, name: slug });
        if (holder !== undefined)
          return hashRepository(readRepository(holder).url) === hash ? { app: holder, created: false } : undefined;
        if (attempt === conflictAttempts) throw error;
      }
      await delay(attempt * 50 * (1 + Math.random()));
    }
  }

  async function requestPoll(app: App): Promise<boolean> {
    const last = Date.parse(app.metadata.annotations?.[annotations.poll] ?? '');
    if (isSuspended(app.spec) || now() - last < options.pollMs) return false;
    const patch = { metadata: { annotations: { [annotations.poll]: new Date(now()).toISOString() } } };
    await client.patch(hostedApps, { namespace, name: app.metadata.name }, patch, {
      type: 'application/merge-patch+json',
      fieldManager,
    });
    return true;
  }

  /** Asks the git server where that is not known already. @returns whether it was read with its deploy key */
  async function checkSource(submission: Submission, cached: App | undefined): Promise<boolean> {
    const isKnown = cached !== undefined && submission.branch === undefined && !isLost(cached);
    const checked = isKnown ? undefined : await options.checkRepository?.(submission, submission.network);
    return checked?.isPrivate === true;
  }

  /** Marks an app as private whose repository was public before. The admission policy forbids the opposite. */
  async function closeSource(app: App): Promise<App> {
    if (app.spec.source.private === true) return app;
    const patch = { spec: { source: { private: true } } };
    return client.patch(hostedApps, { namespace, name: app.metadata.name }, patch, {
      type: 'application/merge-patch+json',
      fieldManager,
    });
  }

  /** Starts a new pipeline of the commit that was rejected, or of a newer one if there is one. */
  async function retry(cached: App): Promise<SubmissionResult> {
    const app = (await client.get(hostedApps, { namespace, name: cached.metadata.name })) ?? cached;
    if (!isRetriable(app)) return { app, created: false, polled: await requestPoll(app), retried: false };
    const due = computeRetryTime(app, retryMs);
    if (due > now())
      return { app, created: false, polled: await requestPoll(app), retried: false, retryAt: new Date(due) };
    const requestedAt = new Date(now()).toISOString();
    const metadata = {
      resourceVersion: app.metadata.resourceVersion,
      annotations: { [annotations.poll]: requestedAt, [annotations.rebuild]: requestedAt },
    };
    try {
      const patched = await client.patch(
        hostedApps,
        { namespace, name: app.metadata.name },
        { metadata },
        { type: 'application/merge-patch+json', fieldManager },
      );
      await apps.waitForApp(patched, seenWithinMs);
      return { app: patched, created: false, polled: true, retried: true };
    } catch (error) {
      // Another retry or a write of the operator came in between. Report the current status; submitting again is safe.
      if (!isApiStatus(error, 409)) throw error;
      const current = (await client.get(hostedApps, { namespace, name: app.metadata.name })) ?? app;
      return { app: current, created: false, polled: await requestPoll(current), retried: false };
    }
  }

  return async (submission) => {
    const hash = hashRepository(submission.repository.url);
    const cached = apps.findByRepository(hash);
    // Outside the queue, because a git server may be slow. Limits come first, so that no git server is queried in vain.
    if (cached === undefined) assertWithinLimits(apps, [...unseen.values()], submission, options.limits, now());
    const isPrivate = await checkSource(submission, cached);
    const { app, created } =
      cached === undefined
        ? await runExclusively(() => createOrFind({ ...submission, isPrivate }, hash))
        : { app: isPrivate ? await closeSource(cached) : cached, created: false };
    if (app.metadata.deletionTimestamp !== undefined) {
      throw new Problem(beingRemoved, `${readSlug(app)} is being deleted. Submit it again in a minute.`, {
        headers: { 'retry-after': '60' },
      });
    }
    if (!created)
      return isRetriable(app) ? retry(app) : { app, created, polled: await requestPoll(app), retried: false };
    // A status request right after this must find the app.
    await apps.waitForApp(app, seenWithinMs);
    return { app, created, polled: true, retried: false };
  };
}

/** Whether there is no public repository any more: it may be private now. */
function isLost({ spec, status }: App): boolean {
  const resolved = status?.conditions?.find(({ type }) => type === 'SourceResolved');
  return spec.source.private !== true && resolved?.reason === 'RepositoryNotFound';
}

/** Whether its commit was rejected. A repository that cannot be read is only polled again. */
function isRetriable(app: App): boolean {
  const isFound = app.status?.conditions?.find(({ type }) => type === 'SourceResolved')?.status !== 'False';
  // Nothing is built while the author's pin holds.
  const isPinned = app.spec.control?.release !== undefined;
  return !isSuspended(app.spec) && !isPinned && isFound && toPublicStatus(app).status === 'rejected';
}

/** The HostedApp of a submission. The admission policy lets the API set these fields and no others (crds/field-access.ts). */
export function buildManifest(
  name: string,
  { namespace, modelsUsd }: Pick<SubmitterOptions, 'namespace' | 'modelsUsd'>,
  submission: Submission,
  hash: string,
): Manifest {
  const { repository, contact, note, caller, network, isPrivate = false } = submission;
  const marks = { [labels.repository]: hash, [labels.caller]: caller, [labels.network]: network };
  return {
    apiVersion: `${group}/${version}`,
    kind,
    metadata: { name, namespace, labels: marks },
    spec: {
      source: { repo: repository.url, ...(isPrivate ? { private: true } : {}) },
      // Anybody can submit this. What the author or the operator of the installation sets is stored elsewhere and wins.
      submission: { ...(contact === undefined ? {} : { contact }), ...(note === undefined ? {} : { note }) },
      ...(modelsUsd === undefined ? {} : { models: { enabled: true, dailyBudgetUsd: modelsUsd } }),
    },
  };
}

const dayMs = 86_400_000;

/**
 * The time from which the app can be retried, in milliseconds since the epoch; 0 when it never was. It is counted from
 * the last retry, or from the end of its pipeline run: `firstMs`, doubling, at most a day. Another commit starts over.
 */
export function computeRetryTime(app: App, firstMs: number): number {
  const requestedAt = parseRebuildRequest(app.metadata.annotations?.[annotations.rebuild])?.at?.getTime() ?? 0;
  if (requestedAt === 0) return 0;
  const history = app.status?.history ?? [];
  const commit = app.status?.source?.commit;
  const other = history.findIndex((entry) => entry.commit !== commit);
  const runs = other < 0 ? history : history.slice(0, other);
  // The first run was not a retry.
  const retries = Math.max(1, runs.length - 1);
  const ended = Math.max(requestedAt, parseTime(runs[0]?.finishedAt));
  return ended + Math.min(dayMs, firstMs * 2 ** (retries - 1));
}

function parseTime(text: string | undefined): number {
  const value = Date.parse(text ?? '');
  return Number.isNaN(value) ? 0 : value;
}

/**
 * Lists names for the app in the order in which they are tried: the repository's name, owner and name, the name with a hash
 * that no other repository has. Each is a DNS label of at most 40 characters that starts with a letter, is not reserved and
 * belongs to no app of the catalog.
 */
export function listSlugCandidates(repository: Repository): readonly string[] {
  const { owner, name, url } = repository;
  const base = prefixDigit(toDnsLabel(name)) || 'app';
  const hashed = `${base.slice(0, 31).replace(/-+$/, '')}-${hashRepository(url).slice(0, 8)}`;
  const candidates = [prefixDigit(toDnsLabel(name)), prefixDigit(toDnsLabel(`${owner}-${name}`)), hashed];
  return [...new Set(candidates)].filter((slug) => slug !== '' && !isReserved(slug) && !isCatalogSlug(slug));
}

/** A Service is named after the app, and its name must start with a letter. */
function prefixDigit(label: string): string {
  return /^[0-9]/.test(label) ? toDnsLabel(`app-${label}`) : label;
}

// Admission: limits on new apps (per caller and day, per network, for the installation), and a repository that its git server can
// serve, before a name is taken for it.

export interface Limits {
  /** New apps of one caller within 24 hours. */
  readonly perCallerAndDay: number;
  /** Apps of the installation. */
  readonly apps: number;
  /** Apps submitted from one network at any time. */
  readonly perNetwork: number;
}

/** Hashes of the submitting caller and its network. */
interface Submitter {
  readonly caller: string;
  readonly network: string;
}

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
  readonly lookUp: (repository: Repository, query: { readonly via: 'either' }) => Promise<LookupAnswer>;
  /** Failed checks per network within ten minutes; default 30. */
  readonly failures?: number;
  readonly now?: () => number;
}

/**
 * Checks, through the operator, that the repository can be read, and that a branch in its address is the default branch:
 * another branch would not be hosted, and must not be ignored silently.
 * @throws Problem (repository-not-found, repository-unreachable, too-many-submissions, invalid-request)
 */
export type CheckRepository = (
  submitted: SubmittedAddress,
  network: string,
) => Promise<{ readonly isPrivate: boolean }>;

export function createRepositoryCheck(options: RepositoryCheckOptions): CheckRepository {
  const { lookUp, failures: maximum = 30, now } = options;
  const failures = new FailureCounter({ maximum, windowMs: 600_000, now });
  return async ({ repository, branch }, network) => {
    const waitMs = failures.findWaitMs(network);
    if (waitMs !== undefined) throw createTooManyFailures(maximum, waitMs);
    const answer = await lookUp(repository, { via: 'either' }).catch(() => undefined);
    if (answer?.ok === true) {
      if (repository.package === undefined) assertDefaultBranch(branch, answer.reference);
      else assertNewestVersion(branch, answer.reference);
      return { isPrivate: answer.isPrivate === true };
    }
    failures.count(network);
    if (answer?.final === true) throw createNotFound(answer);
    throw new Problem(
      repositoryUnreachable,
      `${answer?.message ?? 'The repository could not be checked in time.'} Nothing was created. Submit it again in a minute.`,
      { headers: { 'retry-after': '60' } },
    );
  };
}

function createNotFound({ rule, message, fix, deployKey }: Extract<LookupAnswer, { ok: false }>): Problem {
  if (deployKey === undefined || rule !== 'source/repository-not-found')
    return new Problem(repositoryNotFound, `${message} ${fix} Nothing was created.`, { members: { rule } });
  const { publicKey, fingerprint, page } = deployKey;
  const where = page === undefined ? 'to it at its forge' : `at ${page}`;
  return new Problem(
    repositoryNotFound,
    `${message} ${fix} Nothing was created. If it is private, add this deploy key ${where}, with read access only, and submit it again: ${publicKey}`,
    { members: { rule, deploy_key: { public_key: publicKey, fingerprint, page } } },
  );
}

function createTooManyFailures(maximum: number, waitMs: number): Problem {
  const seconds = Math.max(1, Math.ceil(waitMs / 1000));
  return new Problem(
    tooManySubmissions,
    `${maximum} repositories that your network submitted in the last ten minutes could not be read. Check the addresses, and submit again in ${seconds} seconds.`,
    { headers: { 'retry-after': String(seconds) } },
  );
}

function assertNewestVersion(version: string | undefined, newest: string): void {
  if (version === undefined || version === newest) return;
  throw createValidationProblem([
    {
      in: 'body',
      field: 'repo',
      message: `names version ${version}, and the newest one (${newest}) is what is hosted`,
      fix: 'Submit the package without a version, or ask the operator of this installation to set spec.source.revision.',
    },
  ]);
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
