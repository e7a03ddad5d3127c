// The chart's values of what uses cost and what authors earn.
import { z } from 'zod';

export const prices = z.strictObject({
  noticeDays: z
    .int()
    .min(0)
    .max(365)
    .default(14)
    .describe('Days for which a version of the price list must be announced before it comes into effect.'),
  versions: z
    .array(z.record(z.string(), z.unknown()))
    .max(200)
    .default([])
    .describe(
      'Versions of the price list, the oldest first; see "Prices" in the guide for operators. GET /api/prices shows them. If empty, the prices of the beta.',
    ),
});

export const revenue = z.strictObject({
  disputeDays: z
    .int()
    .min(1)
    .max(180)
    .default(14)
    .describe('Days after the end of a month in which an author can dispute its statement; then it is final.'),
});
