// Posts the share of an app's uses of today, as the platform does once the day has ended.
import { readAuthorship, type App } from '../../../api/apps/hosted-apps.ts';
import type { Database } from '../../../api/billing/database/database.ts';
import { parseMoney } from '../../../api/billing/ledger/money.ts';
import { readPriceList } from '../../../api/billing/prices.ts';
import { noteAuthors, postAppDay } from '../../../api/accounting/revenue/statement.ts';

/** `prices`: MOORAGE_PRICES of the sample. @returns how many lines */
export async function postToday(database: Database, app: App, prices: string): Promise<number> {
  await noteAuthors(database, [readAuthorship(app)]);
  const day = new Date().toISOString().slice(0, 10);
  return postAppDay(database, {
    app: app.metadata.name,
    day,
    prices: readPriceList(prices, 0),
    budget: parseMoney('1000'),
  });
}
