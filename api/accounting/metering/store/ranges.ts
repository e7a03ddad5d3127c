// Whole numbers as ranges, as PostgreSQL writes an int8multirange.

/** `[first, last]`, both included. */
export type Range = readonly [first: bigint, last: bigint];

/** The fewest ranges that hold these numbers, in order. */
export function rangesOf(numbers: Iterable<bigint>): Range[] {
  const ranges: [bigint, bigint][] = [];
  for (const number of [...numbers].sort(ascending)) {
    const last = ranges.at(-1);
    if (last !== undefined && number <= last[1] + 1n) last[1] = number;
    else ranges.push([number, number]);
  }
  return ranges;
}

/** Like `{[1,4),[7,8)}`. */
export function multirange(ranges: readonly Range[]): string {
  return `{${ranges.map(([first, last]) => `[${first.toString()},${(last + 1n).toString()})`).join(',')}}`;
}

function ascending(a: bigint, b: bigint): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
