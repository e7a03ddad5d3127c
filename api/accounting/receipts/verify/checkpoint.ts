// Holds what is not sealed yet against the newest checkpoint: nothing may be open that it does not know or that is overdue.
import { checkpoint, type Checkpoint, dayDigest, type LedgerDay } from '../format/documents.ts';
import { readSigned } from '../format/signature.ts';
import type { Checking } from './days.ts';

interface CheckpointChecking extends Checking {
  /** The sealed days of the database. */
  readonly days: readonly LedgerDay[];
  /** The last day that has to be sealed by now. */
  readonly due: string;
}

/** @returns when the checkpoint was made */
export async function checkCheckpoint(document: unknown, checking: CheckpointChecking): Promise<string | undefined> {
  const { keys, found, days, due } = checking;
  if (document === undefined) {
    found('there is no checkpoint: nothing was ever signed here, or it was deleted');
    return undefined;
  }
  const read = await readSigned(checkpoint, document, keys);
  if (read.fault !== undefined) {
    found(`the checkpoint was changed: ${read.fault}`);
    return undefined;
  }
  checkSealed(read.value, days.at(-1), found);
  const open = checkOpen(read.value, days.at(-1), checking);
  const last = days.at(-1)?.day ?? open;
  if (last !== undefined && last < due)
    found(`days up to ${due} have ended and are not sealed: they were deleted, or no API with the key has run since`);
  return read.value.made_at;
}

function checkSealed(
  { sealed, made_at: at }: Checkpoint,
  newest: LedgerDay | undefined,
  found: Checking['found'],
): void {
  const is = newest === undefined ? 'no day' : `${newest.day} (${dayDigest(newest)})`;
  const was = sealed === null ? 'no day' : `${sealed.day} (${sealed.digest})`;
  if (is !== was) found(`the newest sealed day is ${is}, at ${at} it was ${was}`);
}

/** @returns the first day that is open */
function checkOpen(
  signed: Checkpoint,
  newest: LedgerDay | undefined,
  { figures, found }: Checking,
): string | undefined {
  const was = new Map(signed.open.map((one) => [one.day, name(one)]));
  const is = new Map(
    [...figures].filter(([day]) => newest === undefined || day > newest.day).map(([day, one]) => [day, name(one)]),
  );
  const days = [...new Set([...was.keys(), ...is.keys()])].sort();
  for (const day of days) {
    const [now = 'no links', then = 'no links'] = [is.get(day), was.get(day)];
    if (now !== then) found(`${day}: it has ${now}, at ${signed.made_at} it had ${then}`);
  }
  return days[0];
}

function name({ count, head }: { count: number; head: string }): string {
  return `${count} links that end in ${head}`;
}
