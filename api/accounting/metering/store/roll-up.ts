// Brings the sums of uses by hour and day up to date.
import type { Transaction } from '../../../billing/index.ts';
import { rollUp } from './statements.ts';

/** Within a transaction of the caller, which may take longer than a statement may otherwise. */
export async function rollUpUses(transaction: Transaction): Promise<void> {
  await transaction.query(rollUp, []);
}
