// Ranges of ports, merged: the kernel refuses a set whose intervals overlap.
import type { Protocol } from './model.ts';

/** Ports of one protocol, both ends included. */
export interface PortRange {
  readonly protocol: Protocol;
  readonly first: number;
  readonly last: number;
}

/** The same ports with no two ranges that overlap or touch, ordered by protocol and number. */
export function mergeRanges(ranges: readonly PortRange[]): PortRange[] {
  const ordered = ranges.toSorted((a, b) =>
    a.protocol === b.protocol ? a.first - b.first : a.protocol < b.protocol ? -1 : 1,
  );
  const merged: PortRange[] = [];
  for (const range of ordered) {
    const previous = merged.at(-1);
    if (previous?.protocol === range.protocol && range.first <= previous.last + 1) {
      merged[merged.length - 1] = { ...previous, last: Math.max(previous.last, range.last) };
    } else merged.push(range);
  }
  return merged;
}
