// Records which releases of an app have served and for how long without a crash, and chooses the one to roll back to.
import { annotations } from '../../../crds/names.ts';
import { keptReleases, release as releaseSchema, type ReleaseRecord } from '../../../crds/status.ts';
import { omitUndefined } from '../../../lib/values.ts';
import { isOutOfDisk, type Deployment, type Pod, formatTimestamp } from '../../objects/kinds.ts';
import type { StatusFields } from '../../reconcile/outcome.ts';
import type { Snapshot } from '../../reconcile/snapshot.ts';
import { findCrashTime, isReady, readPodRelease, readReadyChange, readServingSince, type PodRelease } from './pods.ts';
import { hashImages, type Release } from './components.ts';

/** The releases of an app that have served. */
type Releases = Pick<StatusFields, 'releases'>;

/**
 * Updates the records by what the pods show. Times come from the pods where they have them, so that a restart of the
 * operator neither shortens nor extends a time of service.
 *
 * @returns the records, and milliseconds until a release that serves becomes good, if one is on its way to that
 */
export function updateReleases(
  snapshot: Snapshot,
  knownReleases: Releases,
  wantedRelease: Release,
): Releases & { readonly provenInMs: number | undefined } {
  const { now, config } = snapshot;
  const pinned = snapshot.app.spec.control?.release;
  // A release that the author chose is never dropped, even while another one runs.
  const countUses = (record: ReleaseRecord): number =>
    2 * Number(isSameIdentity(record, wantedRelease)) + Number(record.commit === pinned);
  const compareByUse = (one: ReleaseRecord, other: ReleaseRecord): number =>
    countUses(other) - countUses(one) || compareReleases(one, other);
  const releases = observeReleases(snapshot, knownReleases, wantedRelease)
    .toSorted(compareByUse)
    .slice(0, keptReleases)
    .toSorted((one, other) => other.readyAt.localeCompare(one.readyAt));
  const unproven = releases
    .filter((each) => each.goodAt === undefined && each.servingSince !== undefined && each.answers !== false)
    .map((record) => Math.max(0, config.run.goodAfterMs - computeServedMs(record, now)));
  return {
    releases: releases.length === 0 ? undefined : releases,
    provenInMs: unproven.length === 0 ? undefined : Math.min(...unproven),
  };
}

function observeReleases(snapshot: Snapshot, knownReleases: Releases, wantedRelease: Release): ReleaseRecord[] {
  const { pods, now, deployment } = snapshot;
  const records = new Map(
    listKnownRecords(snapshot, knownReleases).map((record) => [formatReleaseKey(record), record]),
  );
  const byRelease = Map.groupBy(pods, (pod) => formatReleaseKey(readPodRelease(pod)));
  for (const release of [wantedRelease, ...readNotedReleases(deployment)].filter((each) => each !== undefined)) {
    const releasePods = byRelease.get(formatReleaseKey(release)) ?? [];
    if (!records.has(formatReleaseKey(release)) && releasePods.some(isReady))
      records.set(formatReleaseKey(release), createRecord(release, releasePods, now));
  }
  return [...records].map(([key, record]) => observe(record, byRelease.get(key) ?? [], snapshot));
}

/**
 * Chooses the release to run if the wanted one cannot: the newest good one. If none is good yet, one that has never crashed,
 * then the one that served longest without a crash, then the newest.
 *
 * @param current the release that serves and was not replaced; it stays unless it crashed before it was good
 */
export function chooseFallback(
  knownReleases: Releases,
  wantedRelease: Release,
  current?: Release,
): ReleaseRecord | undefined {
  const currentRecord = current === undefined ? undefined : findRecord(knownReleases, current);
  if (currentRecord !== undefined && (currentRecord.goodAt !== undefined || currentRecord.crashedAt === undefined))
    return currentRecord;
  return (knownReleases.releases ?? [])
    .filter((record) => !isSameIdentity(record, wantedRelease) && record.answers !== false)
    .toSorted(compareReleases)[0];
}

