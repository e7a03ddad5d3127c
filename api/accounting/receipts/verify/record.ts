// Verifies the whole record in a database: links, sealed days, checkpoint, and transactions that should be linked and are not.
import { z } from 'zod';
import type { Database, Transaction } from '../../../billing/index.ts';
import { checkpoint, type Checkpoint, computeDayDigest, ledgerDay, type LedgerDay } from '../format/documents.ts';
import { startChain, TreeBuilder } from '../format/hashes.ts';
import { type KeySet, readSigned } from '../format/signature.ts';
import { findChainFaults } from '../format/verify-document.ts';
import { computeFigures, type DayFigures, walkLinks } from './links.ts';
import * as statements from './verify-queries.ts';
import { chainAt, type DayRow, findLineFaults } from './verify-queries.ts';

export interface RecordOptions {
  readonly database: Pick<Database, 'transaction'>;
  readonly keys: KeySet;
  /** Documents that were kept elsewhere: days and checkpoints. The record has to have grown out of them. */
  readonly witnesses?: readonly unknown[];
  /** For tests: instead of the clock of the database. */
  readonly now?: Date;
  /** For tests: how many links are read at a time. */
  readonly page?: number;
}

export interface RecordVerdict {
  readonly findings: readonly string[];
  readonly links: number;
  readonly days: number;
  /** When the newest checkpoint was made. */
  readonly newest: string | undefined;
}

export async function verifyRecord({
  database,
  keys,
  witnesses = [],
  now,
  page,
}: RecordOptions): Promise<RecordVerdict> {
  return database.transaction(
    async (transaction) => {
      await transaction.script(statements.oneMoment);
      const findings: string[] = [];
      const report = (finding: string): void => void findings.push(finding);
      const figures = await walkLinks(transaction, report, page);
      const days = await checkDays(await transaction.query(statements.days, []), { figures, keys, report });
      const [kept] = await transaction.query(statements.checkpoint, []);
      const [due] = await transaction.query(statements.due, [now ?? null]);
      const newest = await checkCheckpoint(kept?.document, { figures, keys, report, days, due: due?.day ?? '' });
      for (const { what } of await transaction.query(statements.strays, [now ?? null])) report(what);
      findings.push(...(await findLineFaults(transaction)));
      for (const witness of witnesses)
        findings.push(...(await findWitnessFaults(transaction, witness, { keys, days })));
      const links = [...figures.values()].reduce((sum, { count }) => sum + count, 0);
      return { findings, links, days: days.length, newest };
    },
    { lasting: true },
  );
}

export interface CheckContext {
  /** What the links of each day come to. */
  readonly figures: ReadonlyMap<string, DayFigures>;
  readonly keys: KeySet;
  /** Takes what is wrong. */
  readonly report: (finding: string) => void;
}

/** @returns the sealed days that are readable and rightly signed, in order */
export async function checkDays(rows: readonly DayRow[], checking: CheckContext): Promise<LedgerDay[]> {
  const { figures, keys, report } = checking;
  const days: LedgerDay[] = [];
  for (const row of rows) {
    const reading = await readSigned(ledgerDay, row.document, keys);
    if (reading.fault !== undefined) {
      report(`${row.day}: the sealed day was changed: ${reading.fault}`);
      continue;
    }
    compareDay(row, reading.value, figures.get(row.day) ?? createEmptyFigures(row.day), report);
    days.push(reading.value);
  }
  for (const fault of findChainFaults(days)) report(fault);
  const [first] = days;
  if (first !== undefined && first.previous !== null) report(`${first.day}: the sealed days before it are missing`);
  return days;
}

/** What a day without links comes to. */
function createEmptyFigures(day: string): DayFigures {
  return computeFigures({ tree: new TreeBuilder(), next: 0, chain: startChain(day) });
}

function compareDay({ day, tiles }: DayRow, signed: LedgerDay, is: DayFigures, report: CheckContext['report']): void {
  if (signed.day !== day) report(`${day}: the sealed day here is that of ${signed.day}`);
  if (is.tiles !== tiles) report(`${day}: the tiles of the sealed day are not those of its links`);
  for (const field of ['count', 'head', 'root'] as const)
    if (is[field] !== signed[field])
      report(`${day}: ${field} of its links is ${is[field]}, it was sealed with ${signed[field]}`);
}

interface CheckpointChecking extends CheckContext {
  /** The sealed days of the database. */
  readonly days: readonly LedgerDay[];
  /** The last day that has to be sealed by now. */
  readonly due: string;
}

