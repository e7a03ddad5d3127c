// All kinds of problem that an API answers with: those of any endpoint, and those that its endpoints name.
import type { ProblemType } from '../../../lib/problem.ts';
import type { Endpoint } from '../endpoint.ts';
import { httpProblems } from './problems.ts';

/** By slug, each once. */
export function collectProblemTypes(endpoints: readonly Endpoint[]): ReadonlyMap<string, ProblemType> {
  const types = [...httpProblems, ...endpoints.flatMap(({ problems }) => problems)];
  return new Map(types.map((type) => [type.slug, type]));
}
