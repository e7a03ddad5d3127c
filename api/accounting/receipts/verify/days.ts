// Holds each sealed day against its links: what was signed has to be what they come to.
import { chainStart } from '../format/chain.ts';
import { ledgerDay, type LedgerDay } from '../format/documents.ts';
import type { KeySet } from '../format/keys.ts';
import { TreeBuilder } from '../format/merkle.ts';
import { readSigned } from '../format/signature.ts';
import { chainFaults } from '../format/verify-document.ts';
import { type DayFigures, figuresOf } from './links.ts';
import type { DayRow } from './statements.ts';

export interface Checking {
  /** What the links of each day come to. */
  readonly figures: ReadonlyMap<string, DayFigures>;
  readonly keys: KeySet;
  /** Takes what is wrong. */
  readonly found: (finding: string) => void;
}

/** @returns the sealed days that are readable and rightly signed, in order */
export async function checkDays(rows: readonly DayRow[], checking: Checking): Promise<LedgerDay[]> {
  const { figures, keys, found } = checking;
  const days: LedgerDay[] = [];
  for (const row of rows) {
    const read = await readSigned(ledgerDay, row.document, keys);
    if (read.fault !== undefined) {
      found(`${row.day}: the sealed day was changed: ${read.fault}`);
      continue;
    }
    compare(row, read.value, figures.get(row.day) ?? nothingOn(row.day), found);
    days.push(read.value);
  }
  for (const fault of chainFaults(days)) found(fault);
  const [first] = days;
  if (first !== undefined && first.previous !== null) found(`${first.day}: the sealed days before it are missing`);
  return days;
}

/** What a day without links comes to. */
function nothingOn(day: string): DayFigures {
  return figuresOf({ tree: new TreeBuilder(), next: 0, chain: chainStart(day) });
}

function compare({ day, tiles }: DayRow, signed: LedgerDay, is: DayFigures, found: Checking['found']): void {
  if (signed.day !== day) found(`${day}: the sealed day here is that of ${signed.day}`);
  if (is.tiles !== tiles) found(`${day}: the tiles of the sealed day are not those of its links`);
  for (const field of ['count', 'head', 'root'] as const)
    if (is[field] !== signed[field])
      found(`${day}: ${field} of its links is ${is[field]}, it was sealed with ${signed[field]}`);
}
