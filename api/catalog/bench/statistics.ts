// Statistics of benchmarks: intervals of pass rates, paired differences between models, and costs.
import { type Money, fromPicoDollars } from '../../billing/index.ts';

/** The bounds of an interval. */
export type Interval = readonly [low: number, high: number];

/** The 97.5th percentile of the normal distribution: half the width of a 95 % interval, in standard errors. */
export const normalQuantile = 1.959963984540054;

/**
 * Computes Wilson's 95 % score interval of a pass rate, which is sound for few runs, and for rates of 0 and 1. Undefined
 * without a run.
 */
export function computeWilsonInterval(passed: number, n: number): Interval | undefined {
  if (n === 0) return undefined;
  const rate = passed / n;
  const square = normalQuantile ** 2 / n;
  const middle = (rate + square / 2) / (1 + square);
  const half = (normalQuantile * Math.sqrt((rate * (1 - rate)) / n + square / (4 * n))) / (1 + square);
  // At 0 and 1 the bound is exact; do not let rounding errors move it.
  return [passed === 0 ? 0 : Math.max(0, middle - half), passed === n ? 1 : Math.min(1, middle + half)];
}

/** Passes of one model on one task. */
export interface Passes {
  readonly passed: number;
  readonly n: number;
}

/** One task that both models ran. */
export interface TaskPair {
  readonly a: Passes;
  readonly b: Passes;
}

export interface Difference {
  /** Mean over the tasks of a's pass rate minus b's. */
  readonly difference: number;
  readonly tasks: number;
  /** Undefined for fewer than two tasks, which cannot show how much tasks differ. */
  readonly spread: Spread | undefined;
}

export interface Spread {
  readonly standardError: number;
  /** 95 %, by Student's t with tasks - 1 degrees of freedom. */
  readonly interval: Interval;
  /** Two-sided. */
  readonly p: number;
}

/** Weighs every task the same, however many runs it has. Undefined if both models ran no common task. */
export function computePairedDifference(pairs: readonly TaskPair[]): Difference | undefined {
  const differences = pairs.map(computeDifference);
  if (differences.length === 0) return undefined;
  const difference = computeMean(differences);
  return { difference, tasks: pairs.length, spread: computeSpread(difference, differences, pairs) };
}

/**
 * The standard error is the larger one of two: clustered by task, and by chance within the tasks. With few tasks the
 * first can be zero by luck, as where a is one run of five better in each; the second never is.
 */
function computeSpread(
  difference: number,
  differences: readonly number[],
  pairs: readonly TaskPair[],
): Spread | undefined {
  const freedom = differences.length - 1;
  if (freedom === 0) return undefined;
  const standardError = Math.max(computeClusteredError(differences), computeErrorWithinTasks(pairs));
  const half = findCriticalT(0.05, freedom) * standardError;
  return {
    standardError,
    interval: [Math.max(-1, difference - half), Math.min(1, difference + half)],
    p: computeTwoSidedP(difference / standardError, freedom),
  };
}

/** Cluster-robust standard error of the mean, each task a cluster, with the correction G / (G - 1) for few clusters. */
export function computeClusteredError(differences: readonly number[]): number {
  return Math.sqrt(computeVariance(differences) / differences.length);
}

/** Standard error of the mean difference from chance within the tasks alone. */
export function computeErrorWithinTasks(pairs: readonly TaskPair[]): number {
  const sum = pairs.reduce((total, { a, b }) => total + computeRunVariance(a) / a.n + computeRunVariance(b) / b.n, 0);
  return Math.sqrt(sum) / pairs.length;
}

/** Variance of one run; the rate is drawn towards the middle by one pass and one failure, so that it is never zero. */
export function computeRunVariance({ passed, n }: Passes): number {
  const rate = (passed + 1) / (n + 2);
  return rate * (1 - rate);
}

export function computeDifference({ a, b }: TaskPair): number {
  return a.passed / a.n - b.passed / b.n;
}

export function computeMean(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0) / values.length;
}

/** Variance of a sample, by n - 1. */
export function computeVariance(values: readonly number[]): number {
  const middle = computeMean(values);
  return values.reduce((total, value) => total + (value - middle) ** 2, 0) / (values.length - 1);
}

/** A larger estimate is not useful advice. */
const maximum = 100_000;

/**
 * Runs of each model on each task after which the 95 % interval would exclude zero. Undefined where no number of runs
 * would: the models do not differ, or the tasks differ so much that only more tasks would.
 */
