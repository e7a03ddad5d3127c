// The cost of a tool call: its tariff plus the billed cost of its model calls. Exact; a number only at the edge.
import { z } from 'zod';
import { Problem } from '../../../lib/problem.ts';
import {
  chargedText,
  formatMoney,
  type Money,
  moneyToNumber,
  parseBilled,
  sumMoney,
  zero,
} from '../../billing/index.ts';

/** What a spender has spent so far. */
export interface Spending {
  /** Sum of the costs that are known. */
  readonly cost: Money;
  /** What of it, or on top of it, the caller is charged by us. */
  readonly charged: Money;
  /** Calls whose cost is not known yet, and not in the sum. */
  readonly pending: number;
  /** Calls that were made, also those that failed. */
  readonly calls: number;
}

export interface Cost {
  readonly known: Money;
  readonly charged: Money;
  /** Model calls whose cost is not known yet, and not in it. */
  readonly pending: number;
  readonly source: CostOf;
}

export const costFields = {
  cost_usd: z
    .number()
    .optional()
    .describe('Cost of this call in USD. While cost_source is pending, the part that is known; absent if none is.'),
  charged_usd: z.number().describe(chargedText),
  cost_source: z
    .enum(['none', 'tariff', 'metered', 'pending'])
    .describe(
      'none: the call was free. tariff: the price of the tool. metered: the billed cost of its model calls plus the price of the tool. pending: the router has not reported the cost of some model calls yet; cost_usd does not include them.',
    ),
};
export type CostOf = z.output<typeof costFields.cost_source>;

/** Adds the tariff and the spending. `charged`: what of the tariff the caller is charged. */
export function costOf(tariff: Money, spending: Spending, charged: Money = zero): Cost {
  return {
    known: sumMoney([tariff, spending.cost]),
    charged: sumMoney([charged, spending.charged]),
    pending: spending.pending,
    source: sourceOf(tariff, spending),
  };
}

/** The cost of a job, of which only the sum is stored. */
export function jobCost({ cost, charged, pending }: Pick<Spending, 'cost' | 'charged' | 'pending'>): Cost {
  return { known: cost, charged, pending, source: sourceOf(zero, { cost, charged, pending, calls: 0 }) };
}

function sourceOf(tariff: Money, { cost, pending }: Spending): CostOf {
  if (pending > 0) return 'pending';
  if (cost > 0n) return 'metered';
  return tariff > 0n ? 'tariff' : 'none';
}

/** The fields of a response. A cost that is not known is left out, never 0. */
export function reportedCost({ known, charged, source }: Cost): {
  cost_usd?: number;
  charged_usd: number;
  cost_source: CostOf;
} {
  return {
    ...(source === 'pending' && known === zero ? {} : { cost_usd: moneyToNumber(known) }),
    charged_usd: moneyToNumber(charged),
    cost_source: source,
  };
}

/** A problem that also reports the cost of the model calls made before it: they are charged. */
export function withCost(problem: Problem, spending: Spending): Problem {
  if (spending.calls === 0) return problem;
  const { type, errors, headers, members } = problem;
  return new Problem(type, problem.message, {
    errors,
    headers,
    members: { ...members, ...reportedCost(costOf(zero, spending)) },
    cause: problem,
  });
}

/** The cost in headers, in exact digits: for responses without an envelope, and for clients that read no body. */
export function costHeaders({ known, charged, source }: Cost): Record<string, string> {
  return {
    'x-cost-source': source,
    'x-charged-usd': formatMoney(charged),
    ...(source === 'pending' && known === zero ? {} : { 'x-cost-usd': formatMoney(known) }),
  };
}

/** What each of them says. */
export const costHeaderFields = {
  'X-Cost-Usd': 'What the call cost, in USD; absent while it is not known.',
  'X-Charged-Usd': 'What you are charged for it, in USD.',
  'X-Cost-Source': 'none, tariff, metered or pending; see cost_source.',
} as const;

/** Of what is never charged for, such as a refused call or the download of a file. */
export const noCost: Cost = { known: zero, charged: zero, pending: 0, source: 'none' };

const reported = z.object({
  cost_usd: z.number().optional(),
  charged_usd: z.number().default(0),
  cost_source: z.string(),
});

/**
 * The members with which every problem at /t reports its cost: what it says itself, or that it was free. Only a cost that is
 * not known yet has no amount.
 */
export function problemCost(problem: Problem, path: string): Readonly<Record<string, unknown>> {
  if (!isToolPath(path)) return {};
  const { data } = reported.safeParse(problem.members);
  if (data === undefined) return reportedCost(noCost);
  return data.cost_source === 'pending' ? {} : { cost_usd: 0, ...data };
}

/** The same in headers. */
export function problemCostHeaders(problem: Problem, path: string): Readonly<Record<string, string>> {
  if (!isToolPath(path)) return {};
  const { data } = reported.safeParse(problem.members);
  if (data === undefined) return costHeaders(noCost);
  const { cost_usd: cost, charged_usd: charged, cost_source: source } = data;
  const known = cost ?? (source === 'pending' ? undefined : 0);
  return {
    'x-cost-source': source,
    'x-charged-usd': toDecimal(charged),
    ...(known === undefined ? {} : { 'x-cost-usd': toDecimal(known) }),
  };
}

function isToolPath(path: string): boolean {
  return path === '/t' || path.startsWith('/t/');
}

/** Without an exponent. */
function toDecimal(usd: number): string {
  return formatMoney(parseBilled(String(usd)));
}
