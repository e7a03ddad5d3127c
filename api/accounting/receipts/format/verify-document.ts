// Checks a signed document against public keys and the sealed days, and names whatever does not fit.
import { z } from 'zod';
import { dayAfter } from './chain.ts';
import { checkpoint, dayDigest, ledgerDay, type LedgerDay, provenDocument } from './documents.ts';
import type { KeySet } from './keys.ts';
import { readSigned, shapeFault, signatureFault } from './signature.ts';
import { checkLines } from './verify-lines.ts';

/** What a document is held against. */
export interface Evidence {
  readonly keys: KeySet;
  /** Sealed days by day, whose signatures are checked already. */
  readonly days: ReadonlyMap<string, LedgerDay>;
  /** The last day that must be sealed by now; without it, only the known days count as sealed. */
  readonly due?: string;
}

export interface Verdict {
  /** What is wrong, one sentence each; none where all is right. */
  readonly findings: readonly string[];
  readonly lines: number;
  /** Lines whose transaction is in a sealed day. */
  readonly proven: number;
  /** Lines of the earlier form of charges: only call, caller, day and amounts are in the leaf. */
  readonly unbound: number;
}

const typed = z.looseObject({ type: z.string() });

/** Of any document that an installation signs; of a list of days, too. */
export async function verifyDocument(document: unknown, evidence: Evidence): Promise<Verdict> {
  switch (typed.safeParse(document).data?.type) {
    case undefined:
      return refusal('it has no type, so it is no document of an installation');
    case 'ledger-days':
      return verifyDays(document, evidence.keys);
    case 'ledger-day':
      return refusal(...faultsOf(await readSigned(ledgerDay, document, evidence.keys)));
    case 'ledger-checkpoint':
      return verifyCheckpoint(document, evidence);
    default:
      return verifyLines(document, evidence);
  }
}

function refusal(...findings: string[]): Verdict {
  return { findings, lines: 0, proven: 0, unbound: 0 };
}

function faultsOf({ fault }: { fault?: string }): string[] {
  return fault === undefined ? [] : [fault];
}

/** Each day is signed, and names the one before it. */
async function verifyDays(document: unknown, keys: KeySet): Promise<Verdict> {
  const read = z.looseObject({ days: z.array(ledgerDay) }).safeParse(document);
  if (!read.success) return refusal(shapeFault(read.error));
  const findings: string[] = [];
  for (const day of read.data.days) {
    const fault = await signatureFault(day, keys);
    if (fault !== undefined) findings.push(`${day.day}: ${fault}`);
  }
  return refusal(...findings, ...chainFaults(read.data.days));
}

/** What is wrong with the order of some days; they may begin anywhere, and the newest may come first. */
export function chainFaults(days: readonly LedgerDay[]): string[] {
  const sorted = [...days].sort((a, b) => (a.day < b.day ? -1 : 1));
  return sorted.slice(1).flatMap((day, index) => {
    const before = sorted[index];
    if (before === undefined) return [];
    if (day.day !== dayAfter(before.day)) return [`${dayAfter(before.day)}: the day is missing`];
    return day.previous === dayDigest(before) ? [] : [`${day.day}: it follows another ${before.day} than this one`];
  });
}

async function verifyCheckpoint(document: unknown, { keys, days }: Evidence): Promise<Verdict> {
  const read = await readSigned(checkpoint, document, keys);
  if (read.fault !== undefined) return refusal(read.fault);
  const { sealed } = read.value;
  const known = sealed === null ? undefined : days.get(sealed.day);
  return known !== undefined && dayDigest(known) !== sealed?.digest
    ? refusal(`it was made after another ${known.day} than the one that is published`)
    : refusal();
}

async function verifyLines(document: unknown, evidence: Evidence): Promise<Verdict> {
  const read = await readSigned(provenDocument, document, evidence.keys);
  return read.fault === undefined ? checkLines(read.value, evidence) : refusal(read.fault);
}
