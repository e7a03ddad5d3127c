// Benjamini–Hochberg: of many comparisons, which ones still count.

/**
 * The adjusted p-values, in the order given: those at most 0.05 are discoveries of which at most 5 % are expected to be
 * false.
 */
export function benjaminiHochberg(pValues: readonly number[]): number[] {
  const count = pValues.length;
  const largestFirst = pValues.map((p, index) => ({ p, index })).sort((one, other) => other.p - one.p);
  const adjusted = new Array<number>(count);
  let smallest = 1;
  largestFirst.forEach(({ p, index }, place) => {
    smallest = Math.min(smallest, (p * count) / (count - place));
    adjusted[index] = smallest;
  });
  return adjusted;
}
