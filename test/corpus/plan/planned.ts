// What any planner says of a repository, in one shape, so that all are judged by the same rule.
import { z } from 'zod';
import { expand } from './scripts.ts';

export const planned = z.object({
  planner: z.string(),
  refused: z.boolean(),
  /** Why it was refused, or why this plan. */
  why: z.string(),
  /** It was refused because an address of the internet was out of reach while it was planned. */
  unreachable: z.boolean().optional(),
  /** `static` when files are all that is served. */
  strategy: z.string().optional(),
  /** Of the app; `.` at the top. */
  folder: z.string(),
  start: z.string(),
  /** Every command of the build, a line each. */
  build: z.string(),
  /** The served folder of a static plan, seen from the folder. */
  serves: z.string().optional(),
  port: z.number().optional(),
  /** Path of the author's Dockerfile, when that is built. */
  dockerfile: z.string().optional(),
  services: z.array(z.string()).optional(),
});
export type Planned = Readonly<z.output<typeof planned>>;

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
