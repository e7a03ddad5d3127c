// Records which releases of an app have served and for how long without a crash, and chooses the one to roll back to.
import { annotations } from '../../../crds/names.ts';
import { keptReleases, release as releaseSchema, type ReleaseRecord } from '../../../crds/status.ts';
import { omitUndefined } from '../../../lib/values.ts';
import { isOutOfDisk, type Deployment, type Pod, formatTimestamp } from '../../objects/kinds.ts';
import type { StatusFields } from '../../reconcile/outcome.ts';
import type { Snapshot } from '../../reconcile/snapshot.ts';
import { findCrashTime, isReady, readCommitAndImage, readReadyChange, readServingSince } from './pods.ts';
import type { Release } from './objects.ts';

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
  const compareByUse = (one: ReleaseRecord, other: ReleaseRecord): number =>
    Number(isSame(other, wantedRelease)) - Number(isSame(one, wantedRelease)) || compareReleases(one, other);
  const releases = observeReleases(snapshot, knownReleases, wantedRelease)
    .toSorted(compareByUse)
    .slice(0, keptReleases)
    .toSorted((one, other) => other.readyAt.localeCompare(one.readyAt));
  const unproven = releases
    .filter(({ goodAt, servingSince }) => goodAt === undefined && servingSince !== undefined)
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
  const byRelease = Map.groupBy(pods, (pod) => formatReleaseKey(readCommitAndImage(pod)));
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
  return (knownReleases.releases ?? []).filter((record) => !isSame(record, wantedRelease)).toSorted(compareReleases)[0];
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
  return releases?.find((record) => isSame(record, release));
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
export function toRelease({ image, commit, port, settings, attempt }: Release): Release {
  return omitUndefined({ image, commit, port, settings, attempt });
}

type Identity = Pick<Release, 'image' | 'commit'>;

function formatReleaseKey({ image, commit }: Identity): string {
  return `${image} ${commit}`;
}

function isSame(one: Identity, other: Identity): boolean {
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
    current === undefined || served === undefined || !isSame(current, served)
      ? []
      : [{ ...current, readyAt: served.since }],
  ].flat();
  const missing = seeds.filter((seed) => !records.some((record) => isSame(record, seed)));
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
  const isProven = serving.goodAt !== undefined || computeServedMs(serving, now) >= config.run.goodAfterMs;
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
