// OpenRouter and its kind: routers that report the cost in the answer's `usage`, and keep a record of each generation.
import { z } from 'zod';
import { readBilled, usageCost } from './answer.ts';
import type { RouterShape } from './shape.ts';

const generation = z.looseObject({ data: z.looseObject({ total_cost: z.string() }) });

export const openRouter: RouterShape = {
  // `usage.include` is what older versions need to report the cost.
  fields: (_hold, streamed) => ({
    usage: { include: true },
    ...(streamed ? { stream_options: { include_usage: true } } : {}),
  }),
  headers: (hold) => ({ 'x-request-id': hold }),
  cost: ({ usage }) => usageCost(usage),
  async lookUp({ reference }, get, base) {
    if (reference === null) return { outcome: 'not yet', why: 'the call ended before the router reported its id' };
    const { status, body } = await get(`${base}/generation?id=${encodeURIComponent(reference)}`);
    const record = status === 200 ? generation.safeParse(body) : undefined;
    if (record?.success !== true)
      return { outcome: 'not yet', why: `the lookup of ${reference} returned status ${status}` };
    const cost = readBilled(record.data.data.total_cost);
    return cost === undefined
      ? { outcome: 'not yet', why: `the record of ${reference} has no amount in total_cost` }
      : { outcome: 'found', cost, source: 'router_record' };
  },
  keyAddress: (base) => `${base}/key`,
};