/** Records whether the URL of a release works. One that does not has not proven itself, however long it runs. */
export function recordAnswers({ releases }: Releases, release: Identity, answers: boolean): Releases['releases'] {
  return releases?.map((record) => {
    if (!isSameIdentity(record, release)) return record;
    const { goodAt, ...rest } = record;
    return omitUndefined({ ...rest, goodAt: answers ? goodAt : undefined, answers });
  });
}

/** Finds another release whose URL is known to work. */
export function findWorkingRelease(knownReleases: Releases, wantedRelease: Identity): ReleaseRecord | undefined {
  return knownReleases.releases?.find((record) => !isSameIdentity(record, wantedRelease) && isWorking(record));
}

/**
 * When this release was first known to work; undefined: it was not. Where it served before its URL was judged, it worked,
 * whatever its settings were.
 */
export function findWorkedAt(fields: Pick<StatusFields, 'releases' | 'served'>, release: Identity): string | undefined {
  const record = findRecord(fields, release);
  if (record !== undefined && isWorking(record)) return record.readyAt;
  return fields.served !== undefined && isSameIdentity(fields.served, release) ? fields.served.since : undefined;
}

/** Records from before URLs were judged say so by their time of service. */
export function isWorking({ answers, goodAt }: ReleaseRecord): boolean {
  return answers ?? goodAt !== undefined;
}

/**
 * Whether `fallback` should replace a wanted release that was ready before and crashes again and again. A good one is never
 * replaced; of two that have both crashed, the wanted one stays.
 */
export function isBetter(fallback: ReleaseRecord, knownReleases: Releases, wantedRelease: Release): boolean {
  const record = findRecord(knownReleases, wantedRelease);
  if (record?.goodAt !== undefined) return false;
  return record === undefined || fallback.goodAt !== undefined || fallback.crashedAt === undefined;
}

export function findRecord({ releases }: Releases, release: Identity): ReleaseRecord | undefined {
  return releases?.find((record) => isSameIdentity(record, release));
}

/**
 * Finds the kept release of a commit: the newest one if it was built several times, else what the Deployment runs or would
 * roll back to, since a status can be lost.
 */
export function findReleaseOfCommit(
  { releases = [] }: Releases,
  deployment: Deployment | undefined,
  commit: string,
): Release | undefined {
  const record = releases.find((each) => each.commit === commit);
  if (record !== undefined) return toRelease(record);
  return readNotedReleases(deployment).find((release) => release?.commit === commit);
}

