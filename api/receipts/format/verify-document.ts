// Checks a signed document against public keys and the sealed days, and names whatever does not fit.
import { z } from 'zod';
import { canonical } from './canonical.ts';
import { dayAfter } from './chain.ts';
import { checkpoint, dayDigest, ledgerDay, type LedgerDay, provenDocument, type ProvenLine } from './documents.ts';
import type { KeySet } from './keys.ts';
import { leafHash, postedTo, sumOf } from './leaf.ts';
import { rootFrom } from './merkle.ts';
import { readSigned, shapeFault, signatureFault } from './signature.ts';

/** What a document is held against. */
export interface Evidence {
  readonly keys: KeySet;
  /** Sealed days by day, whose signatures are checked already. */
  readonly days: ReadonlyMap<string, LedgerDay>;
}

export interface Verdict {
  /** What is wrong, one sentence each; none where all is right. */
  readonly findings: readonly string[];
  readonly lines: number;
  /** Lines whose transaction is in a sealed day. */
  readonly proven: number;
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
  return { findings, lines: 0, proven: 0 };
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

async function verifyLines(document: unknown, { keys, days }: Evidence): Promise<Verdict> {
  const read = await readSigned(provenDocument, document, keys);
  if (read.fault !== undefined) return refusal(read.fault);
  const { lines, type } = read.value;
  const seen = new Set<string>();
  const findings = lines.flatMap((line, index) => {
    const fault = repeated(line, seen) ?? lineFault(line, type) ?? proofFault(line, days);
    return fault === undefined ? [] : [`line ${index + 1}: ${fault}`];
  });
  return { findings, lines: lines.length, proven: lines.filter(({ proof }) => proof !== null).length };
}

function repeated({ leaf, account }: ProvenLine, seen: Set<string>): string | undefined {
  if (leaf === null) return undefined;
  const name = canonical([leaf.id, account]);
  if (seen.has(name)) return `transaction ${leaf.id} is in an earlier line already`;
  seen.add(name);
  return undefined;
}

/** Whether the line says of the transaction what the transaction says. */
function lineFault(line: ProvenLine, type: string): string | undefined {
  const { leaf, account, amount, proof } = line;
  if (leaf === null)
    return amount === null && proof === null ? undefined : 'it has an amount or a proof without a transaction';
  if (sumOf(leaf.entries.map((entry) => entry.amount)) !== '0') return `transaction ${leaf.id} does not sum to 0`;
  const posted = account === null ? undefined : postedTo(leaf, account);
  if (posted === undefined) return `transaction ${leaf.id} posts nothing to the account of this line`;
  if (posted !== amount) return `its amount is ${String(amount)}, transaction ${leaf.id} posts ${posted}`;
  return shownFault(line, type, posted);
}

/** Whether the amount that people read is that of the transaction. What an author gains is credited. */
function shownFault(line: ProvenLine, type: string, posted: string): string | undefined {
  if (type === 'charges' && line.cost_usd !== posted) return `its cost_usd is not the amount, ${posted}`;
  if (type === 'statement' && sumOf([String(line.amount_usd), posted]) !== '0')
    return `its amount_usd is not what transaction ${String(line.leaf?.id)} gives, ${posted}`;
  return undefined;
}

/** Whether the transaction is in the day that the proof names. */
function proofFault({ leaf, proof }: ProvenLine, days: Evidence['days']): string | undefined {
  if (leaf === null || proof === null) return undefined;
  const day = days.get(proof.day);
  if (day === undefined) return `the sealed day ${proof.day} is not known: give it with --days`;
  const path = proof.path.map((hash) => Buffer.from(hash, 'hex'));
  return rootFrom(leafHash(leaf), proof.position, day.count, path)?.toString('hex') === day.root
    ? undefined
    : `transaction ${leaf.id} is not in the sealed day ${proof.day} as this line has it`;
}
