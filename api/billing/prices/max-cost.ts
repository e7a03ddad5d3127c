// The maximum cost of a call, which is reserved before it is made.
import { priceOf, sumMoney, type Money } from '../ledger/money.ts';

/** Prices in USD per million tokens. */
export interface Prices {
  readonly in_per_m: Money;
  readonly out_per_m?: Money;
}

/** Tokens around the texts: roles, separators, what a router adds. */
const perMessage = 32;
const perCall = 64;
/** What an image may count for, wherever it is; larger ones are scaled down by every model. */
const perImage = 8_192;

/** What goes into a call. */
export interface Prompt {
  /** All text of it, or the JSON in which it is sent. */
  readonly texts: readonly string[];
  readonly images?: number;
}

/** No tokenizer makes more tokens of a text than it has bytes in UTF-8. */
export function maxPromptTokens({ texts, images = 0 }: Prompt): number {
  return (
    texts.reduce((total, text) => total + Buffer.byteLength(text, 'utf8') + perMessage, perCall) + images * perImage
  );
}

/** The maximum cost of a call at these prices. */
export function maxCallCost(prices: Prices, prompt: Prompt, maxTokens: number): Money {
  const out = prices.out_per_m === undefined ? [] : [priceOf(maxTokens, prices.out_per_m)];
  return sumMoney([priceOf(maxPromptTokens(prompt), prices.in_per_m), ...out]);
}
