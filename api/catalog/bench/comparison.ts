// Compares the models of a benchmark in pairs, over the tasks that both have run.
import {
  benjaminiHochberg,
  type Difference,
  pairedDifference,
  runsToDecide,
  type TaskPair,
} from './statistics/index.ts';
import type { ModelView, PairView } from './views.ts';

interface Comparison {
  readonly a: string;
  readonly b: string;
  readonly pairs: readonly TaskPair[];
  readonly seen: Difference;
}

/** Every pair of models with a task in common, in the order of the models. */
export function comparePairs(models: readonly ModelView[]): PairView[] {
  const compared = models.flatMap((a, index) => models.slice(index + 1).flatMap((b) => compare(a, b)));
  const tested = compared.filter(({ seen }) => seen.spread !== undefined);
  const adjusted = benjaminiHochberg(tested.map(({ seen }) => seen.spread?.p ?? 1));
  const adjustedOf = new Map(tested.map((one, index) => [one, adjusted[index] ?? 1]));
  return compared.map((one) => pairView(one, adjustedOf.get(one)));
}

function compare(a: ModelView, b: ModelView): Comparison[] {
  const pairs = a.by_task.flatMap(({ task, quality }) => {
    const other = b.by_task.find((entry) => entry.task === task)?.quality;
    return other === undefined || quality.n === 0 || other.n === 0 ? [] : [{ a: quality, b: other }];
  });
  const seen = pairedDifference(pairs);
  return seen === undefined ? [] : [{ a: a.model, b: b.model, pairs, seen }];
}

function pairView({ a, b, pairs, seen }: Comparison, adjusted: number | undefined): PairView {
  const verdict = verdictOf(seen, adjusted);
  return {
    a,
    b,
    difference: seen.difference,
    interval: seen.spread === undefined ? null : [...seen.spread.interval],
    tasks: seen.tasks,
    adjusted_p: adjusted ?? null,
    verdict,
    runs_to_decide: verdict === 'tie' ? (runsToDecide(pairs) ?? null) : null,
  };
}

/** Both have to agree: the interval of this pair, and what many pairs leave of its p-value. */
function verdictOf({ spread }: Difference, adjusted: number | undefined): PairView['verdict'] {
  if (spread === undefined || adjusted === undefined || adjusted > 0.05) return 'tie';
  if (spread.interval[0] > 0) return 'a';
  return spread.interval[1] < 0 ? 'b' : 'tie';
}
