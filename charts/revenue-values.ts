// The chart's values of what uses cost, what authors earn, and the key that signs both.
import { z } from 'zod';
import { name, allowEmpty, usd } from './value-kinds.ts';

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
      'Versions of the price list, the oldest first (docs/how-to/set-prices-and-pay-authors.md). GET /api/prices shows them. If empty, the prices of the beta.',
    ),
});

export const revenue = z.strictObject({
  disputeDays: z
    .int()
    .min(1)
    .max(180)
    .default(14)
    .describe('Days after the end of a month in which an author can dispute its statement; then it is final.'),
  promotionBudget: usd
    .default('0')
    .describe(
      'What all authors together may accrue for the uses of visitors in a day (UTC), USD, as decimal text. Visitors pay nothing, so you do. With 0, visits accrue nothing.',
    ),
});

export const receipts = z.strictObject({
  keySecret: allowEmpty(name)
    .default('')
    .describe(
      'Secret in the namespace of the release whose key `key` is an Ed25519 private key (PKCS#8, PEM). If empty, one is made and kept.',
    ),
  publicKeys: z
    .string()
    .default('')
    .describe(
      'Public keys (PEM, one below the other) of earlier keys, still published so that what they signed can be checked.',
    ),
});
