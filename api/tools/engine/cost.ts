// What a call of a tool costs: its tariff, and what its model calls were billed. Exact; a number only at the edge.
import { z } from 'zod';
import { Problem } from '../../../lib/problem.ts';
import { moneyToNumber, sumMoney, zero, type Money } from '../../billing/ledger/money.ts';

/** What a spender has spent so far. */
export interface Spent {
  /** Sum of the costs that are known. */
  readonly cost: Money;
  /** Calls whose cost is not known yet, and not in the sum. */
  readonly pending: number;
  /** Calls that were made, also those that failed. */
  readonly calls: number;
}

export interface Cost {
  readonly known: Money;
  /** Model calls whose cost is not known yet, and not in it. */
  readonly pending: number;
  readonly source: CostOf;
}

export const costFields = {
  cost_usd: z
    .number()
    .optional()
    .describe(
      'What this call cost in USD, exactly as booked. While cost_source is pending, what is known of it; absent when nothing is',
    ),
  cost_source: z
    .enum(['none', 'tariff', 'metered', 'pending'])
    .describe(
      'none: it cost nothing; tariff: the price of the tool; metered: what its model calls were billed, and the price of the tool; pending: the router has not told the cost of some model calls yet, and they are not in cost_usd',
    ),
};
export type CostOf = z.output<typeof costFields.cost_source>;

/** Adds up. */
export function costOf(tariff: Money, spent: Spent): Cost {
  return { known: sumMoney([tariff, spent.cost]), pending: spent.pending, source: sourceOf(tariff, spent) };
}

/** The cost of a job, of whose parts only the sum is kept. */
export function jobCost({ cost, pending }: Pick<Spent, 'cost' | 'pending'>): Cost {
  return { known: cost, pending, source: sourceOf(zero, { cost, pending, calls: 0 }) };
}

function sourceOf(tariff: Money, { cost, pending }: Spent): CostOf {
  if (pending > 0) return 'pending';
  if (cost > 0n) return 'metered';
  return tariff > 0n ? 'tariff' : 'none';
}

/** As it is told. What is not known is left out, never 0. */
export function toldCost({ known, source }: Cost): { cost_usd?: number; cost_source: CostOf } {
  return { ...(source === 'pending' && known === zero ? {} : { cost_usd: moneyToNumber(known) }), cost_source: source };
}

/** A refusal that also says what the model calls before it have cost: they were made, so they are booked. */
export function withCost(problem: Problem, spent: Spent): Problem {
  if (spent.calls === 0) return problem;
  const { type, errors, headers, members } = problem;
  return new Problem(type, problem.message, {
    errors,
    headers,
    members: { ...members, ...toldCost(costOf(zero, spent)) },
    cause: problem,
  });
}
