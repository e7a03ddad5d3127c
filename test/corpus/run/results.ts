// Results of a run, a line of JSON each, so that a stopped run continues where it was.
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { z } from 'zod';
import { appendLine } from '../table.ts';

/** From the best to the worst. */
export const verdicts = [
  'live and works',
  'live with faults',
  'live with a warning',
  'falsely live',
  'rejected',
  'not submitted',
  'not brought in',
] as const;

const row = z.strictObject({
  repo: z.string(),
  commit: z.string(),
  version: z.string(),
  stack: z.string(),
  verdict: z.enum(verdicts),
  /** Its Dockerfiles were hidden, so that Moorage planned it. */
  hidden: z.boolean().optional(),
  /** It had no licence file and was submitted with one. */
  licensed: z.boolean().optional(),
  /** Of a rejection. */
  fair: z.enum(['yes', 'no', 'network', 'unjudged']).optional(),
  why: z.string(),
  seconds: z.number().optional(),
  imageBytes: z.number().optional(),
  plan: z.string().optional(),
  url: z.string().optional(),
  elsewhere: z.array(z.string()).optional(),
  /** The last lines of its log. */
  log: z.array(z.string()).optional(),
  /** Files that the mirror did not have. */
  missing: z.array(z.string()).optional(),
  at: z.string(),
});
export type Result = z.output<typeof row>;

export interface Results {
  /** The newest of each repository, whichever version it was run at. */
  readonly all: readonly Result[];
  find(repo: string, commit: string): Result | undefined;
  add(result: Result): Promise<void>;
}

export function openResults(path: string): Results {
  const text = existsSync(path) ? readFileSync(path, 'utf8') : '';
  // What comes next does not hang on a line that was cut off.
  if (text !== '' && !text.endsWith('\n')) appendFileSync(path, '\n');
  const read = text.split('\n').flatMap((line) => parse(line));
  const byRepository = new Map(read.map((each) => [`${each.repo}@${each.commit}`, each]));
  return {
    get all() {
      return [...byRepository.values()];
    },
    find: (repo, commit) => byRepository.get(`${repo}@${commit}`),
    async add(result) {
      byRepository.set(`${result.repo}@${result.commit}`, result);
      await appendLine(path, result);
    },
  };
}

/** A line that was cut off when the run was stopped counts for nothing. */
function parse(line: string): Result[] {
  try {
    return [row.parse(JSON.parse(line))];
  } catch {
    return [];
  }
}