/** @returns when the checkpoint was made */
export async function checkCheckpoint(document: unknown, checking: CheckpointChecking): Promise<string | undefined> {
  const { keys, report, days, due } = checking;
  if (document === undefined) {
    report('there is no checkpoint: nothing was ever signed here, or it was deleted');
    return undefined;
  }
  const reading = await readSigned(checkpoint, document, keys);
  if (reading.fault !== undefined) {
    report(`the checkpoint was changed: ${reading.fault}`);
    return undefined;
  }
  checkSealed(reading.value, days.at(-1), report);
  const open = checkOpen(reading.value, days.at(-1), checking);
  const last = days.at(-1)?.day ?? open;
  if (last !== undefined && last < due)
    report(`days up to ${due} have ended and are not sealed: they were deleted, or no API with the key has run since`);
  return reading.value.made_at;
}

function checkSealed(
  { sealed, made_at: at }: Checkpoint,
  newest: LedgerDay | undefined,
  report: CheckContext['report'],
): void {
  const is = newest === undefined ? 'no day' : `${newest.day} (${computeDayDigest(newest)})`;
  const was = sealed === null ? 'no day' : `${sealed.day} (${sealed.digest})`;
  if (is !== was) report(`the newest sealed day is ${is}, at ${at} it was ${was}`);
}

/** @returns the first day that is open */
function checkOpen(
  signed: Checkpoint,
  newest: LedgerDay | undefined,
  { figures, report }: CheckContext,
): string | undefined {
  const was = new Map(signed.open.map((one) => [one.day, describeChain(one)]));
  const is = new Map(
    [...figures]
      .filter(([day]) => newest === undefined || day > newest.day)
      .map(([day, one]) => [day, describeChain(one)]),
  );
  const days = [...new Set([...was.keys(), ...is.keys()])].sort();
  for (const day of days) {
    const [now = 'no links', then = 'no links'] = [is.get(day), was.get(day)];
    if (now !== then) report(`${day}: it has ${now}, at ${signed.made_at} it had ${then}`);
  }
  return days[0];
}

function describeChain({ count, head }: { count: number; head: string }): string {
  return `${count} links that end in ${head}`;
}

interface CurrentRecord {
  readonly keys: KeySet;
  /** The sealed days of the database. */
  readonly days: readonly LedgerDay[];
}

const dayList = z.object({ type: z.literal('ledger-days'), days: z.array(ledgerDay) });

/** A document of another kind is no witness, and has no faults. */
export async function findWitnessFaults(
  transaction: Transaction,
  document: unknown,
  present: CurrentRecord,
): Promise<string[]> {
  const listed = dayList.safeParse(document).data?.days;
  if (listed !== undefined) return (await Promise.all(listed.map((day) => findDayFaults(day, present)))).flat();
  if (ledgerDay.safeParse(document).success) return findDayFaults(document, present);
  return checkpoint.safeParse(document).success ? findCheckpointFaults(transaction, document, present) : [];
}

async function findDayFaults(document: unknown, present: CurrentRecord): Promise<string[]> {
  const reading = await readSigned(ledgerDay, document, present.keys);
  return reading.fault === undefined
    ? findDigestFaults({ day: reading.value.day, digest: computeDayDigest(reading.value) }, present)
    : [`the day that was kept: ${reading.fault}`];
}

async function findCheckpointFaults(
  transaction: Transaction,
  document: unknown,
  present: CurrentRecord,
): Promise<string[]> {
  const reading = await readSigned(checkpoint, document, present.keys);
  if (reading.fault !== undefined) return [`the checkpoint that was kept: ${reading.fault}`];
  const { sealed, open, made_at: madeAt } = reading.value;
  const faults = sealed === null ? [] : findDigestFaults(sealed, present);
  for (const { day, count, head } of open) {
    const [link] = await transaction.query(chainAt, [day, count - 1]);
    if (link?.chain !== head)
      faults.push(`${day}: its first ${count} links are not those that were signed at ${madeAt}`);
  }
  return faults;
}

function findDigestFaults({ day, digest }: { day: string; digest: string }, { days }: CurrentRecord): string[] {
  const ours = days.find((one) => one.day === day);
  return ours !== undefined && computeDayDigest(ours) === digest
    ? []
    : [`${day}: the sealed day is ${ours === undefined ? 'missing' : 'not the one that was signed then'}`];
}