export function estimateRunsToDecide(pairs: readonly TaskPair[]): number | undefined {
  if (pairs.length < 2) return undefined;
  const differences = pairs.map(computeDifference);
  const within = computeMean(pairs.map(({ a, b }) => computeRunVariance(a) + computeRunVariance(b)));
  const chance = computeMean(pairs.map(({ a, b }) => computeRunVariance(a) / a.n + computeRunVariance(b) / b.n));
  // The variance between tasks that remains after subtracting chance within them.
  const between = Math.max(0, computeVariance(differences) - chance);
  const allowed = pairs.length * (computeMean(differences) / findCriticalT(0.05, pairs.length - 1)) ** 2;
  if (allowed <= between) return undefined;
  const runs = Math.floor(within / (allowed - between)) + 1;
  const fewest = Math.min(...pairs.flatMap(({ a, b }) => [a.n, b.n]));
  return runs > maximum ? undefined : Math.max(runs, fewest + 1);
}

/**
 * The adjusted p-values, in the order given: those at most 0.05 are discoveries of which at most 5 % are expected to be
 * false.
 */
export function adjustPValues(pValues: readonly number[]): number[] {
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

/** Divides a total cost by `count`, rounded half up. Undefined for 0. */
export function divideCost(total: Money, count: number): Money | undefined {
  if (count === 0) return undefined;
  const each = BigInt(count);
  return fromPicoDollars((2n * total + each) / (2n * each));
}

export interface CostOfSuccess {
  /** Cost of all runs divided by those that passed. Undefined if it is not known. */
  readonly exact: Money | undefined;
  /** Lower bound, if the exact cost is not known: no run passed yet, or the cost of some runs is unknown. */
  readonly atLeast: Money | undefined;
}

/** `total`: the known cost of all runs; `unknown`: the number of runs whose cost is not known. */
export function computeCostOfSuccess(
  total: Money,
  { passed, unknown }: { passed: number; unknown: number },
): CostOfSuccess {
  const each = divideCost(total, Math.max(passed, 1));
  return passed > 0 && unknown === 0 ? { exact: each, atLeast: undefined } : { exact: undefined, atLeast: each };
}

/** Lanczos' approximation, g = 7, with nine coefficients: relative error below 1e-14. */
const lanczos = [
  0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059,
  12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7,
];

/** Logarithm of the gamma function, for arguments from 0.5. */
function computeLogGamma(x: number): number {
  const shifted = x - 1;
  const base = shifted + 7.5;
  const sum = lanczos.reduce(
    (total, coefficient, i) => (i === 0 ? coefficient : total + coefficient / (shifted + i)),
    0,
  );
  return 0.5 * Math.log(2 * Math.PI) + (shifted + 0.5) * Math.log(base) - base + Math.log(sum);
}

/** A denominator of the continued fraction is kept away from zero by Lentz's method. */
const avoidZero = (value: number): number => (Math.abs(value) < 1e-300 ? 1e-300 : value);

/** Continued fraction of the incomplete beta function (Lentz's method); converges fast for x < (a + 1) / (a + b + 2). */
function computeBetaFraction(x: number, a: number, b: number): number {
  let c = 1;
  let d = 1 / avoidZero(1 - ((a + b) * x) / (a + 1));
  let result = d;
  for (let m = 1; m <= 500; m += 1) {
    const even = (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / avoidZero(1 + even * d);
    c = avoidZero(1 + even / c);
    result *= d * c;
    const odd = (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / avoidZero(1 + odd * d);
    c = avoidZero(1 + odd / c);
    const step = d * c;
    result *= step;
    if (Math.abs(step - 1) < 1e-15) break;
  }
  return result;
}

/** The regularized incomplete beta function I_x(a, b). `rest` is 1 - x, passed separately so that no digits are lost. */
function computeIncompleteBeta(x: number, rest: number, a: number, b: number): number {
  if (x <= 0) return 0;
  if (rest <= 0) return 1;
  const front = Math.exp(
    computeLogGamma(a + b) - computeLogGamma(a) - computeLogGamma(b) + a * Math.log(x) + b * Math.log(rest),
  );
  return x < (a + 1) / (a + b + 2)
    ? (front * computeBetaFraction(x, a, b)) / a
    : 1 - (front * computeBetaFraction(rest, b, a)) / b;
}

/** The two-sided p-value: the probability that t with these degrees of freedom is at least as far from zero as `t`. */
export function computeTwoSidedP(t: number, freedom: number): number {
  if (!Number.isFinite(t)) return 0;
  const square = t * t;
  return computeIncompleteBeta(freedom / (freedom + square), square / (freedom + square), freedom / 2, 0.5);
}

/** The t that is exceeded in absolute value with probability `p`: 0.05 gives the bound of a 95 % interval. */
export function findCriticalT(p: number, freedom: number): number {
  let low = 0;
  let high = 1;
  while (computeTwoSidedP(high, freedom) > p) high *= 2;
  for (let i = 0; i < 200 && high - low > 1e-14 * high; i += 1) {
    const middle = (low + high) / 2;
    if (computeTwoSidedP(middle, freedom) > p) low = middle;
    else high = middle;
  }
  return (low + high) / 2;
}
