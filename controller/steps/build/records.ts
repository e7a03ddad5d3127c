// What the build step records: the settings and the owner that a review reported, past pipelines, and the Jobs to remove.
import type { AppManifest } from '../../../crds/app-manifest.ts';
import { listEffectiveSettings, readSettings, resolveSpec } from '../../../crds/effective-settings.ts';
import type { HistoryEntry, HostedApp } from '../../../crds/hosted-app.ts';
import { annotations } from '../../../crds/names.ts';
import type { ComponentImage } from '../../../crds/status.ts';
import { openContact } from '../../../lib/ownership-file.ts';
import { parseAcceptedRepository } from '../../../lib/repository.ts';
import { omitUndefined } from '../../../lib/values.ts';
import { findCondition, isFinished, jobs as jobResource, type Job, formatTimestamp } from '../../objects/kinds.ts';
import type { BuildResult } from '../../pipeline/contract.ts';
import type { Action, StatusFields, StatusPatch } from '../../reconcile/outcome.ts';
import type { Snapshot } from '../../reconcile/snapshot.ts';
import type { ReviewReport } from './verdict.ts';

/** The app with the settings of a commit's moorage.yaml, where its HostedApp sets nothing itself. */
export function applySettings(app: HostedApp, settings: string | undefined): HostedApp {
  return { ...app, spec: resolveSpec(app, readSettings(settings)) };
}

/**
 * The app with the settings that its pipeline pod is made from, which must be known before the pod runs. Everything else
 * the pipeline reads from the file itself, and the commit stands for it.
 */
export function resolvePodApp(app: HostedApp, fields: StatusFields, commit: string): HostedApp {
  const build = readSettings(findSettings(fields, commit))?.build;
  if (build === undefined) return app;
  const { timeout, resources } = build;
  const settings: AppManifest = {
    build: { ...(timeout === undefined ? {} : { timeout }), ...(resources === undefined ? {} : { resources }) },
  };
  return { ...app, spec: resolveSpec(app, settings) };
}

/** The settings that the review of this very commit reported. */
export function findSettings({ settings }: StatusFields, commit: string): string | undefined {
  return settings?.commit === commit ? settings.values : undefined;
}

/**
 * The images of the components that the app lists, in their order; undefined for an app of one process. What else a
 * pipeline reports is left out, since its report may be hostile.
 */
export function selectComponentImages(
  { spec }: HostedApp,
  { components: reported = [] }: BuildResult,
): ComponentImage[] | undefined | 'incomplete' {
  if (spec.components.length === 0) return undefined;
  const images = spec.components.flatMap(({ name }) => reported.find((each) => each.name === name) ?? []);
  return images.length === spec.components.length ? images : 'incomplete';
}

/** Records the settings that a review reported; without moorage.yaml there are none. */
export function recordSettings(app: HostedApp, commit: string, { settings }: ReviewReport): StatusPatch {
  return settings === undefined
    ? { settings: undefined, effective: undefined }
    : {
        settings: { commit, values: JSON.stringify(settings) },
        effective: listEffectiveSettings(app, settings),
      };
}

type OwnershipReport = Pick<ReviewReport, 'settings' | 'ownership' | 'authorKeys'>;

/**
 * Records what the newest reviewed commit of the default branch says about its author: only people who can push to it can
 * put a contact or a key there. A key that is no longer in the repository is void.
 */
export function recordOwnership(
  snapshot: Pick<Snapshot, 'app' | 'config' | 'now'>,
  fields: StatusFields,
  review: OwnershipReport,
): StatusPatch {
  // A branch, tag or commit that somebody chose may be anybody's, such as that of a pull request.
  if (snapshot.app.spec.source.revision !== undefined) return {};
  const { authorKeys } = review;
  return {
    authorKeys: authorKeys === undefined ? undefined : [...authorKeys],
    ownership: updateOwnership(snapshot, fields.ownership, review),
  };
}

