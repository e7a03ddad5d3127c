// What any planner says of a repository, in one shape, so that all are judged by the same rule.
import { expand } from './scripts.ts';

export interface Planned {
  readonly planner: string;
  readonly refused: boolean;
  /** Why it was refused, or why this plan. */
  readonly why: string;
  /** `static` when files are all that is served. */
  readonly strategy?: string | undefined;
  /** Of the app; `.` at the top. */
  readonly folder: string;
  readonly start: string;
  /** Every command of the build, a line each. */
  readonly build: string;
  /** The served folder of a static plan, seen from the folder. */
  readonly serves?: string | undefined;
  readonly port?: number | undefined;
  /** Path of the author's Dockerfile, when that is built. */
  readonly dockerfile?: string | undefined;
  readonly services?: readonly string[] | undefined;
}

export function refusal(planner: string, why: string): Planned {
  return { planner, refused: true, why, folder: '.', start: '', build: '' };
}

/** A plan that was made for the top of the repository, with the scripts that its commands name. */
export function planOf(
  planner: string,
  root: string,
  found: { start: string; build: readonly string[]; strategy: string | undefined; serves: string | undefined },
): Planned {
  const { start, build, strategy, serves } = found;
  return {
    planner,
    refused: false,
    why: '',
    strategy: serves === undefined ? strategy : 'static',
    folder: '.',
    start: expand(start, root, '.'),
    build: build.map((each) => expand(each, root, '.')).join('\n'),
    serves,
  };
}
