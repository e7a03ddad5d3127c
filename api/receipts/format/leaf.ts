// A leaf: one transaction of the ledger, whole, as it is hashed into the record of its day.
import { z } from 'zod';
import { canonical } from './canonical.ts';
import { hashLeaf } from './merkle.ts';

/** An account by name; day is null where it lasts. */
export const account = z.strictObject({
  kind: z.string().describe('What the account is for, such as caller, key, app, tool, platform, revenue or author.'),
  owner: z.string().describe('Whose it is: a salted hash of a caller, or the name of an app, tool, author or router.'),
  day: z.string().nullable().describe('UTC day of a daily account; null for one that lasts.'),
});
export type LeafAccount = z.output<typeof account>;

/** Amounts are decimal text in USD: debits positive, credits negative; together they are 0. */
export const leaf = z.strictObject({
  id: z.string().describe('Number of the transaction in the ledger.'),
  reference: z.string().describe('What it is of: settle:<hold>, for example.'),
  kind: z.string(),
  at: z.string().describe('When it was posted, UTC, to the microsecond.'),
  entries: z.array(z.strictObject({ line: z.int(), account, amount: z.string() })),
});
export type Leaf = z.output<typeof leaf>;

export function leafHash(value: Leaf): Buffer {
  return hashLeaf(canonical(value));
}

/** What a leaf posts to one account, as the exact sum of its entries there; undefined where it has none. */
export function postedTo(value: Leaf, on: LeafAccount): string | undefined {
  const name = canonical(on);
  const amounts = value.entries.filter((entry) => canonical(entry.account) === name).map(({ amount }) => amount);
  return amounts.length === 0 ? undefined : sumOf(amounts);
}

const decimal = /^-?\d+(\.\d{1,12})?$/;
const places = 12;

/** Exact sum of decimal texts with at most 12 decimals, without needless zeros; undefined where one is none. */
export function sumOf(amounts: readonly string[]): string | undefined {
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
