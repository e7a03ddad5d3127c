// The responses of a router, as far as they are read: loose where they are theirs, exact where they are money.
import { z } from 'zod';
import { type CostSource, type Money, MoneyError, parseBilled, sumMoney } from '../../billing/index.ts';

/** A cost that a router reported, and where it was found. */
export interface Cost {
  readonly amount: Money;
  readonly source: CostSource;
}

/** A whole answer. */
export interface RouterAnswer {
  /** The router's own id of the call. */
  readonly reference: string | undefined;
  /** The model's text; empty for embeddings. */
  readonly text: string;
  readonly finishReason: string | undefined;
  readonly tokensIn: number | undefined;
  readonly tokensOut: number | undefined;
  /** Absent while it is not known. */
  readonly cost: Cost | undefined;
  /** The body as JSON text; of a stream, empty. */
  readonly body: string;
}

const tokens = z.int().min(0).max(2_000_000_000).nullish().catch(undefined);
/** Money in its own digits (see exact-json.ts); anything else counts as not reported. */
const digits = z.string().max(60).nullish().catch(undefined);

export const usage = z.looseObject({
  prompt_tokens: tokens,
  completion_tokens: tokens,
  total_tokens: tokens,
  cost: digits,
  is_byok: z.boolean().nullish().catch(undefined),
  cost_details: z.looseObject({ upstream_inference_cost: digits }).nullish().catch(undefined),
});
export type RouterUsage = z.output<typeof usage>;

const failure = z.looseObject({
  message: z.string().nullish().catch(undefined),
  code: z.union([z.number(), z.string()]).nullish().catch(undefined),
});
const content = z.string().nullish().catch(undefined);

export const completion = z.looseObject({
  id: z.string().nullish().catch(undefined),
  choices: z.array(z.looseObject({ message: z.looseObject({ content }), finish_reason: z.string().nullish() })).min(1),
  usage: usage.nullish().catch(undefined),
});

export const chunk = z.looseObject({
  id: z.string().nullish().catch(undefined),
  choices: z
    .array(z.looseObject({ delta: z.looseObject({ content }).nullish(), finish_reason: z.string().nullish() }))
    .nullish(),
  usage: usage.nullish().catch(undefined),
  error: failure.nullish(),
});
export type Chunk = z.output<typeof chunk>;

export const embeddings = z.looseObject({
  id: z.string().nullish().catch(undefined),
  data: z.array(z.unknown()).min(1),
  usage: usage.nullish().catch(undefined),
});

/** The list of models. */
export const offered = z.looseObject({ data: z.array(z.looseObject({ id: z.string() })) });

export const refusal = z.looseObject({
  error: z.union([failure, z.string().transform((message) => ({ message, code: undefined }))]),
});

/** The cost in `usage.cost`. With a provider key of the payer's own, what that provider bills is part of it. */
export function usageCost(reported: RouterUsage | null | undefined): Cost | undefined {
  const parts = [
    reported?.cost,
    reported?.is_byok === true ? reported.cost_details?.upstream_inference_cost : undefined,
  ].filter((part) => part !== undefined && part !== null);
  if (reported?.cost === undefined || reported.cost === null) return undefined;
  const amounts = parts.map(readBilled);
  return amounts.every((amount) => amount !== undefined) ? { amount: sumMoney(amounts), source: 'billed' } : undefined;
}

/** An amount that a router wrote; undefined when it is none, like a negative one. */
export function readBilled(text: string): Money | undefined {
  try {
    return parseBilled(text);
  } catch (error) {
    if (error instanceof MoneyError) return undefined;
    throw error;
  }
}
