// Starts revenue: records the price list, posts each day's shares, and closes statements.
import type { Logger } from '../../../lib/telemetry.ts';
import { type AppIndex, readAuthorship } from '../../apps/index.ts';
import type { LedgerHandle, OpenLedger, PriceList } from '../../billing/index.ts';
import type { Endpoint } from '../../http/index.ts';
import type { Tool } from '../../tools/index.ts';
import type { Receipts } from '../receipts/index.ts';
import {
  createAuthorEndpoints,
  createDisputeEndpoint,
  createLineEndpoint,
  createStatementEndpoints,
} from './author-endpoints.ts';
import { createPricesEndpoint, recordPrices } from './prices.ts';
import { closeMonths } from './revenue-queries.ts';
import { noteAuthors, postShares, type RevenueSettings } from './shares.ts';

export interface RevenueOptions {
  readonly settings: RevenueSettings;
  readonly ledger: LedgerHandle;
  readonly prices: PriceList;
  readonly receipts: Receipts;
  readonly noticeDays: number;
  readonly apps: Pick<AppIndex, 'all'>;
  readonly tools: readonly Tool[];
  readonly baseUrl: string;
  readonly log: Logger;
}

export interface Revenue {
  readonly endpoints: readonly Endpoint[];
}

const minute = 60_000;

export function startRevenue(options: RevenueOptions): Revenue {
  const { settings, ledger, prices, receipts, noticeDays, apps, tools, baseUrl } = options;
  void ledger.opened.then((opened) => {
    if (opened !== undefined) runTasks(opened, options);
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
    endpoints: [
      createPricesEndpoint({ prices, tools, noticeDays, promotionBudget: settings.promotionBudget }),
      ...createAuthorEndpoints(services),
      ...createStatementEndpoints(services),
      createLineEndpoint(services),
      createDisputeEndpoint(services),
    ],
  };
}

function runTasks(opened: OpenLedger, { settings, prices, noticeDays, apps, log }: RevenueOptions): void {
  const { database } = opened;
  opened.repeat('keep prices', 60 * minute, async () => {
    await recordPrices(database, prices, { noticeDays, log });
    return 0;
  });
  opened.repeat('note authors', minute, async () => {
    await noteAuthors(database, apps.all().map(readAuthorship));
    return 0;
  });
  opened.repeat('post shares', 60 * minute, async () => {
    await postShares(database, { prices, budget: settings.promotionBudget });
    await database.query(closeMonths, [settings.disputeDays, null]);
    return 0;
  });
}
