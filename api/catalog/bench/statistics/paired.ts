// Paired difference of two models over the same tasks, with a standard error clustered by task (Miller, arXiv 2411.00640).
import { criticalT, twoSidedP } from './student.ts';
import type { Interval } from './wilson.ts';

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
  /** Mean over the tasks of the rate of a less that of b. */
  readonly difference: number;
  readonly tasks: number;
  /** Undefined for less than two tasks: nothing shows then how much tasks differ. */
  readonly spread: Spread | undefined;
}

export interface Spread {
  readonly standardError: number;
  /** 95 %, by Student's t with tasks - 1 degrees of freedom. */
  readonly interval: Interval;
  /** Two-sided. */
  readonly p: number;
}

/** Every task weighs the same, however many runs it has. Undefined where no task was run by both. */
export function pairedDifference(pairs: readonly TaskPair[]): Difference | undefined {
  const differences = pairs.map(differenceOf);
  if (differences.length === 0) return undefined;
  const difference = mean(differences);
  return { difference, tasks: pairs.length, spread: spreadOf(difference, differences, pairs) };
}

/**
 * The standard error is the larger one of two: clustered by task, and by chance within the tasks. With few tasks the
 * first can be zero by luck, as where a is one run of five better in each; the second never is.
 */
function spreadOf(difference: number, differences: readonly number[], pairs: readonly TaskPair[]): Spread | undefined {
  const freedom = differences.length - 1;
  if (freedom === 0) return undefined;
  const standardError = Math.max(clusteredError(differences), errorWithin(pairs));
  const half = criticalT(0.05, freedom) * standardError;
  return {
    standardError,
    interval: [Math.max(-1, difference - half), Math.min(1, difference + half)],
    p: twoSidedP(difference / standardError, freedom),
  };
}

/** Cluster-robust standard error of the mean, each task a cluster, with the correction G / (G - 1) for few clusters. */
export function clusteredError(differences: readonly number[]): number {
  return Math.sqrt(variance(differences) / differences.length);
}

/** Standard error of the mean difference from chance within the tasks alone. */
export function errorWithin(pairs: readonly TaskPair[]): number {
  const sum = pairs.reduce((total, { a, b }) => total + runVariance(a) / a.n + runVariance(b) / b.n, 0);
  return Math.sqrt(sum) / pairs.length;
}

/** Variance of one run; the rate is drawn towards the middle by one pass and one failure, so that it is never zero. */
export function runVariance({ passed, n }: Passes): number {
  const rate = (passed + 1) / (n + 2);
  return rate * (1 - rate);
}

export function differenceOf({ a, b }: TaskPair): number {
  return a.passed / a.n - b.passed / b.n;
}

export function mean(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0) / values.length;
}

/** Variance of a sample, by n - 1. */
export function variance(values: readonly number[]): number {
  const middle = mean(values);
  return values.reduce((total, value) => total + (value - middle) ** 2, 0) / (values.length - 1);
}
