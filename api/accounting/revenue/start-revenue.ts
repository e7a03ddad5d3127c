// Starts revenue: reads its settings, records the price list, posts shares, and serves authors.
import { z } from 'zod';
import { readConfig } from '../../../lib/config.ts';
import { defineSetting, kinds, valueTypes } from '../../../lib/settings.ts';
import type { Logger } from '../../../lib/telemetry.ts';
import type { AppIndex, AuthorNews } from '../../apps/index.ts';
import { type LedgerHandle, type Money, moneyField, type PriceList } from '../../billing/index.ts';
import type { Endpoint } from '../../http/index.ts';
import type { Tool } from '../../tools/index.ts';
import type { Receipts } from '../receipts/index.ts';
import {
  createAuthorEndpoints,
  createDisputeEndpoint,
  createLineEndpoint,
  createStatementEndpoints,
} from './author-endpoints.ts';
import { listAuthorNews } from './author-news.ts';
import { createPricesEndpoint, recordPrices } from './prices.ts';
import { startPosting } from './statement.ts';

export interface RevenueOptions {
  readonly settings: RevenueSettings;
  readonly ledger: LedgerHandle;
  readonly prices: PriceList;
  readonly receipts: Receipts;
  readonly noticeDays: number;
  readonly apps: Pick<AppIndex, 'listAll'>;
  readonly tools: readonly Tool[];
  readonly baseUrl: string;
  readonly log: Logger;
}

export interface Revenue {
  readonly endpoints: readonly Endpoint[];
  /** Statements that became ready and payouts, of the last week. */
  readonly listAuthorNews: () => Promise<readonly AuthorNews[]>;
}

export function startRevenue(options: RevenueOptions): Revenue {
  const { settings, ledger, prices, receipts, noticeDays, apps, tools, baseUrl, log } = options;
  void ledger.opened.then((opened) => {
    if (opened === undefined) return;
    opened.repeat('keep prices', 3_600_000, async () => {
      await recordPrices(opened.database, prices, { noticeDays, log });
      return 0;
    });
    startPosting(opened, { apps, prices, budget: settings.promotionBudget, disputeDays: settings.disputeDays });
  });
  const services = {
    apps,
    prices,
    receipts,
    baseUrl,
    disputeDays: settings.disputeDays,
    database: () => ledger.get().database,
  };
  return {
    listAuthorNews: async () => listAuthorNews(ledger.get().database, settings.disputeDays),
    endpoints: [
      createPricesEndpoint({ prices, tools, noticeDays, promotionBudget: settings.promotionBudget }),
      ...createAuthorEndpoints(services),
      ...createStatementEndpoints(services),
      createLineEndpoint(services),
      createDisputeEndpoint(services),
    ],
  };
}

export interface RevenueSettings {
  /** Days after the end of a month in which its statement can be disputed. */
  readonly disputeDays: number;
  /** What all authors together may accrue for the visits of a day, which the platform pays. */
  readonly promotionBudget: Money;
}

/** Every variable of statements. */
export const environment = z.object({
  MOORAGE_DISPUTE_DAYS: defineSetting(kinds.number({ min: 1, max: 180 }), {
    value: 'revenue.disputeDays',
    default: 14,
    description: 'Days after the end of a month in which an author can dispute its statement; then it is final.',
  }),
  MOORAGE_PROMOTION_BUDGET: defineSetting(kinds.text(valueTypes.usd, moneyField), {
    value: 'revenue.promotionBudget',
    default: '0',
    description:
      'What all authors together may accrue for the uses of visitors in a day (UTC), USD, as decimal text. Visitors pay nothing, so you do. With 0, visits accrue nothing.',
  }),
});

/** Reads the settings. @throws Error that names every variable that is wrong. */
export function readRevenueSettings(variables: NodeJS.ProcessEnv = process.env): RevenueSettings {
  const read = readConfig(environment, variables);
  return { disputeDays: read.MOORAGE_DISPUTE_DAYS, promotionBudget: read.MOORAGE_PROMOTION_BUDGET };
}
