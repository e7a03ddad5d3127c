// GET /api/prices: the price list, with what is in effect and what is announced.
import { z } from 'zod';
import { defineEndpoint, type Endpoint } from '../../http/index.ts';
import { contentOf, formatMoney, type PriceList, type PriceVersion, toolPrice } from '../../billing/index.ts';
import type { Tool } from '../../tools/index.ts';

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
});

export interface PricesServices {
  readonly prices: PriceList;
  /** With the prices that they have without the list. */
  readonly tools: readonly Tool[];
  readonly noticeDays: number;
}

export function pricesEndpoint({ prices, tools, noticeDays }: PricesServices): Endpoint {
  return defineEndpoint({
    method: 'GET',
    path: '/api/prices',
    operation: 'getPrices',
    tag: 'authors',
    summary: 'Get the price list',
    description: `Every version of the price list, the oldest first; \`current\` is in effect. A new version is announced at least ${noticeDays} days before. A version that was announced never changes, and its name stands on each line of a statement.`,
    output: z.object({ current: z.string(), currency: z.literal('USD'), versions: z.array(versionView) }),
    outputDescription: 'The price list.',
    head: 'as GET',
    handler: async () =>
      Promise.resolve({
        current: prices.at().version,
        currency: 'USD' as const,
        versions: prices.versions.map((version) => viewOf(version, tools)),
      }),
  });
}

function viewOf(version: PriceVersion, tools: readonly Tool[]): z.input<typeof versionView> {
  const { use, call, modelMargin, free, usesPerVisitor, ...rest } = contentOf(version);
  return {
    ...rest,
    use_usd: String(use),
    call_usd: String(call),
    tools: Object.fromEntries(tools.map(({ name, price }) => [name, formatMoney(toolPrice(version, name, price))])),
    model_margin: String(modelMargin),
    free: free ?? [],
    accrues: rest.accrues ?? [],
    uses_per_visitor: usesPerVisitor ?? 0,
  };
}
