// Every kind of problem that has a page: those of the endpoints, and those of programs and ports that have none here.
import { activatorProblems } from '../../../crds/reports.ts';
import type { ProblemType } from '../../../lib/problem.ts';
import { type Endpoint, collectProblemTypes } from '../../http/index.ts';
import { internalProblems } from '../../accounting/index.ts';

/** By slug, each once. */
export function collectDocumentedProblems(endpoints: readonly Endpoint[]): ReadonlyMap<string, ProblemType> {
  const others = [...Object.values(activatorProblems), ...internalProblems];
  return new Map([...others.map((type) => [type.slug, type] as const), ...collectProblemTypes(endpoints)]);
}
