// Posts what authors accrue: one line per app and day, and another for uses that arrived late. Reads the settings of revenue.
import { z } from 'zod';
import { count, readConfig } from '../../../lib/config.ts';
import type { Authorship } from '../../apps/index.ts';
import {
  type Database,
  formatMoney,
  type Money,
  moneyField,
  type PriceList,
  type PriceVersion,
} from '../../billing/index.ts';
import {
  daysToPost,
  frozenHost,
  lockPosting,
  markPosted,
  noteAccount,
  noteHosted,
  postDay,
  readClock,
} from './revenue-queries.ts';

/** Records the authors of the apps. @returns how many changed */
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
 * Binds an author to the account that the forge names. Owner names are given to others once they are free, so a change
 * freezes what the author earns until the operator has decided. @returns what it did
 */
export async function bindAuthor(
  database: Database,
  { author, account }: { author: string; account: string },
  now: Date | null = null,
): Promise<'bound' | 'frozen' | 'known'> {
  const [row] = await database.query(noteAccount, [author, account, now]);
  return row?.outcome ?? 'known';
}

/** The rules by which visits accrue a share. */
export interface AccrualRules {
  readonly prices: PriceList;
  /** What all apps together may accrue for the visits of a day. */
  readonly budget: Money;
}

/**
 * Posts what is missing of all days that ended, each in a transaction of its own: killed in between, it goes on where it
 * was. @returns how many lines
 */
export async function postShares(database: Database, rules: AccrualRules, now: Date | null = null): Promise<number> {
  const [clock] = await database.query(readClock, [now]);
  const days = await database.transaction(
    async (transaction) => {
      await transaction.script("set local statement_timeout = '15min'");
      return transaction.query(daysToPost, [now]);
    },
    { lasting: true },
  );
  let lines = 0;
  for (const { app, day } of days) lines += await postAppDay(database, { app, day, ...rules, now });
  await database.query(markPosted, [clock?.now ?? null, now]);
  return lines;
}

/** Posts what is missing of one day of an app; also of today, as far as it is over. @returns how many lines */
export async function postAppDay(
  database: Database,
  { app, day, prices, budget, now = null }: AccrualRules & { app: string; day: string; now?: Date | null },
): Promise<number> {
  return database.transaction(
    async (transaction) => {
      await transaction.script("set local statement_timeout = '15min'");
      // One at a time, so that no two apps spend the same part of the budget.
      await transaction.query(lockPosting, []);
      const [held] = await transaction.query(frozenHost, [app, day]);
      if (held !== undefined) return 0;
      const version = findVersion(prices, day);
      const [row] = await transaction.query(postDay, [
        ...[app, day, version.version, ...toCountingTerms(version)],
        ...[version.usesPerApp, formatMoney(budget), now],
      ]);
      return row?.count ?? 0;
    },
    { lasting: true },
  );
}

/** A version is in effect for whole days. */
export function findVersion(prices: PriceList, day: string): PriceVersion {
  return prices.at(new Date(`${day}T00:00:00Z`));
}

/** The parameters by which SQL counts what an author accrues. */
export function toCountingTerms(version: PriceVersion): [string, number, number, boolean, boolean] {
  const { use, usesPerVisitor, usesPerNetwork, accrues } = version;
  return [formatMoney(use), usesPerVisitor, usesPerNetwork, accrues.includes('use'), accrues.includes('call')];
}

export interface RevenueSettings {
  /** Days after the end of a month in which its statement can be disputed. */
  readonly disputeDays: number;
  /** What all authors together may accrue for the visits of a day, which the platform pays. */
  readonly promotionBudget: Money;
}

/** Every variable of statements. */
export const environment = z.object({
  MOORAGE_DISPUTE_DAYS: count
    .max(180)
    .default(14)
    .describe('Days after the end of a month in which its author can dispute a statement; then it is final.'),
  MOORAGE_PROMOTION_BUDGET: moneyField
    .prefault('0')
    .describe(
      'What all authors together may accrue for the uses of visitors in a day (UTC), USD. Visitors pay nothing, so the platform does. With 0, visits accrue nothing.',
    ),
});

/** Reads the settings. @throws Error that names every variable that is wrong. */
export function readRevenueSettings(variables: NodeJS.ProcessEnv = process.env): RevenueSettings {
  const read = readConfig(environment, variables);
  return { disputeDays: read.MOORAGE_DISPUTE_DAYS, promotionBudget: read.MOORAGE_PROMOTION_BUDGET };
}
