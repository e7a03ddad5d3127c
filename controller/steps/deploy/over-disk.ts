// Ends the round of an app that fills its disk, is evicted and replaced, again and again: as it is, it is not started
// any more.
import { authorLimits } from '../../../crds/app-manifest.ts';
import { annotations } from '../../../crds/names.ts';
import { isOutOfDisk } from '../build/over-limits.ts';
import { conditionOf, type Deployment, type Pod } from '../../objects/kinds.ts';
import { short, stalled, type Outcome } from '../../reconcile/outcome.ts';
import { templateOf } from './pods.ts';
import type { Release } from './template.ts';

/**
 * Evictions of one template from which on it is not started again, when they come within a day of each other: what
 * fills its disk in a week is served by a replacement.
 */
const maximumEvictions = 2;
const evictionsWithinMs = 24 * 3_600_000;

/**
 * What is looked at. All of it outlives the operator: evicted pods, and annotations for when those are cleared away.
 */
export interface Past {
  readonly deployment: Deployment | undefined;
  readonly pods: readonly Pod[];
}

/** What to run, and the annotations that remember why. */
export interface Course {
  readonly release: Release;
  readonly marks: Record<string, string>;
  /** The wanted release failed and is not tried again until it changes. */
  readonly isRolledBack: boolean;
  readonly isOverDisk: boolean;
  /** Nothing is left that could run. */
  readonly isStopped: boolean;
}

/** Passes over what fills its disk: the fallback serves instead, or nothing until the template changes. */
export function withoutOverDisk(
  wanted: Release,
  fallback: Release | undefined,
  past: Past,
  hashOf: (release: Release) => string,
): Course {
  const candidates = [wanted, ...(fallback === undefined ? [] : [fallback])].map((release) => ({
    release,
    hash: hashOf(release),
  }));
  const stopped = candidates.map(({ hash }) => hash).filter((hash) => isStopped(hash, past));
  const marks = {
    ...(fallback === undefined ? {} : { [annotations.before]: JSON.stringify(fallback) }),
    ...(stopped.length === 0 ? {} : { [annotations.stopped]: [...new Set(stopped)].join(',') }),
  };
  const next = candidates.find(({ hash }) => !stopped.includes(hash));
  const isOverDisk = next !== candidates[0];
  const isStoppedForGood = next === undefined;
  const release = next?.release ?? wanted;
  return {
    release,
    marks: { ...marks, ...running(release) },
    isRolledBack: !isStoppedForGood && isOverDisk,
    isOverDisk,
    isStopped: isStoppedForGood,
  };
}

function isStopped(hash: string, { deployment, pods }: Past): boolean {
  return (
    (deployment?.metadata.annotations?.[annotations.stopped] ?? '').split(',').includes(hash) ||
    areMany(pods.filter((pod) => templateOf(pod) === hash && isOutOfDisk(pod)))
  );
}

function areMany(evicted: readonly Pod[]): boolean {
  const times = evicted.map(endOf).sort((a, b) => a - b);
  return times.some((time, index) => time - (times[index - maximumEvictions + 1] ?? -Infinity) <= evictionsWithinMs);
}

function endOf({ status, metadata }: Pod): number {
  return Date.parse(conditionOf(status?.conditions, 'Ready')?.lastTransitionTime ?? metadata.creationTimestamp);
}

/** Notes what a Deployment runs, whole: its template does not show the settings of the author. */
function running(release: Release): Record<string, string> {
  return { [annotations.release]: JSON.stringify(release) };
}

/** Says so. The same words each time, whether the evicted pods are still there or not. */
export function stoppedForDisk(commit: string, disk: string): Extract<Outcome, { kind: 'stalled' }> {
  return stalled('StoppedForDisk', {
    rule: 'run/out-of-disk',
    message: `Commit ${short(commit)} exceeded its ${disk} of temporary disk ${maximumEvictions} times. It is not restarted until there is a new commit.`,
    fix: `Write less (caches, logs, uploads), keep persistent data on a volume (run.volumes in moorage.yaml), or increase run.resources.disk there (maximum ${authorLimits.run.disk}).`,
  });
}
