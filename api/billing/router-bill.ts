// What a router has billed in a span of time, by its own records.
import type { Money } from './ledger/money.ts';

/** From `from` on, and before `to`. */
export interface BillWindow {
  readonly from: Date;
  readonly to: Date;
}

/** A call as the router's records have it. */
export interface BilledCall {
  /** The id that was sent along with it, of its hold; undefined where the record has none that is ours. */
  readonly hold: string | undefined;
  /** What the router knows it by. */
  readonly reference: string;
  /** When it began, by the router's clock. */
  readonly at: Date;
  readonly amount: Money;
  /** Whether the platform's key paid; undefined where the record does not say. */
  readonly isPlatform: boolean | undefined;
}

/**
 * `calls`: one by one; `totals`: only what they add up to, of the platform's key; `not known`: there is no bill, for the
 * reason given.
 */
export type RouterBill =
  | { readonly outcome: 'calls'; readonly calls: readonly BilledCall[] }
  | { readonly outcome: 'totals'; readonly calls: number; readonly amount: Money }
  | { readonly outcome: 'not known'; readonly why: string };

/** What is needed to ask for a bill besides the address. */
export interface BillRequest extends BillWindow {
  /** Hash (SHA-256, hexadecimal) of the platform's key, as routers name a key; undefined where there is no key. */
  readonly keyHash: string | undefined;
}
