// Posts the share that authors accrue: a line a day for the uses of each app, and one more for those that came late.
import { type Database, formatMoney, type PriceList, type PriceVersion } from '../billing/index.ts';
import type { Authorship } from '../apps/index.ts';
import { daysToPost, lockPosting, markPosted, noteHosted, postDay, readClock } from './store/statements.ts';

/** Notes whose the apps are. @returns how many changed */
export async function noteAuthors(
  database: Database,
  apps: readonly Authorship[],
  now: Date | null = null,
): Promise<number> {
  const fields = apps.map(({ app, author, sharePpm, submitter }) => ({
    app,
    author,
    share_ppm: sharePpm,
    submitter: submitter ?? null,
  }));
  const [row] = await database.query(noteHosted, [JSON.stringify(fields), now]);
  return row?.count ?? 0;
}

/**
 * Posts what is missing of all days that ended, each in a transaction of its own: killed in between, it goes on where it
 * was. @returns how many lines
 */
export async function postShares(database: Database, prices: PriceList, now: Date | null = null): Promise<number> {
  const [clock] = await database.query(readClock, [now]);
  const days = await database.transaction(async (transaction) => {
    await transaction.script("set local statement_timeout = '15min'");
    return transaction.query(daysToPost, [now]);
  });
  let lines = 0;
  for (const { app, day } of days) lines += await postDayOf(database, { app, day, prices, now });
  await database.query(markPosted, [clock?.now ?? null, now]);
  return lines;
}

/** Posts what is missing of one day of an app; also of today, as far as it is over. @returns how many lines */
export async function postDayOf(
  database: Database,
  { app, day, prices, now = null }: { app: string; day: string; prices: PriceList; now?: Date | null },
): Promise<number> {
  return database.transaction(async (transaction) => {
    await transaction.script("set local statement_timeout = '15min'");
    await transaction.query(lockPosting, []);
    const [row] = await transaction.query(postDay, [app, day, ...pricesOf(versionOn(prices, day)), now]);
    return row?.count ?? 0;
  });
}

/** A version is in effect for whole days. */
export function versionOn(prices: PriceList, day: string): PriceVersion {
  return prices.at(new Date(`${day}T00:00:00Z`));
}

/** The parameters by which SQL counts what an author accrues. */
export function countingOf({ use, usesPerVisitor, accrues }: PriceVersion): [string, number, boolean, boolean] {
  return [formatMoney(use), usesPerVisitor, accrues.includes('use'), accrues.includes('call')];
}

function pricesOf(version: PriceVersion): unknown[] {
  return [version.version, ...countingOf(version)];
}
