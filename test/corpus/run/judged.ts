// Results with what people have said of their rejections since.
import { readCorpus } from '../corpus.ts';
import { judgedBy } from './fairness.ts';
import type { Result } from './results.ts';

/** With what a person has said of a rejection since. */
export function judged(results: readonly Result[]): readonly Result[] {
  const entries = new Map(readCorpus().map((entry) => [entry.repo, entry]));
  return results.map((result) => {
    const said = judgedBy(entries.get(result.repo));
    return said === undefined || result.verdict !== 'rejected'
      ? result
      : { ...result, ...said, why: withReason(result, said.why) };
  });
}

const withReason = ({ why }: Result, reason: string): string => (why.includes(reason) ? why : `${why} — ${reason}`);
