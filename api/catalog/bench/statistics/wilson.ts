// Wilson's score interval of a pass rate: sound for few runs, and for rates of 0 and 1.

/** The bounds of an interval. */
export type Interval = readonly [low: number, high: number];

/** Bound of a two-sided 95 % interval of the normal distribution. */
const z = 1.959963984540054;

/** The 95 % interval of `passed` in `n` runs; undefined without a run. */
export function wilsonInterval(passed: number, n: number): Interval | undefined {
  if (n === 0) return undefined;
  const rate = passed / n;
  const square = (z * z) / n;
  const middle = (rate + square / 2) / (1 + square);
  const half = (z * Math.sqrt((rate * (1 - rate)) / n + square / (4 * n))) / (1 + square);
  // At the ends the bound is exact, whatever the arithmetic leaves of it.
  return [passed === 0 ? 0 : Math.max(0, middle - half), passed === n ? 1 : Math.min(1, middle + half)];
}
