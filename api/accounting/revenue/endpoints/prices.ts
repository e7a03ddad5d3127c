// GET /api/prices: the price list, with what is in effect and what is announced.
import { z } from 'zod';
import { defineEndpoint, type Endpoint } from '../../../http/index.ts';
import {
  contentOf,
  formatMoney,
  type Money,
  type PriceList,
  type PriceVersion,
  toolPrice,
} from '../../../billing/index.ts';
import type { Tool } from '../../../tools/index.ts';

const usd = z.string().describe('USD, decimal text.');
const versionView = z.object({
  version: z.string(),
  from: z.string().describe('First day, UTC, on which it is in effect.'),
  announced: z.string(),
  note: z.string().optional(),
  use_usd: usd.describe('A use of an app by a visitor, USD. Visitors are not charged.'),
  call_usd: usd.describe('A call of an app, USD.'),
  tools: z.record(z.string(), usd).describe('A call of each tool, USD. What its model calls cost comes on top.'),
  model_margin: z
    .string()
    .describe('Part of the cost of model calls that a caller with a key is charged on top of it.'),
  free: z.array(z.string()).describe('What nobody is charged for: cost_usd says what it cost, charged_usd is 0.'),
  accrues: z.array(z.string()).describe('What nobody is charged for, and an author accrues a share of all the same.'),
  uses_per_visitor: z.int().describe('Uses of an app by one visitor in a day of which its author accrues a share.'),
  uses_per_network: z.int().describe('The same for all visitors of one /24 (IPv4) or /48 (IPv6).'),
  uses_per_app: z.int().describe('The same for all visitors together.'),
});

export interface PricesServices {
  readonly prices: PriceList;
  /** With the prices that they have without the list. */
  readonly tools: readonly Tool[];
  readonly noticeDays: number;
  readonly promotionBudget: Money;
}

export function pricesEndpoint({ prices, tools, noticeDays, promotionBudget }: PricesServices): Endpoint {
  return defineEndpoint({
    method: 'GET',
    path: '/api/prices',
    operation: 'getPrices',
    tag: 'authors',
    summary: 'Get the price list',
    description: `Every version of the price list, the oldest first; \`current\` is in effect. A new version is announced at least ${noticeDays} days before. A version that was announced never changes, and its name stands on each line of a statement.`,
    output: z.object({
      current: z.string(),
      currency: z.literal('USD'),
      promotion_budget_usd: usd.describe(
        'What all authors together may accrue for the uses of visitors in a day, USD. The operator of this installation sets it; with 0, visits accrue nothing.',
      ),
      versions: z.array(versionView),
    }),
    outputDescription: 'The price list.',
    head: 'as GET',
    handler: async () =>
      Promise.resolve({
        current: prices.at().version,
        currency: 'USD' as const,
        promotion_budget_usd: formatMoney(promotionBudget),
        versions: prices.versions.map((version) => viewOf(version, tools)),
      }),
  });
}

function viewOf(version: PriceVersion, tools: readonly Tool[]): z.input<typeof versionView> {
  const { use, call, modelMargin, free, usesPerVisitor, usesPerNetwork, usesPerApp, ...rest } = contentOf(version);
  return {
    ...rest,
    use_usd: String(use),
    call_usd: String(call),
    tools: Object.fromEntries(tools.map(({ name, price }) => [name, formatMoney(toolPrice(version, name, price))])),
    model_margin: String(modelMargin),
    free: free ?? [],
    accrues: rest.accrues ?? [],
    uses_per_visitor: usesPerVisitor ?? 0,
    uses_per_network: usesPerNetwork ?? 0,
    uses_per_app: usesPerApp ?? 0,
  };
}
