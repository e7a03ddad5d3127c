// Checks the whole record in a database: links, sealed days, checkpoint, and what should be linked and is not.
import type { Database } from '../../../billing/index.ts';
import type { KeySet } from '../format/keys.ts';
import { checkCheckpoint } from './checkpoint.ts';
import { checkDays } from './days.ts';
import { walkLinks } from './links.ts';
import { lineFaults } from './statement-lines.ts';
import * as statements from './statements.ts';
import { witnessFaults } from './witness.ts';

export interface RecordOptions {
  readonly database: Pick<Database, 'transaction'>;
  readonly keys: KeySet;
  /** Documents that were kept elsewhere: days and checkpoints. The record has to have grown out of them. */
  readonly witnesses?: readonly unknown[];
  /** For tests: instead of the clock of the database. */
  readonly now?: Date;
}

export interface RecordVerdict {
  readonly findings: readonly string[];
  readonly links: number;
  readonly days: number;
  /** When the newest checkpoint was made. */
  readonly newest: string | undefined;
}

export async function verifyRecord({ database, keys, witnesses = [], now }: RecordOptions): Promise<RecordVerdict> {
  return database.transaction(
    async (transaction) => {
      await transaction.script(statements.oneMoment);
      const findings: string[] = [];
      const found = (finding: string): void => void findings.push(finding);
      const figures = await walkLinks(transaction, found);
      const days = await checkDays(await transaction.query(statements.days, []), { figures, keys, found });
      const [kept] = await transaction.query(statements.checkpoint, []);
      const [due] = await transaction.query(statements.due, [now ?? null]);
      const newest = await checkCheckpoint(kept?.document, { figures, keys, found, days, due: due?.day ?? '' });
      for (const { what } of await transaction.query(statements.strays, [now ?? null])) found(what);
      findings.push(...(await lineFaults(transaction)));
      for (const witness of witnesses) findings.push(...(await witnessFaults(transaction, witness, { keys, days })));
      const links = [...figures.values()].reduce((sum, { count }) => sum + count, 0);
      return { findings, links, days: days.length, newest };
    },
    { lasting: true },
  );
}
