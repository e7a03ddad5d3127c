// Replaces RegExp, so that RE2 matches every pattern created at run time in this process. Import this first in a worker
// whose library builds patterns from untrusted input; never import it in the API.
import type { Problem } from '../../../lib/problem.ts';
import { BoundedPattern } from './bounded-pattern.ts';

let refused: unknown;

function createPattern(args: readonly unknown[]): RegExp {
  const [pattern, flags] = args as [string | RegExp | undefined, string | undefined];
  try {
    return new BoundedPattern(pattern ?? '', flags);
  } catch (error) {
    refused = error;
    throw error;
  }
}

globalThis.RegExp = new Proxy(RegExp, {
  construct: (_, args) => createPattern(args),
  /** RegExp(pattern) without `new` returns a pattern unchanged. */
  apply: (_, __, args: readonly unknown[]) =>
    args[0] instanceof RegExp && args[1] === undefined ? args[0] : createPattern(args),
});

/** Returns and clears the last refusal: libraries catch the error and continue without the pattern. */
export function takeRefusal(): Problem | undefined {
  const last = refused;
  refused = undefined;
  return last instanceof Error && 'type' in last ? (last as Problem) : undefined;
}
