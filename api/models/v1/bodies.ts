// The router's response as a client gets it: under our name of the model, with the settled cost.
import { z } from 'zod';
import { moneyToNumber, type Payer, rateLimitHeaders } from '../../billing/index.ts';
import { costHeaders } from '../metered/measurement.ts';
import type { Settlement } from '../metered/metered-router.ts';

const body = z.looseObject({ usage: z.looseObject({}).nullish() });

export function completionBody(text: string, model: string, settlement: Settlement): Record<string, unknown> {
  const read = body.parse(JSON.parse(text));
  return { ...read, model, usage: settledUsage(read.usage, settlement) };
}

/** Usage with the settled cost. One that is not known yet is left out, whatever the router wrote there. */
export function settledUsage(usage: object | null | undefined, { cost }: Settlement): Record<string, unknown> {
  // Undefined members are left out of JSON.
  return { ...usage, cost: cost === undefined ? undefined : moneyToNumber(cost) };
}

export function answerHeaders(settlement: Settlement, payer: Payer): Record<string, string> {
  return {
    'cache-control': 'no-store',
    ...costHeaders(settlement),
    // Its older name, which hosted apps may read.
    'x-moorage-cost-source': settlement.source,
    ...rateLimitHeaders(settlement.quota, payer, Date.now()),
  };
}

const embedding = z.looseObject({ embedding: z.unknown() });
const vectors = z.looseObject({ data: z.array(embedding) });
const floats = z.array(z.number());

/**
 * Embeddings as base64 of 32-bit floats where a client asked for that: OpenAI's own do so unasked, and take a list of
 * numbers, which some routers answer all the same, for base64.
 */
export function encodedAs(format: unknown, answer: Record<string, unknown>): Record<string, unknown> {
  if (format !== 'base64') return answer;
  const { data } = vectors.parse(answer);
  return {
    ...answer,
    data: data.map((entry) => {
      const read = floats.safeParse(entry.embedding);
      return read.success ? { ...entry, embedding: base64Of(read.data) } : entry;
    }),
  };
}

function base64Of(numbers: readonly number[]): string {
  const bytes = Buffer.alloc(numbers.length * 4);
  numbers.forEach((number, index) => bytes.writeFloatLE(number, index * 4));
  return bytes.toString('base64');
}
