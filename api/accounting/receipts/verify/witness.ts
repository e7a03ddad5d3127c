// Holds a database against a day or a checkpoint that somebody kept: what was signed then has to be in it still.
import { z } from 'zod';
import type { Transaction } from '../../../billing/index.ts';
import { checkpoint, dayDigest, ledgerDay, type LedgerDay } from '../format/documents.ts';
import type { KeySet } from '../format/keys.ts';
import { readSigned } from '../format/signature.ts';
import { chainAt } from './statements.ts';

interface Present {
  readonly keys: KeySet;
  /** The sealed days of the database. */
  readonly days: readonly LedgerDay[];
}

const list = z.object({ type: z.literal('ledger-days'), days: z.array(ledgerDay) });

/** A document of another kind is no witness, and has no faults. */
export async function witnessFaults(transaction: Transaction, document: unknown, present: Present): Promise<string[]> {
  const listed = list.safeParse(document).data?.days;
  if (listed !== undefined) return (await Promise.all(listed.map((day) => dayFaults(day, present)))).flat();
  if (ledgerDay.safeParse(document).success) return dayFaults(document, present);
  return checkpoint.safeParse(document).success ? checkpointFaults(transaction, document, present) : [];
}

async function dayFaults(document: unknown, present: Present): Promise<string[]> {
  const read = await readSigned(ledgerDay, document, present.keys);
  return read.fault === undefined
    ? digestFaults({ day: read.value.day, digest: dayDigest(read.value) }, present)
    : [`the day that was kept: ${read.fault}`];
}

async function checkpointFaults(transaction: Transaction, document: unknown, present: Present): Promise<string[]> {
  const read = await readSigned(checkpoint, document, present.keys);
  if (read.fault !== undefined) return [`the checkpoint that was kept: ${read.fault}`];
  const { sealed, open, made_at: madeAt } = read.value;
  const faults = sealed === null ? [] : digestFaults(sealed, present);
  for (const { day, count, head } of open) {
    const [link] = await transaction.query(chainAt, [day, count - 1]);
    if (link?.chain !== head)
      faults.push(`${day}: its first ${count} links are not those that were signed at ${madeAt}`);
  }
  return faults;
}

function digestFaults({ day, digest }: { day: string; digest: string }, { days }: Present): string[] {
  const ours = days.find((one) => one.day === day);
  return ours !== undefined && dayDigest(ours) === digest
    ? []
    : [`${day}: the sealed day is ${ours === undefined ? 'missing' : 'not the one that was signed then'}`];
}
