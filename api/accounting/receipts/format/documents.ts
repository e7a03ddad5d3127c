// The documents that are signed: a day of the ledger, its newest checkpoint, and whatever has lines with proofs.
import { z } from 'zod';
import { digestOf } from './canonical.ts';
import { account, leaf } from './leaf.ts';
import { signature } from './signature.ts';

const dayMessage = 'must be a UTC day like 2026-11-23';
/** No year 0, which PostgreSQL does not know. */
export const dayText = z.iso.date(dayMessage).refine((day) => day >= '0001', dayMessage);
export const hash = z.string().regex(/^[0-9a-f]{64}$/, 'must be a SHA-256 in hex');
const size = z.int().nonnegative();
const issuer = z.string().describe('Address of the installation that signed it.');
const time = z.string().describe('When it was signed, by the clock of the database (UTC).');

/** A UTC day that is closed: nothing is added to it any more. */
export const ledgerDay = z.strictObject({
  type: z.literal('ledger-day'),
  issuer,
  day: dayText,
  sealed_at: time,
  count: size.describe('Transactions of the day.'),
  head: hash.describe('Last hash of the chain of the day.'),
  root: hash.describe('Merkle root (RFC 6962) of the transactions of the day, in their order.'),
  previous: hash.nullable().describe('Digest of the day before; null for the first one.'),
  signature,
});
export type LedgerDay = z.output<typeof ledgerDay>;

/** Where a day that is not sealed yet has got to. */
const openDay = z.strictObject({ day: dayText, count: size, head: hash });
export type OpenDay = z.output<typeof openDay>;

export const checkpoint = z.strictObject({
  type: z.literal('ledger-checkpoint'),
  issuer,
  made_at: time,
  sealed: z.strictObject({ day: dayText, digest: hash }).nullable().describe('The newest sealed day.'),
  open: z.array(openDay).describe('Days that are not sealed yet.'),
  signature,
});
export type Checkpoint = z.output<typeof checkpoint>;

/** Where a transaction is in the tree of its sealed day. */
export const proof = z.strictObject({
  day: dayText.describe('The sealed day that it is in.'),
  position: size.describe('Its position in the day, from 0.'),
  path: z.array(hash).describe('Hashes that lead from it to the root of the day, the lowest first.'),
});
export type Proof = z.output<typeof proof>;

/** What can be checked of a line; the line may say more. Without a transaction yet, all of these are null. */
export const provenLine = z.looseObject({
  account: account.nullable().describe('The account that `amount` was posted to.'),
  amount: z
    .string()
    .nullable()
    .describe('What the transaction posts to the account, in USD: positive where it is debited, else negative.'),
  leaf: leaf.nullable().describe('The transaction in the ledger; null while there is none, or it is not linked yet.'),
  proof: proof.nullable().describe('That it is in a sealed day; null until then.'),
});
export type ProvenLine = z.output<typeof provenLine>;

/** Any signed document with lines: charges, statements. */
export const provenDocument = z.looseObject({ type: z.string(), issuer, lines: z.array(provenLine), signature });
export type ProvenDocument = z.output<typeof provenDocument>;

/** The digest by which a day is named in the next one: of its content, whoever signed it. */
export function dayDigest(day: LedgerDay): string {
  return digestOf({ ...day, signature: undefined });
}