/** That the author has proven ownership once is kept; the contact is that of the newest commit. */
function updateOwnership(
  { app, config, now }: Pick<Snapshot, 'app' | 'config' | 'now'>,
  before: StatusFields['ownership'],
  { settings, ownership: tokens = [] }: OwnershipReport,
): StatusFields['ownership'] {
  const { ownershipSecret: secret } = config;
  const { url } = parseAcceptedRepository(app.spec.source.repo);
  // Of the first token that is ours and for this repository.
  const contact =
    secret === undefined ? undefined : tokens.flatMap((token) => openContact(token, url, secret) ?? [])[0];
  const hasContact = contact !== undefined || settings?.author?.contact !== undefined;
  if (before === undefined && !hasContact) return undefined;
  return { since: before?.since ?? formatTimestamp(now), ...(contact === undefined ? {} : { contact }) };
}

/** Past pipelines in the status: newest first, each number once. */
const historyLimit = 20;

/** Number of a Job: counts up with each pipeline of its app. */
export function readNumber(job: Job): number {
  const number = Number(job.metadata.annotations?.[annotations.number]);
  return Number.isSafeInteger(number) && number > 0 ? number : 1;
}

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

/** Adds how this Job ended; the history is unchanged when that is recorded already. */
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
  const entry: HistoryEntry = omitUndefined({
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
  return [entry, ...history].toSorted((a, b) => b.number - a.number).slice(0, historyLimit);
}

function readEndTime({ status }: Job): string | undefined {
  return status?.completionTime ?? findCondition(status?.conditions, 'Failed')?.lastTransitionTime;
}

/** Records on its newest build what became of the image to release; images built before that were skipped. */
export function recordRelease(
  history: readonly HistoryEntry[],
  { image, commit }: { readonly image: string; readonly commit: string },
  release: NonNullable<HistoryEntry['release']>,
  message: string | undefined,
): HistoryEntry[] {
  const newest = history.find((entry) => entry.image === image && entry.commit === commit);
  return history.map((entry) => {
    if (entry === newest) {
      return omitUndefined({ ...entry, release, releaseMessage: message?.slice(0, 1_000) });
    }
    return entry.release === 'Pending' ? { ...entry, release: 'Skipped' } : entry;
  });
}

/** Faults of the platform in a row at this Job, newest first. */
export function listFaults(history: readonly HistoryEntry[], job: string): HistoryEntry[] {
  const jobEntries = history.filter((entry) => entry.job === job && entry.result !== 'Superseded');
  const other = jobEntries.findIndex((entry) => entry.result !== 'Faulted');
  return other < 0 ? jobEntries : jobEntries.slice(0, other);
}

/** True when a fault that the author could have staged was accepted as one for this commit. */
export function hasDoubtfulFault(history: readonly HistoryEntry[], commit: string): boolean {
  return history.some((entry) => entry.commit === commit && entry.doubtful === true);
}

/** How long to wait after that many faults, in milliseconds: 30 s, doubling, at most 30 min. */
export function computeFaultDelayMs(faults: number): number {
  return Math.min(30 * 60_000, 30_000 * 2 ** Math.max(0, faults - 1));
}

/** Ends every pipeline in progress but `current`, and records that. */
export function supersede(
  { jobs, now }: Snapshot,
  history: StatusFields['history'],
  current: string | undefined,
  message: string,
): { history: StatusFields['history']; actions: Action[] } {
  const overtaken = jobs.filter(
    (job) => job.metadata.name !== current && !isFinished(job) && job.metadata.deletionTimestamp === undefined,
  );
  return {
    history: overtaken.reduce(
      (recorded, job) => recordBuild(recorded ?? [], job, now, { result: 'Superseded', message }),
      history,
    ),
    actions: overtaken.map(removeJob),
  };
}

/** Removes finished Jobs beyond the limit, oldest first; how they ended is in history. */
export function removeOldJobs(snapshot: Snapshot, current: string): Action[] {
  const finished = snapshot.jobs.filter(
    (job) => isFinished(job) && job.metadata.name !== current && job.metadata.deletionTimestamp === undefined,
  );
  return finished
    .toSorted((a, b) => readNumber(b) - readNumber(a))
    .slice(snapshot.config.pipeline.historyLimit)
    .map(removeJob);
}

export function removeJob(job: Job): Action {
  return { kind: 'delete', resource: jobResource, object: job };
}

/** The same for a Job that another app of this name has left. */
export function removeStranger(job: Job): Action {
  return { kind: 'delete', resource: jobResource, object: job, isStranger: true };
}
