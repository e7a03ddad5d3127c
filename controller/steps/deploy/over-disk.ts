// Ends the round of an app that fills its disk, is evicted and replaced, again and again: as it is, it is not started
// any more.
import { authorLimits } from '../../../crds/app-manifest.ts';
import { annotations } from '../../../crds/names.ts';
import { isOutOfDisk } from '../build/over-limits.ts';
import { conditionOf, type Deployment, type Pod } from '../../objects/kinds.ts';
import { short, stalled, type Outcome } from '../../reconcile/outcome.ts';
import { readRelease, type Choice } from './last-good.ts';
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
  /** What answers, or did last. */
  readonly served: { readonly image: string; readonly commit: string } | undefined;
}

/** A choice, and whether disk has changed it. `isStopped`: nothing is left that could run. */
export interface Course extends Choice {
  readonly isOverDisk: boolean;
  readonly isStopped: boolean;
}

/** Passes over what fills its disk: the release before it serves instead, or nothing until the template changes. */
export function withoutOverDisk(
  choice: Choice,
  wanted: Release,
  past: Past,
  hashOf: (release: Release) => string,
): Course {
  const before = releaseBefore(wanted, past);
  const candidates = [choice.release, ...(before === undefined ? [] : [before])].map((release) => ({
    release,
    hash: hashOf(release),
  }));
  const stopped = candidates.map(({ hash }) => hash).filter((hash) => isStopped(hash, past));
  const marks = {
    ...choice.marks,
    ...(before === undefined ? {} : { [annotations.before]: JSON.stringify(before) }),
    ...(stopped.length === 0 ? {} : { [annotations.stopped]: [...new Set(stopped)].join(',') }),
  };
  const next = candidates.find(({ hash }) => !stopped.includes(hash));
  if (next === undefined)
    return { ...choice, marks: { ...marks, ...running(choice.release) }, isOverDisk: true, isStopped: true };
  const isOverDisk = next !== candidates[0];
  return {
    release: next.release,
    marks: { ...marks, ...running(next.release) },
    isRolledBack: choice.isRolledBack || isOverDisk,
    isOverDisk,
    isStopped: false,
  };
}

function isStopped(hash: string, { deployment, pods }: Past): boolean {
  return (
    noted(deployment, annotations.stopped, (text = '') => text.split(',').includes(hash)) ||
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

/** The release that served until the wanted one came. */
function releaseBefore(wanted: Release, { deployment, served }: Past): Release | undefined {
  const current = noted(deployment, annotations.release, readRelease);
  const didServe = current !== undefined && current.image === served?.image && current.commit === served.commit;
  const before =
    didServe && current.image !== wanted.image ? current : noted(deployment, annotations.before, readRelease);
  return before?.image === wanted.image ? undefined : before;
}

/** Notes what a Deployment runs, whole: its template does not show the settings of the author. */
function running(release: Release): Record<string, string> {
  return { [annotations.release]: JSON.stringify(release) };
}

function noted<T>(deployment: Deployment | undefined, annotation: string, read: (text: string | undefined) => T): T {
  return read(deployment?.metadata.annotations?.[annotation]);
}

/** Says so. The same words each time, whether the evicted pods are still there or not. */
export function stoppedForDisk(commit: string, disk: string): Extract<Outcome, { kind: 'stalled' }> {
  return stalled('StoppedForDisk', {
    rule: 'run/out-of-disk',
    message: `Commit ${short(commit)} exceeded its ${disk} of temporary disk ${maximumEvictions} times. It is not restarted until there is a new commit.`,
    fix: `Write less (caches, logs, uploads), keep persistent data on a volume (run.volumes in moorage.yaml), or increase run.resources.disk there (maximum ${authorLimits.run.disk}).`,
  });
}
