// Records the price list as it was announced, and publishes it at GET /api/prices. A recorded version never changes.
import { z } from 'zod';
import type { Logger } from '../../../lib/telemetry.ts';
import {
  toVersionJson,
  type Database,
  countDaysBetween,
  formatMoney,
  type Money,
  type PriceList,
  type PriceVersion,
  readVersion,
  resolveToolPrice,
} from '../../billing/index.ts';
import { defineEndpoint, type Endpoint } from '../../http/index.ts';
import type { Tool } from '../../tools/index.ts';
import { readClock, recordVersion, versions } from './revenue-queries.ts';

/**
 * Records versions that are new, and from then on goes by what is recorded. What is configured otherwise is reported, and
 * has no effect.
 */
export async function recordPrices(
  database: Database,
  prices: PriceList,
  { noticeDays, log, now = null }: { noticeDays: number; log: Logger; now?: Date | null },
): Promise<void> {
  const recorded = await readVersions(database);
  const [clock] = await database.query(readClock, [now]);
  const today = (clock?.now ?? new Date()).toISOString().slice(0, 10);
  const newest = [...recorded.values()].at(-1);
  for (const version of prices.versions) {
    const known = recorded.get(version.version);
    const fault = known === undefined ? findFault(version, newest, today, noticeDays) : findChange(known, version);
    if (fault !== undefined) log.error({ version: version.version }, `the price list: ${fault}`);
    else if (known === undefined)
      await database.query(recordVersion, [version.version, version.from, JSON.stringify(toVersionJson(version))]);
  }
  prices.replace([...(await readVersions(database)).values()]);
}

/** The versions that were recorded, the oldest first. */
export async function readRecordedPrices(database: Database): Promise<PriceVersion[]> {
  return [...(await readVersions(database)).values()];
}

async function readVersions(database: Database): Promise<Map<string, PriceVersion>> {
  const rows = await database.query(versions, []);
  return new Map(rows.map(({ version, content }) => [version, readVersion(content)]));
}

/** Of a version that was recorded. */
function findChange(known: PriceVersion, configured: PriceVersion): string | undefined {
  return JSON.stringify(toVersionJson(known)) === JSON.stringify(toVersionJson(configured))
    ? undefined
    : `version ${known.version} was announced with other prices, which stay in effect; announce a new version instead`;
}

/** Of a version that is not recorded yet. The first ones begin the list and need no notice. */
function findFault(
  { version, from }: PriceVersion,
  newest: PriceVersion | undefined,
  today: string,
  noticeDays: number,
): string | undefined {
  if (newest === undefined) return undefined;
  if (from <= newest.from)
    return `version ${version} begins on ${from}, but ${newest.version} has been announced for ${newest.from}; set a later day`;
  return countDaysBetween(today, from) < noticeDays
    ? `version ${version} begins on ${from}, less than ${noticeDays} days from today (${today}); set a later day`
    : undefined;
}

const usd = z.string().describe('USD, decimal text.');
const versionView = z.object({
  version: z.string(),
  from: z.string().describe('First UTC day on which it is in effect.'),
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
  uses_per_visitor: z
    .int()
    .describe('Maximum uses of an app by one visitor per day of which its author accrues a share.'),
  uses_per_network: z.int().describe('The same for all visitors of one /24 (IPv4) or /48 (IPv6).'),
  uses_per_app: z.int().describe('The same for all visitors together.'),
});

export const priceListView = z.object({
  current: z.string(),
  currency: z.literal('USD'),
  promotion_budget_usd: usd.describe(
    'What all authors together may accrue for the uses of visitors in a day, USD. The operator of this installation sets it; with 0, visits accrue nothing.',
  ),
  versions: z.array(versionView),
});
export type PriceListView = z.output<typeof priceListView>;

export interface PricesServices {
  readonly prices: PriceList;
  /** With the prices that they have without the list. */
  readonly tools: readonly Tool[];
  readonly noticeDays: number;
  readonly promotionBudget: Money;
}

export function createPricesEndpoint({ prices, tools, noticeDays, promotionBudget }: PricesServices): Endpoint {
  return defineEndpoint({
    method: 'GET',
    path: '/api/prices',
    operation: 'getPrices',
    tag: 'authors',
    summary: 'Get the price list',
    description: `Every version of the price list, the oldest first; \`current\` is in effect. A new version is announced at least ${noticeDays} days before. A version that was announced never changes, and its name stands on each line of a statement.`,
    output: priceListView,
    outputDescription: 'The price list.',
    head: 'as GET',
    handler: async () =>
      Promise.resolve({
        current: prices.at().version,
        currency: 'USD' as const,
        promotion_budget_usd: formatMoney(promotionBudget),
        versions: prices.versions.map((version) => toVersionView(version, tools)),
      }),
  });
}

function toVersionView(version: PriceVersion, tools: readonly Tool[]): z.input<typeof versionView> {
  const { use, call, modelMargin, free, usesPerVisitor, usesPerNetwork, usesPerApp, ...rest } = toVersionJson(version);
  return {
    ...rest,
    use_usd: String(use),
    call_usd: String(call),
    tools: Object.fromEntries(
      tools.map(({ name, price }) => [name, formatMoney(resolveToolPrice(version, name, price))]),
    ),
    model_margin: String(modelMargin),
    free: free ?? [],
    accrues: rest.accrues ?? [],
    uses_per_visitor: usesPerVisitor ?? 0,
    uses_per_network: usesPerNetwork ?? 0,
    uses_per_app: usesPerApp ?? 0,
  };
}
