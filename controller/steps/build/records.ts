// What the author's manifest (moorage.yaml) changes about the app, once the review of its commit has reported it.
import type { AppManifest } from '../../../crds/app-manifest.ts';
import { effectiveSettings, readSettings, resolveSpec } from '../../../crds/effective-settings.ts';
import type { HistoryEntry, HostedApp } from '../../../crds/hosted-app.ts';
import { annotations } from '../../../crds/names.ts';
import { openContact } from '../../../lib/ownership-file.ts';
import { acceptedRepository } from '../../../lib/repository.ts';
import { present } from '../../../lib/values.ts';
import { findCondition, isFinished, jobs as jobResource, type Job } from '../../objects/kinds.ts';
import { formatTimestamp } from '../../objects/values.ts';
import type { Action, Draft } from '../../reconcile/outcome.ts';
import type { Snapshot } from '../../reconcile/snapshot.ts';
import type { ReviewReport } from './verdict.ts';

/** The app with what the settings of a commit say, where its HostedApp says nothing itself. */
export function applySettings(app: HostedApp, settings: string | undefined): HostedApp {
  return { ...app, spec: resolveSpec(app, readSettings(settings)) };
}

/**
 * What the pod itself is made from must be known before it runs. All else the pipeline reads from the file by itself,
 * and the commit stands for it.
 */
export function resolvePodApp(app: HostedApp, draft: Draft, commit: string): HostedApp {
  const build = readSettings(findSettings(draft, commit))?.build;
  if (build === undefined) return app;
  const { timeout, resources } = build;
  const wanted: AppManifest = {
    build: { ...(timeout === undefined ? {} : { timeout }), ...(resources === undefined ? {} : { resources }) },
  };
  return { ...app, spec: resolveSpec(app, wanted) };
}

/** The settings that the review of this very commit reported. */
export function findSettings(draft: Draft, commit: string): string | undefined {
  return draft.settings?.commit === commit ? draft.settings.values : undefined;
}

/** Records the settings that a review reported. */
export function recordSettings(app: HostedApp, draft: Draft, commit: string, review: ReviewReport): void {
  delete draft.settings;
  delete draft.effective;
  if (review.settings === undefined) return;
  draft.settings = { commit, values: JSON.stringify(review.settings) };
  draft.effective = effectiveSettings(app, review.settings);
}

// Records that the author has spoken in the repository: only who can push to it can put a contact or a token there.

type Repository = Pick<Snapshot, 'app' | 'config' | 'now'>;

/** By the newest reviewed commit of the default branch. That the author has spoken once is kept. */
export function recordOwnership(
  snapshot: Repository,
  draft: Draft,
  review: Pick<ReviewReport, 'settings' | 'ownership' | 'authorKeys'>,
): void {
  // A branch, tag or commit that somebody chose may be anybody's, such as that of a pull request.
  if (snapshot.app.spec.source.revision !== undefined) return;
  recordKeys(draft, review);
  recordContact(snapshot, draft, review);
}

function recordContact(snapshot: Repository, draft: Draft, review: Pick<ReviewReport, 'settings' | 'ownership'>): void {
  const contact = provenContact(snapshot, review.ownership ?? []);
  const since = draft.ownership?.since;
  const isSaid = contact !== undefined || review.settings?.author?.contact !== undefined;
  if (since === undefined && !isSaid) return;
  draft.ownership = { since: since ?? formatTimestamp(snapshot.now), ...(contact === undefined ? {} : { contact }) };
}

/** Taken out of the repository, a key is worth nothing any more. */
function recordKeys(draft: Draft, { authorKeys }: Pick<ReviewReport, 'authorKeys'>): void {
  if (authorKeys === undefined) delete draft.authorKeys;
  else draft.authorKeys = [...authorKeys];
}

/** Of the first token that is ours and for this repository. */
function provenContact({ app, config }: Repository, tokens: readonly string[]): string | undefined {
  const { ownershipSecret: secret } = config;
  if (secret === undefined) return undefined;
  const { url } = acceptedRepository(app.spec.source.repo);
  return tokens.flatMap((token) => openContact(token, url, secret) ?? [])[0];
}

// The list of past pipelines in status: newest first, each number once, bounded.

const limit = 20;

/** Number of a Job: counts up with each pipeline of its app. */
export function readNumber(job: Job): number {
  const number = Number(job.metadata.annotations?.[annotations.number]);
  return Number.isSafeInteger(number) && number > 0 ? number : 1;
}

