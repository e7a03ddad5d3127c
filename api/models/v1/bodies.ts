// The router's response as an app gets it: under our name of the model, with the settled cost.
import { z } from 'zod';
import { moneyToNumber, type Payer, rateLimitHeaders } from '../../billing/index.ts';
import type { Settlement } from '../metered/metered-router.ts';

const body = z.looseObject({ usage: z.looseObject({}).nullish() });

/** A cost that is not known yet is left out, whatever the router wrote there. */
export function completionBody(text: string, model: string, { cost }: Settlement): Record<string, unknown> {
  const read = body.parse(JSON.parse(text));
  // Undefined members are left out of JSON.
  return { ...read, model, usage: { ...read.usage, cost: cost === undefined ? undefined : moneyToNumber(cost) } };
}

export function answerHeaders({ quota, source }: Settlement, payer: Payer): Record<string, string> {
  return {
    'cache-control': 'no-store',
    'x-moorage-cost-source': source,
    ...rateLimitHeaders(quota, payer, Date.now()),
  };
}
