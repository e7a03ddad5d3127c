// Cost of a run and of a success, in whole pico-dollars.
import { type Money, picoDollars } from '../../../billing/index.ts';

/** What all runs cost, for each of `count`; rounded half up. Undefined for none. */
export function costEach(total: Money, count: number): Money | undefined {
  if (count === 0) return undefined;
  const each = BigInt(count);
  return picoDollars((2n * total + each) / (2n * each));
}

export interface CostOfSuccess {
  /** Cost of all runs, divided by those that passed. Undefined where that is not known. */
  readonly exact: Money | undefined;
  /** What a success costs at least, where it is not known: none passed yet, or the cost of some runs is not known. */
  readonly atLeast: Money | undefined;
}

/** `total`: what is known to have been billed for all runs; `unknown`: how many runs have a cost that is not known. */
export function costOfSuccess(total: Money, { passed, unknown }: { passed: number; unknown: number }): CostOfSuccess {
  const each = costEach(total, Math.max(passed, 1));
  return passed > 0 && unknown === 0 ? { exact: each, atLeast: undefined } : { exact: undefined, atLeast: each };
}
