// Checks the lines of statements against the transactions that posted them: each says in its reference what the line says.
// For `npm run verify` and for the operator's `audit`. Nothing of it is a function of the database: whoever changed rows may
// have changed that as well, so what a line says is hashed here and not by revenue.digest, which posts it.
import { createHash } from 'node:crypto';
import type { Transaction } from '../../../billing/index.ts';
import { linesOfStatements, postingsWithoutLine } from './statements.ts';

/** Every line that says something else than its transaction, and every posting whose line is gone, in words. */
export async function lineFaults(transaction: Pick<Transaction, 'query'>): Promise<string[]> {
  const lines = await transaction.query(linesOfStatements, []);
  const missing = await transaction.query(postingsWithoutLine, []);
  return [
    ...lines.flatMap(({ id, key, fields, reference, amount, posted }) => {
      const digest = createHash('sha256').update(fields.join('\n')).digest('hex');
      if (reference !== `${key}:${digest}`)
        return [`line ${id} of a statement (${key}) was changed since it was posted`];
      return amount === posted
        ? []
        : [
            `line ${id} of a statement (${key}) is worth ${amount}, its transaction gives the author ${posted ?? 'nothing'}`,
          ];
    }),
    ...missing.map(
      ({ id, reference }) => `the line of transaction ${id} (${reference}) was deleted from its statement`,
    ),
  ];
}
