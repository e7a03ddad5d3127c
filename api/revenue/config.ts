// Configuration of statements, read from the environment.
import { z } from 'zod';
import { count, readConfig } from '../../lib/config.ts';

export interface RevenueSettings {
  /** Days after the end of a month in which its statement can be disputed. */
  readonly disputeDays: number;
}

/** Every variable of statements. */
export const environment = z.object({
  MOORAGE_DISPUTE_DAYS: count
    .max(180)
    .default(14)
    .describe('Days after the end of a month in which its author can dispute a statement; then it is final.'),
});

/** Reads the settings. @throws Error that names every variable that is wrong. */
export function readRevenueSettings(variables: NodeJS.ProcessEnv = process.env): RevenueSettings {
  return { disputeDays: readConfig(environment, variables).MOORAGE_DISPUTE_DAYS };
}