/** Number of the next pipeline. */
export function chooseNextNumber(
  history: readonly HistoryEntry[],
  jobs: readonly Job[],
  current: number | undefined,
): number {
  return 1 + Math.max(0, current ?? 0, ...history.map((entry) => entry.number), ...jobs.map(readNumber));
}

/** True when this very run of the Job is recorded already. */
export function isRecorded(history: readonly HistoryEntry[], job: Job): boolean {
  const number = readNumber(job);
  return history.some((entry) => entry.number === number);
}

/** The history with how this Job ended; unchanged when it is recorded already. */
export function recordBuild(
  history: readonly HistoryEntry[],
  job: Job,
  now: Date,
  end: Pick<HistoryEntry, 'result'> & {
    message?: string | undefined;
    image?: string | undefined;
    doubtful?: boolean | undefined;
  },
): HistoryEntry[] {
  if (isRecorded(history, job)) return [...history];
  const noted = job.metadata.annotations ?? {};
  const entry: HistoryEntry = present({
    number: readNumber(job),
    job: job.metadata.name,
    commit: noted[annotations.commit] ?? '',
    reason: noted[annotations.reason] ?? '',
    result: end.result,
    message: end.message?.slice(0, 1_000),
    image: end.image,
    doubtful: end.doubtful,
    startedAt: job.status?.startTime,
    finishedAt: readEndTime(job) ?? formatTimestamp(now),
  });
  return [entry, ...history].toSorted((a, b) => b.number - a.number).slice(0, limit);
}

/** What became of the image that is to be released, by its newest build; images built before that were skipped. */
export function recordRelease(
  history: readonly HistoryEntry[],
  { image, commit }: { readonly image: string; readonly commit: string },
  release: NonNullable<HistoryEntry['release']>,
  message: string | undefined,
): HistoryEntry[] {
  const newest = history.find((entry) => entry.image === image && entry.commit === commit);
  return history.map((entry) => {
    if (entry === newest) {
      return present({ ...entry, release, releaseMessage: message?.slice(0, 1_000) });
    }
    return entry.release === 'Pending' ? { ...entry, release: 'Skipped' } : entry;
  });
}

function readEndTime({ status }: Job): string | undefined {
  return status?.completionTime ?? findCondition(status?.conditions, 'Failed')?.lastTransitionTime;
}

/** Faults of the platform in a row at this Job, newest first. */
export function listFaults(history: readonly HistoryEntry[], job: string): HistoryEntry[] {
  const own = history.filter((entry) => entry.job === job && entry.result !== 'Superseded');
  const other = own.findIndex((entry) => entry.result !== 'Faulted');
  return other < 0 ? own : own.slice(0, other);
}

/** True when a fault that the author could have staged was believed for this commit. */
export function isDoubted(history: readonly HistoryEntry[], commit: string): boolean {
  return history.some((entry) => entry.commit === commit && entry.doubtful === true);
}

/** How long to wait after that many faults, in milliseconds: 30 s, doubling, at most 30 min. */
export function computeFaultDelayMs(faults: number): number {
  return Math.min(30 * 60_000, 30_000 * 2 ** Math.max(0, faults - 1));
}

// Jobs that have become obsolete: overtaken by a newer commit, or finished and beyond the history limit.

/** Ends every pipeline but `current` that is still in progress. */
export function supersede(snapshot: Snapshot, draft: Draft, current: string | undefined, why: string): Action[] {
  const overtaken = snapshot.jobs.filter(
    (job) => job.metadata.name !== current && !isFinished(job) && job.metadata.deletionTimestamp === undefined,
  );
  for (const job of overtaken)
    draft.history = recordBuild(draft.history ?? [], job, snapshot.now, { result: 'Superseded', message: why });
  return overtaken.map(removeJob);
}

/** Finished Jobs beyond the limit, oldest first to go; what they came to is in history. */
export function removeOldJobs(snapshot: Snapshot, current: string): Action[] {
  const finished = snapshot.jobs.filter(
    (job) => isFinished(job) && job.metadata.name !== current && job.metadata.deletionTimestamp === undefined,
  );
  return finished
    .toSorted((a, b) => readNumber(b) - readNumber(a))
    .slice(snapshot.config.pipeline.historyLimit)
    .map(removeJob);
}

/** The action that deletes a Job. */
export function removeJob(job: Job): Action {
  return { kind: 'delete', resource: jobResource, object: job };
}

/** The same for one that another app of this name has left. */
export function removeStranger(job: Job): Action {
  return { kind: 'delete', resource: jobResource, object: job, isStranger: true };
}
