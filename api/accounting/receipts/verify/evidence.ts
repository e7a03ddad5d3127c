// Where the keys and the sealed days come from: files that were kept, or the address of the issuer.
import { readFileSync } from 'node:fs';
import { lookup } from 'node:dns';
import { Agent, fetch } from 'undici';
import { z } from 'zod';
import { parseJson } from '../format/hashes.ts';
import { ledgerDay, type LedgerDay } from '../format/documents.ts';
import { type KeySet, keySet, readSigned } from '../format/signature.ts';
import { type Evidence, verifyDocument } from '../format/verify-document.ts';

/** What keeps documents from being checked at all. */
export class EvidenceError extends Error {
  override readonly name = 'EvidenceError';
}

/** @throws EvidenceError where the file is not JSON, or has a member twice */
export function readJson(file: string): unknown {
  try {
    return parseJson(new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(file)));
  } catch (error) {
    throw new EvidenceError(`${file} cannot be read: ${describeError(error)}`);
  }
}

/** From the file, else from the issuer. @throws EvidenceError */
export async function readKeys(file: string | undefined, issuer: string): Promise<KeySet> {
  const from = file ?? `${issuer}/.well-known/jwks.json`;
  const parsed = keySet.safeParse(file === undefined ? await fetchJson(from) : readJson(file));
  if (parsed.success) return parsed.data;
  throw new EvidenceError(`${from} is no set of Ed25519 keys`);
}

const documentDays = z.object({
  lines: z.array(z.object({ proof: z.object({ day: z.string() }).nullable().catch(null) })),
});

/** The sealed days that a document names, and the newest; those of the file are all checked. @throws EvidenceError */
export async function readDays(
  document: unknown,
  { file, issuer, keys }: { file: string | undefined; issuer: string; keys: KeySet },
): Promise<Evidence['days']> {
  if (file !== undefined) return readDaysFile(file, keys);
  const lines = documentDays.safeParse(document).data?.lines ?? [];
  const proofDays = [...new Set(lines.flatMap(({ proof }) => (proof === null ? [] : [proof.day])))];
  const address = `${issuer}/api/ledger/days`;
  const [newest, ...days] = await Promise.all([
    fetchNewestDay(`${address}?limit=1`, keys),
    ...proofDays.map((day) => fetchDay(`${address}/${encodeURIComponent(day)}`, keys)),
  ]);
  return new Map([...newest, ...days].map((day) => [day.day, day]));
}

/** The last day that must be sealed by now: days are sealed some minutes after they end. */
export function computeLastDueDay(now = Date.now()): string {
  const [hour, day] = [3_600_000, 86_400_000];
  return new Date(now - hour - day).toISOString().slice(0, 10);
}

async function readDaysFile(file: string, keys: KeySet): Promise<Evidence['days']> {
  const document = readJson(file);
  const { findings } = await verifyDocument(document, { keys, days: new Map() });
  const [first] = findings;
  if (first !== undefined) throw new EvidenceError(`${file} is not to be trusted: ${first}`);
  const days = z.object({ days: z.array(ledgerDay) }).safeParse(document).data?.days ?? [ledgerDay.parse(document)];
  return new Map(days.map((day) => [day.day, day]));
}

/** None while no day is sealed. */
async function fetchNewestDay(address: string, keys: KeySet): Promise<LedgerDay[]> {
  const document = await fetchJson(address);
  const { findings } = await verifyDocument(document, { keys, days: new Map() });
  const [first] = findings;
  if (first !== undefined) throw new EvidenceError(`${address}: ${first}`);
  return z.object({ days: z.array(ledgerDay) }).parse(document).days;
}

async function fetchDay(address: string, keys: KeySet): Promise<LedgerDay> {
  const reading = await readSigned(ledgerDay, await fetchJson(address), keys);
  if (reading.fault !== undefined) throw new EvidenceError(`${address}: ${reading.fault}`);
  return reading.value;
}

/** Names below .localhost are this machine (RFC 6761), whatever its resolver says. */
const dispatcher = new Agent({
  connect: {
    lookup: (name, options, done) => {
      lookup(/(^|\.)localhost$/.test(name) ? '127.0.0.1' : name, options, done);
    },
  },
});

async function fetchJson(address: string): Promise<unknown> {
  try {
    const response = await fetch(address, { headers: { accept: 'application/json' }, dispatcher });
    if (!response.ok) throw new Error(`status ${response.status}`);
    return parseJson(await response.text());
  } catch (error) {
    throw new EvidenceError(`${address} cannot be read: ${describeError(error)}`);
  }
}

function describeError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? `${error.message} (${error.cause.message})` : error.message;
}
