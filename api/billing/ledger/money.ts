// Money: whole pico-dollars (10^-12 USD) in a BigInt, never a float.
import { z } from 'zod';

declare const unit: unique symbol;

/** An amount in pico-dollars, 10^-12 USD. May be negative (a ledger entry); what is parsed never is. */
export type Money = bigint & { readonly [unit]: 'pico-dollar' };

/** Raised for text that is not an amount of money; the message says what is wrong with it. */
export class MoneyError extends RangeError {
  override readonly name = 'MoneyError';
}

const decimals = 12;
const picoPerDollar = 10n ** 12n;
/** The column is numeric(20,12), so eight digits stand before the point. */
const largest = 10n ** 20n - 1n;
const shape = /^(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d{1,4}))?$/;

export const zero = 0n as Money;

/**
 * Brands a count of pico-dollars. @throws MoneyError beyond what the ledger can store (99,999,999.999999999999 USD).
 */
export function fromPicoDollars(count: bigint): Money {
  if (count > largest || count < -largest)
    throw new MoneyError(`${count.toString()} pico-dollars is more than the ledger can hold`);
  return count as Money;
}

/**
 * Reads an amount exactly: decimal (`0.25`) or exponent form (`1.35e-05`), in USD.
 * @throws MoneyError for a sign, NaN, any other text, or a digit below 10^-12 USD.
 */
export function parseMoney(text: string): Money {
  const { units, below } = parseScaled(text);
  if (below !== 'nothing')
    throw new MoneyError(`${quoteText(text)} has a digit below 10^-12 USD, the smallest amount the ledger holds`);
  return fromPicoDollars(units);
}

/**
 * Reads a cost as a router billed it. Routers that compute costs in binary floats print noise such as
 * `4.2000000000000004e-05`, so digits below 10^-12 USD are rounded half up; all others are kept exactly.
 * @throws MoneyError for a sign, NaN or any other text.
 */
export function parseBilled(text: string): Money {
  const { units, below } = parseScaled(text);
  return fromPicoDollars(below === 'half or more' ? units + 1n : units);
}

interface ScaledNumber {
  /** Whole pico-dollars. */
  readonly units: bigint;
  /** What was cut off below them. */
  readonly below: 'nothing' | 'less than half' | 'half or more';
}

function parseScaled(text: string): ScaledNumber {
  const match = shape.exec(text);
  if (match === null)
    throw new MoneyError(
      `${quoteText(text)} is not an amount of money: write it as 0.25 or 1.35e-05, without sign or unit`,
    );
  const [, whole = '', fraction = '', exponent = '0'] = match;
  const digits = whole + fraction;
  // Where the point stands in `digits` once it is counted in pico-dollars.
  const point = whole.length + Number(exponent) + decimals;
  if (/^0*$/.test(digits)) return { units: 0n, below: 'nothing' };
  if (point - countLeadingZeros(digits) > 20)
    throw new MoneyError(`${quoteText(text)} USD is more than the ledger can hold`);
  if (point < 0) return { units: 0n, below: 'less than half' };
  const units = BigInt(digits.slice(0, point).padEnd(point, '0') || '0');
  return { units, below: classifyRemainder(digits.slice(point)) };
}

function classifyRemainder(digits: string): ScaledNumber['below'] {
  if (/^0*$/.test(digits)) return 'nothing';
  return digits.charAt(0) >= '5' ? 'half or more' : 'less than half';
}

function countLeadingZeros(digits: string): number {
  return digits.length - digits.replace(/^0+/, '').length;
}

function quoteText(text: string): string {
  return JSON.stringify(text.length > 40 ? `${text.slice(0, 40)}…` : text);
}

/** Decimal text in USD without needless zeros: `0.0000135`, `2`, `-0.5`. Never in exponent form. */
export function formatMoney(amount: Money): string {
  const magnitude = amount < 0n ? negate(amount) : amount;
  const fraction = (magnitude % picoPerDollar).toString().padStart(decimals, '0').replace(/0+$/, '');
  const whole = (magnitude / picoPerDollar).toString();
  return `${amount < 0n ? '-' : ''}${whole}${fraction === '' ? '' : `.${fraction}`}`;
}

/** An amount for people: `$0.0000135`, `-$0.5`. Of an amount as decimal text, every digit stays. */
export function formatUsd(amount: Money | string): string {
  const text = typeof amount === 'string' ? amount : formatMoney(amount);
  return text.startsWith('-') ? `-$${text.slice(1)}` : `$${text}`;
}

/**
 * The JSON number of an amount, for the edge only. It is the double nearest to the exact value; below 1000 USD its JSON
 * text parses back to exactly the same amount, because a double keeps any 15 decimal digits.
 */
export function toDollarNumber(amount: Money): number {
  return Number(formatMoney(amount));
}

/** The opposite amount: the other side of an entry. */
export function negate(amount: Money): Money {
  return (0n - amount) as Money;
}

/** Adds amounts up. */
export function sumMoney(amounts: Iterable<Money>): Money {
  let total = 0n;
  for (const amount of amounts) total += amount;
  return fromPicoDollars(total);
}

/**
 * The price of some units (tokens) at so much a million, rounded up to a whole pico-dollar: for a reservation, never
 * for a bill.
 */
export function computePrice(units: number, perMillion: Money): Money {
  if (!Number.isSafeInteger(units) || units < 0) throw new MoneyError(`${units} is not a number of units`);
  return fromPicoDollars((BigInt(units) * perMillion + 999_999n) / 1_000_000n);
}

/** A share of an amount in parts per million, rounded down, so that shares never add up to more than the whole. */
export function computeShare(amount: Money, partsPerMillion: number): Money {
  if (!Number.isSafeInteger(partsPerMillion) || partsPerMillion < 0 || partsPerMillion > 1_000_000)
    throw new MoneyError(`${partsPerMillion} parts per million is not a share between 0 and 1000000`);
  if (amount < 0n) throw new MoneyError('a share is taken of an amount that is not negative');
  return fromPicoDollars((amount * BigInt(partsPerMillion)) / 1_000_000n);
}

/** A field of our own configuration: a decimal string in USD, exact; refused with what parseMoney says of it. */
export const moneyField = z.string().transform((text, context): Money => {
  try {
    return parseMoney(text);
  } catch (error) {
    if (!(error instanceof MoneyError)) throw error;
    context.addIssue({ code: 'custom', message: error.message });
    return z.NEVER;
  }
});

/** A column of the database: numeric as text, perhaps negative. */
export const money = z
  .string()
  .transform((text): Money => (text.startsWith('-') ? negate(parseMoney(text.slice(1))) : parseMoney(text)));
