// Has every pattern that is made at run time in this process matched by RE2. To be imported first by the program of a
// worker whose library makes patterns out of what strangers send; never by the API itself.
import type { Problem } from '../../../lib/problem.ts';
import { BoundedPattern } from './bounded-pattern.ts';

let refused: unknown;

function made(args: readonly unknown[]): RegExp {
  const [pattern, flags] = args as [string | RegExp | undefined, string | undefined];
  try {
    return new BoundedPattern(pattern ?? '', flags);
  } catch (error) {
    refused = error;
    throw error;
  }
}

globalThis.RegExp = new Proxy(RegExp, {
  construct: (_, args) => made(args),
  /** RegExp(pattern) without `new` hands on a pattern as it is. */
  apply: (_, __, args: readonly unknown[]) =>
    args[0] instanceof RegExp && args[1] === undefined ? args[0] : made(args),
});

/** The newest refusal, once: libraries catch what is thrown, and go on without the pattern. */
export function takeRefusal(): Problem | undefined {
  const last = refused;
  refused = undefined;
  return last instanceof Error && 'type' in last ? (last as Problem) : undefined;
}