/** Parses a release from an annotation. */
export function readRelease(text: string | undefined): Release | undefined {
  if (text === undefined) return undefined;
  try {
    return releaseSchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

/** The release of a record, without its history. */
export function toRelease({ image, commit, port, components, settings, attempt }: Release): Release {
  return omitUndefined({ image, commit, port, components, settings, attempt });
}

/** What distinguishes releases: the commit, and the images of all components. */
type Identity = Pick<Release, 'image' | 'commit' | 'components'> | PodRelease;

function formatReleaseKey(release: Identity): string {
  const imagesHash = 'imagesHash' in release ? release.imagesHash : hashImages(release);
  return [release.image, release.commit, ...(imagesHash === undefined ? [] : [imagesHash])].join(' ');
}

/** Whether two releases have the same commit and images. */
export function isSameIdentity(one: Identity, other: Identity): boolean {
  return formatReleaseKey(one) === formatReleaseKey(other);
}

/** Sorts the better one first. */
function compareReleases(one: ReleaseRecord, other: ReleaseRecord): number {
  const byProof = Number(other.goodAt !== undefined) - Number(one.goodAt !== undefined);
  if (byProof !== 0) return byProof;
  const byAge = other.readyAt.localeCompare(one.readyAt);
  if (one.goodAt !== undefined) return byAge;
  const byCrash = Number(one.crashedAt !== undefined) - Number(other.crashedAt !== undefined);
  return byCrash || readLongestSeconds(other) - readLongestSeconds(one) || byAge;
}

function readLongestSeconds({ bestSeconds, servedSeconds }: ReleaseRecord): number {
  return Math.max(bestSeconds, servedSeconds);
}

/**
 * The records of the status, with what the Deployment's annotations add: an app whose status was lost, or written before
 * there were records, must still have a release to roll back to.
 */
function listKnownRecords({ app, deployment, now }: Snapshot, { releases: records = [] }: Releases): ReleaseRecord[] {
  const { served } = app.status ?? {};
  const [current, before] = readNotedReleases(deployment);
  const seeds = [
    before === undefined
      ? []
      : [{ ...before, readyAt: deployment?.metadata.creationTimestamp ?? formatTimestamp(now) }],
    current === undefined || served === undefined || !isSameIdentity(current, served)
      ? []
      : [{ ...current, readyAt: served.since }],
  ].flat();
  const missing = seeds.filter((seed) => !records.some((record) => isSameIdentity(record, seed)));
  return [...records, ...missing.map((seed) => ({ ...seed, servedSeconds: 0, bestSeconds: 0 }))];
}

/** The release that the Deployment runs, and the one it would roll back to. */
function readNotedReleases(deployment: Deployment | undefined): (Release | undefined)[] {
  const { [annotations.release]: current, [annotations.before]: before } = deployment?.metadata.annotations ?? {};
  return [readRelease(current), readRelease(before)];
}

function createRecord(release: Release, pods: readonly Pod[], now: Date): ReleaseRecord {
  const since = pods.flatMap((pod) => (isReady(pod) ? [readServingSince(pod, now)] : []));
  const readyAt = new Date(Math.min(now.getTime(), ...since));
  return { ...toRelease(release), readyAt: formatTimestamp(readyAt), servedSeconds: 0, bestSeconds: 0 };
}

function observe(before: ReleaseRecord, pods: readonly Pod[], { now, config }: Snapshot): ReleaseRecord {
  const record = recordCrash(before, pods);
  const ready = pods.filter(isReady);
  if (ready.length === 0) return endService(record, now);
  const crashedAt = Date.parse(record.crashedAt ?? record.readyAt);
  const since = Math.max(crashedAt, Math.min(...ready.map((pod) => readServingSince(pod, now))));
  const serving = { ...record, servingSince: record.servingSince ?? formatTimestamp(new Date(since)) };
  const isProven =
    serving.answers !== false &&
    (serving.goodAt !== undefined || computeServedMs(serving, now) >= config.run.goodAfterMs);
  return isProven ? { ...serving, goodAt: serving.goodAt ?? formatTimestamp(now) } : serving;
}

/** A crash ends a time of service. One before the release was first ready belongs to its start. */
function recordCrash(record: ReleaseRecord, pods: readonly Pod[]): ReleaseRecord {
  const known = Date.parse(record.crashedAt ?? record.readyAt);
  const crash = Math.max(
    ...pods.flatMap((pod) => [findCrashTime(pod) ?? 0, isOutOfDisk(pod) ? readReadyChange(pod) : 0]),
    0,
  );
  if (crash <= known) return record;
  const { servingSince, ...rest } = record;
  const stretch = servingSince === undefined ? 0 : Math.max(0, crash - Date.parse(servingSince)) / 1000;
  const seconds = record.servedSeconds + Math.round(stretch);
  return {
    ...rest,
    servedSeconds: 0,
    bestSeconds: Math.max(record.bestSeconds, seconds),
    crashedAt: formatTimestamp(new Date(crash)),
  };
}

/** It does not serve, but has not crashed: it rests, was replaced, or is busy. */
function endService(record: ReleaseRecord, now: Date): ReleaseRecord {
  const { servingSince, ...rest } = record;
  return servingSince === undefined
    ? record
    : { ...rest, servedSeconds: Math.round(computeServedMs(record, now) / 1000) };
}

/** Milliseconds that it has served since its last crash. */
export function computeServedMs({ servedSeconds, servingSince }: ReleaseRecord, now: Date): number {
  const stretch = servingSince === undefined ? 0 : now.getTime() - Date.parse(servingSince);
  return servedSeconds * 1000 + Math.max(0, stretch);
}
