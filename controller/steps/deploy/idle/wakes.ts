// How long the wakes of an app took: the last ones, and what they come to.
import { keptWakes, type IdleStatus } from '../../../../crds/status.ts';

/** One wake, as an activator measured it. */
export interface Wake {
  /** The rest that it ended. */
  readonly number: number;
  readonly ms: number;
}

type Wakes = NonNullable<IdleStatus['wakes']>;

/** With those that are new; of one that several activators measured, the longest counts. */
export function withWakes(before: Wakes | undefined, measured: readonly Wake[]): Wakes | undefined {
  const known = before ?? { count: 0, number: 0, recentMs: [] };
  const longest = new Map<number, number>();
  for (const { number, ms } of measured)
    if (number > known.number) longest.set(number, Math.max(ms, longest.get(number) ?? 0));
  if (longest.size === 0) return before;
  const added = [...longest].toSorted(([one], [other]) => one - other).map(([, ms]) => Math.round(ms));
  const recentMs = [...known.recentMs, ...added].slice(-keptWakes);
  return {
    count: known.count + added.length,
    number: Math.max(...longest.keys()),
    p50Ms: percentile(recentMs, 0.5),
    p95Ms: percentile(recentMs, 0.95),
    recentMs,
  };
}

/** By the nearest rank. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? 0;
}
