// How many runs of each task would decide between two models, if they differ as much as was seen.
import { differenceOf, mean, runVariance, type TaskPair, variance } from './paired.ts';
import { criticalT } from './student.ts';

/** More than that is no advice. */
const maximum = 100_000;

/**
 * Runs of each model on each task after which the 95 % interval would exclude zero. Undefined where no number of runs
 * would: the models do not differ, or the tasks differ so much that only more tasks would.
 */
export function runsToDecide(pairs: readonly TaskPair[]): number | undefined {
  if (pairs.length < 2) return undefined;
  const differences = pairs.map(differenceOf);
  const within = mean(pairs.map(({ a, b }) => runVariance(a) + runVariance(b)));
  const chance = mean(pairs.map(({ a, b }) => runVariance(a) / a.n + runVariance(b) / b.n));
  // What of the spread over tasks is left once chance within them is taken out.
  const between = Math.max(0, variance(differences) - chance);
  const allowed = pairs.length * (mean(differences) / criticalT(0.05, pairs.length - 1)) ** 2;
  if (allowed <= between) return undefined;
  const runs = Math.floor(within / (allowed - between)) + 1;
  const sofar = Math.min(...pairs.flatMap(({ a, b }) => [a.n, b.n]));
  return runs > maximum ? undefined : Math.max(runs, sofar + 1);
}
