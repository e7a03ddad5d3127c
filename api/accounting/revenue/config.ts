// Configuration of statements, read from the environment.
import { z } from 'zod';
import { count, readConfig } from '../../../lib/config.ts';
import { type Money, moneyField } from '../../billing/index.ts';

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
