// A zod field for amounts in our own configuration.
import { z } from 'zod';
import { MoneyError, parseMoney, type Money } from './money.ts';

/** A decimal string in USD, exact; refused with what parseMoney says of it. */
export const moneyField = z.string().transform((text, context): Money => {
  try {
    return parseMoney(text);
  } catch (error) {
    if (!(error instanceof MoneyError)) throw error;
    context.addIssue({ code: 'custom', message: error.message });
    return z.NEVER;
  }
});
