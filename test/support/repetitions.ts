// How often a test with random input repeats itself, and how many of similar samples it takes: a few in `npm test`, many
// in `npm run test:deep`.
import { z } from 'zod';

/** Set by `npm run test:deep`. */
export const isDeep = z.stringbool().default(false).parse(process.env['DEEP_TESTS']);

/** Every kind of input must come up at least once in `usual` repetitions: `deep` adds more of the same. */
export function chooseRepetitions({ usual, deep }: { readonly usual: number; readonly deep: number }): number {
  return isDeep ? deep : usual;
}

/** Of samples that take the same path: the first `usual` in `npm test`, all of them in `npm run test:deep`. */
export function chooseSamples<Sample>(samples: readonly Sample[], usual = 1): readonly Sample[] {
  return isDeep ? samples : samples.slice(0, usual);
}

/** Time limit of a deep run, and of each of its tests. */
export const deepLimitMs = 6 * 60 * 60_000;
