// Work on the database as it was at one moment, so that what comes meanwhile is no difference.
import type { Database, Transaction } from '../../billing/index.ts';

/** A day of uses is read for longer than other statements may last. */
export function inSnapshot<T>(database: Database, work: (transaction: Transaction) => Promise<T>): Promise<T> {
  return database.transaction(
    async (transaction) => {
      await transaction.script('set transaction isolation level repeatable read; set local statement_timeout = 0');
      return work(transaction);
    },
    { lasting: true },
  );
}
