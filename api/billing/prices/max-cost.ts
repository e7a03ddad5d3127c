// The maximum cost of a call, which is reserved before it is made.
import { priceOf, sumMoney, type Money } from '../ledger/money.ts';

/** Prices in USD per million tokens. */
export interface Prices {
  readonly in_per_m: Money;
  readonly out_per_m?: Money;
  /** What an image may count for with this model, in tokens; default: what it may with any. */
  readonly image_tokens?: number | undefined;
}

/** Tokens around the texts: roles, separators, what a router adds. */
const perMessage = 32;
const perCall = 64;
/** What a provider may put before a schema or a list of tools, to make the model follow it. */
const perSchema = 1_024;
/**
 * What an image may count for with any model that is known: one small model bills 48 169 tokens for the largest, after it is
 * scaled down. models.yaml can give a lower limit for each model (`image_tokens`).
 */
export const maxImageTokens = 49_152;

/** What goes into a call. */
export interface Prompt {
  /** All text of it, or the JSON in which it is sent. */
  readonly texts: readonly string[];
  readonly images?: number;
  /** Schemas and lists of tools, whose JSON is in `texts`. */
  readonly schemas?: number;
  /** Tokens that were sent as such. */
  readonly tokens?: number;
}

/** No tokenizer makes more tokens of a text than it has bytes in UTF-8. */
export function maxPromptTokens(
  { texts, images = 0, schemas = 0, tokens = 0 }: Prompt,
  perImage: number = maxImageTokens,
): number {
  const inTexts = texts.reduce((total, text) => total + Buffer.byteLength(text, 'utf8') + perMessage, perCall);
  return inTexts + images * perImage + schemas * perSchema + tokens;
}

/** The maximum cost of a call at these prices. */
export function maxCallCost(prices: Prices, prompt: Prompt, maxTokens: number): Money {
  const out = prices.out_per_m === undefined ? [] : [priceOf(maxTokens, prices.out_per_m)];
  return sumMoney([priceOf(maxPromptTokens(prompt, prices.image_tokens), prices.in_per_m), ...out]);
}
