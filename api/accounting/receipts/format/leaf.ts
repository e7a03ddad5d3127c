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

export function leafHash(value: Leaf): Buffer {
  return hashLeaf(canonical(value));
}

/** What a leaf posts to one account, as the exact sum of its entries there; undefined where it has none. */
export function postedTo(value: Leaf, on: LeafAccount): string | undefined {
  const name = canonical(on);
  const amounts = value.entries.filter((entry) => canonical(entry.account) === name).map(({ amount }) => amount);
  return amounts.length === 0 ? undefined : sumOf(amounts);
}

/** What a transaction charges a caller: what it posts to the account of a key, whatever else it posts. */
export function chargedIn({ entries }: Leaf): string {
  const amounts = entries.filter((entry) => entry.account.kind === 'key').map(({ amount }) => amount);
  return sumOf(amounts) ?? '0';
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
