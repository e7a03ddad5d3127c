// What people have said of rejections since they were run.
import { readAllRepositories } from '../corpus.ts';
import { judgedBy } from './fairness.ts';
import type { Result } from './results.ts';

/** The results with it: the word of a person stands before what the run concluded. */
export function judged(results: readonly Result[]): readonly Result[] {
  const entries = new Map(readAllRepositories().map((entry) => [entry.repo, entry]));
  return results.map((result) => {
    const said = judgedBy(entries.get(result.repo), result.hidden === true);
    return said === undefined || result.verdict !== 'rejected'
      ? result
      : { ...result, ...said, why: withReason(result, said.why) };
  });
}

const withReason = ({ why }: Result, reason: string): string => (why.includes(reason) ? why : `${why} — ${reason}`);
