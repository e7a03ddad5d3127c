// The submission of a repository: creates its HostedApp once, whoever submits it and however often.
import { type Client, isApiStatus, type Manifest } from '../../../lib/kubernetes/index.ts';
import { annotations, group, kind, labels, version } from '../../../crds/names.ts';
import { publicStatus } from '../../../crds/public-status.ts';
import { Problem } from '../../../lib/problem.ts';
import { repositoryHash, type Repository } from '../../../lib/repository.ts';
import { beingRemoved, platformFull } from './problems.ts';
import { checkRoom, type Limits } from './admission.ts';
import type { CheckRepository } from './check-repository.ts';
import { type App, type AppIndex, hostedApps, oldestFirst, repositoryOf } from '../hosted-apps.ts';
import { retriableFrom } from './retry-wait.ts';
import { slugCandidates } from './slug.ts';

/** What is submitted, by whom. */
export interface Submission {
  readonly repository: Repository;
  /** Branch that its address names. */
  readonly branch?: string | undefined;
  readonly contact?: string | undefined;
  readonly note?: string | undefined;
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

/** What a submitter depends on. */
export interface SubmitterOptions {
  readonly client: Client;
  readonly apps: AppIndex;
  readonly namespace: string;
  readonly limits: Limits;
  /** Daily budget in USD with which a new app can call models; undefined where it cannot. */
  readonly modelsUsd?: string | undefined;
  /** Asks whether a repository can be read before a name is taken for it; absent: it is not asked. */
  readonly checkRepository?: CheckRepository | undefined;
  /** Minimum milliseconds between two polls of one repository requested here. */
  readonly pollMs: number;
  /** Milliseconds until a rejected app can be retried the second time; doubles with each retry of its commit. */
  readonly retryMs?: number;
  readonly now?: () => number;
}

const fieldManager = 'moorage-api';
const seenWithinMs = 2_000;

/**
 * Submits repositories. @throws Problem (too-many-submissions, too-many-apps, platform-full, being-removed, and those of
 * the check of the repository)
 */
export function createSubmitter(options: SubmitterOptions): (submission: Submission) => Promise<SubmissionResult> {
  const { client, apps, namespace, now = Date.now, retryMs = 60_000 } = options;
  const unseen = new Map<string, App>();
  let tail: Promise<unknown> = Promise.resolve();

  /**
   * One at a time in this process, so that counting and creating are one step. Between replicas the API server decides.
   */
  async function exclusively<Result>(run: () => Promise<Result>): Promise<Result> {
    const turn = tail.then(run);
    tail = turn.catch(() => undefined);
    return turn;
  }

  async function findLive(hash: string): Promise<App | undefined> {
    const page = await client.list(hostedApps, { namespace, labelSelector: `${labels.repository}=${hash}` });
    return oldestFirst(page.items)[0];
  }

  async function createOrFind(submission: Submission, hash: string): Promise<{ app: App; created: boolean }> {
    const known = await findLive(hash);
    if (known !== undefined) return { app: known, created: false };
    for (const [name, seen] of unseen)
      if (apps.get(name) !== undefined || now() - Date.parse(seen.metadata.creationTimestamp) > 60_000)
        unseen.delete(name);
    checkRoom(apps, [...unseen.values()], submission, options.limits, now());
    for (const slug of slugCandidates(submission.repository)) {
      const found = await tryName(slug, submission, hash);
      if (found !== undefined) return found;
    }
    throw new Error(`every name for ${submission.repository.url} is taken`);
  }

  /**
   * Creates the app under this name, or finds that it is there already; undefined when another repository has the name.
   */
  async function tryName(
    slug: string,
    submission: Submission,
    hash: string,
  ): Promise<{ app: App; created: boolean } | undefined> {
    try {
      const app = await client.create(hostedApps, manifestOf(slug, options, submission, hash), { fieldManager });
      unseen.set(slug, app);
      return { app, created: true };
    } catch (error) {
      if (isApiStatus(error, 403) && error.message.includes('exceeded quota'))
        throw new Problem(
          platformFull,
          'The resource quota of the apps namespace is exhausted. Ask the operator of this installation to raise it.',
          { cause: error },
        );
      if (!isApiStatus(error, 409)) throw error;
    }
    const holder = await client.get(hostedApps, { namespace, name: slug });
    return holder !== undefined && repositoryHash(repositoryOf(holder).url) === hash
      ? { app: holder, created: false }
      : undefined;
  }

  async function poll(app: App): Promise<boolean> {
    const last = Date.parse(app.metadata.annotations?.[annotations.poll] ?? '');
    if (app.spec.suspend || now() - last < options.pollMs) return false;
    const patch = { metadata: { annotations: { [annotations.poll]: new Date(now()).toISOString() } } };
    await client.patch(hostedApps, { namespace, name: app.metadata.name }, patch, {
      type: 'application/merge-patch+json',
      fieldManager,
    });
    return true;
  }

  /** Starts a new pipeline of the commit that was rejected, or of a newer one if there is one. */
  async function retry(cached: App): Promise<SubmissionResult> {
    const app = (await client.get(hostedApps, { namespace, name: cached.metadata.name })) ?? cached;
    if (!isRetriable(app)) return { app, created: false, polled: await poll(app), retried: false };
    const due = retriableFrom(app, retryMs);
    if (due > now()) return { app, created: false, polled: await poll(app), retried: false, retryAt: new Date(due) };
    const asked = new Date(now()).toISOString();
    const metadata = {
      resourceVersion: app.metadata.resourceVersion,
      annotations: { [annotations.poll]: asked, [annotations.rebuild]: asked },
    };
    try {
      const patched = await client.patch(
        hostedApps,
        { namespace, name: app.metadata.name },
        { metadata },
        { type: 'application/merge-patch+json', fieldManager },
      );
      await apps.whenSeen(patched, seenWithinMs);
      return { app: patched, created: false, polled: true, retried: true };
    } catch (error) {
      // Another retry, or a write of the operator, came in between: report the current status; nothing is lost by
      // submitting again.
      if (!isApiStatus(error, 409)) throw error;
      const current = (await client.get(hostedApps, { namespace, name: app.metadata.name })) ?? app;
      return { app: current, created: false, polled: await poll(current), retried: false };
    }
  }

  return async (submission) => {
    const hash = repositoryHash(submission.repository.url);
    const cached = apps.byRepository(hash);
    // Not in turn: a git server may be slow. Limits come first, so that they cost nobody a question.
    if (cached === undefined) checkRoom(apps, [...unseen.values()], submission, options.limits, now());
    if (cached === undefined || submission.branch !== undefined)
      await options.checkRepository?.(submission, submission.network);
    const { app, created } =
      cached === undefined ? await exclusively(() => createOrFind(submission, hash)) : { app: cached, created: false };
    if (app.metadata.deletionTimestamp !== undefined) {
      throw new Problem(beingRemoved, `${app.metadata.name} is being deleted. Submit it again in a minute.`, {
        headers: { 'retry-after': '60' },
      });
    }
    if (!created) return isRetriable(app) ? retry(app) : { app, created, polled: await poll(app), retried: false };
    // A request for the status right after this must find the app.
    await apps.whenSeen(app, seenWithinMs);
    return { app, created, polled: true, retried: false };
  };
}

/** Rejected for its commit; a repository that cannot be read at all is only polled again. */
function isRetriable(app: App): boolean {
  const isFound = app.status?.conditions?.find(({ type }) => type === 'SourceResolved')?.status !== 'False';
  return !app.spec.suspend && isFound && publicStatus(app).status === 'rejected';
}

function manifestOf(
  name: string,
  { namespace, modelsUsd }: SubmitterOptions,
  submission: Submission,
  hash: string,
): Manifest {
  const { repository, contact, note, caller, network } = submission;
  const marks = { [labels.repository]: hash, [labels.caller]: caller, [labels.network]: network };
  return {
    apiVersion: `${group}/${version}`,
    kind,
    metadata: { name, namespace, labels: marks },
    spec: {
      source: { repo: repository.url },
      // Said by anybody: what the author or the operator of the installation says is elsewhere, and wins.
      submission: { ...(contact === undefined ? {} : { contact }), ...(note === undefined ? {} : { note }) },
      ...(modelsUsd === undefined ? {} : { models: { enabled: true, dailyBudgetUsd: modelsUsd } }),
    },
  };
}
