// The kinds of problem that benchmarks answer with.
import type { ProblemType } from '../../../lib/problem.ts';

export const unknownBenchmark: ProblemType = {
  slug: 'unknown-benchmark',
  status: 404,
  title: 'No benchmark for this app',
  description:
    'No benchmark was ever registered for an app of this slug. `nearest` lists similar slugs that have one; GET /api/bench lists all benchmarks.',
};
