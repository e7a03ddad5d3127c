// Defines the signed documents (a sealed day, a checkpoint, documents with proven lines) and the leaf of a transaction.
import { z } from 'zod';
import { computeDigest, hashLeafText, toCanonicalJson } from './hashes.ts';
import { signature } from './signature.ts';

/** An account by name; day is null where it lasts. */
export const account = z.strictObject({
  kind: z.string().describe('What the account is for, such as caller, key, app, tool, platform, revenue or author.'),
  owner: z.string().describe('Whose it is: a salted hash of a caller, or the name of an app, tool, author or router.'),
  day: z.string().nullable().describe('UTC day of a daily account; null for one that lasts.'),
});
export type LeafAccount = z.output<typeof account>;

/** The call that a settlement is of, so that a charge says nothing which is not hashed. */
const leafCall = z.strictObject({
  hold: z.string().describe('Id of the call in the ledger.'),
  caller: z.string().nullable().describe('Salted hash of the key or the network address of the caller.'),
  at: z.string().describe('When the call began, UTC, to the microsecond.'),
  kind: z.string().describe('ask, compare, v1, tool or app.'),
  tool: z.string().nullable(),
  app: z.string().nullable(),
  model: z.string().nullable(),
  cost_source: z.string().describe('Where the cost comes from.'),
});
export type LeafCall = z.output<typeof leafCall>;

/** Amounts are decimal text in USD: debits positive, credits negative; together they are 0. */
export const leaf = z.strictObject({
  id: z.string().describe('Number of the transaction in the ledger.'),
  reference: z.string().describe('What it is of: settle:<hold>, for example.'),
  kind: z.string(),
  at: z.string().describe('When it was posted, UTC, to the microsecond.'),
  entries: z.array(z.strictObject({ line: z.int(), account, amount: z.string() })),
  call: leafCall
    .optional()
    .describe('The call that was settled; absent from other transactions, and from those linked before charges-2.'),
});
export type Leaf = z.output<typeof leaf>;

export function hashLeaf(value: Leaf): Buffer {
  return hashLeafText(toCanonicalJson(value));
}

/** What a leaf posts to one account, as the exact sum of its entries there; undefined where it has none. */
export function sumPostedTo(value: Leaf, on: LeafAccount): string | undefined {
  const name = toCanonicalJson(on);
  const amounts = value.entries.filter((entry) => toCanonicalJson(entry.account) === name).map(({ amount }) => amount);
  return amounts.length === 0 ? undefined : sumAmounts(amounts);
}

/** What a transaction charges a caller: what it posts to the account of a key, whatever else it posts. */
export function sumCharged({ entries }: Leaf): string {
  const amounts = entries.filter((entry) => entry.account.kind === 'key').map(({ amount }) => amount);
  return sumAmounts(amounts) ?? '0';
}

const decimal = /^-?\d+(\.\d{1,12})?$/;
const places = 12;

/** Exact sum of decimal texts with at most 12 decimals, without needless zeros; undefined where one is none. */
export function sumAmounts(amounts: readonly string[]): string | undefined {
  if (!amounts.every((amount) => decimal.test(amount))) return undefined;
  const total = amounts
    .map((amount) => {
      const [whole = '', fraction = ''] = amount.split('.');
      return BigInt(whole + fraction.padEnd(places, '0'));
    })
    .reduce((a, b) => a + b, 0n);
  const digits = (total < 0n ? -total : total).toString().padStart(places + 1, '0');
  const fraction = digits.slice(-places).replace(/0+$/, '');
  return `${total < 0n ? '-' : ''}${digits.slice(0, -places)}${fraction === '' ? '' : `.${fraction}`}`;
}

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

/** The digest that names a day in the next one. It covers the content, not the signature. */
export function computeDayDigest(day: LedgerDay): string {
  return computeDigest({ ...day, signature: undefined });
}
