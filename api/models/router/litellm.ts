// LiteLLM: reports the cost in a header, computed from its price map, and keeps spend logs where it has a database.
import { z } from 'zod';
import { readBilled, usageCost } from './answer.ts';
import { header, type RouterShape } from './shape.ts';

const spendLogs = z.array(z.looseObject({ spend: z.string() }));

export const liteLlm: RouterShape = {
  fields: (hold, streamed) => ({
    metadata: { moorage_hold: hold },
    ...(streamed ? { stream_options: { include_usage: true } } : {}),
  }),
  // Its own id of the call, which its records then carry.
  headers: (hold) => ({ 'x-litellm-call-id': hold }),
  cost({ headers, usage, streamed, priced }) {
    // In the body where `include_cost_in_streaming_usage` is set.
    const inBody = usageCost(usage);
    if (inBody !== undefined && inBody.amount > 0n) return { ...inBody, source: 'router_computed' };
    // On a stream the header was written before there was anything to bill.
    const text = streamed ? undefined : header(headers, 'x-litellm-response-cost');
    const amount = text === undefined ? undefined : readBilled(text);
    // It is known to write 0 where its own records have an amount.
    if (amount === undefined || (amount === 0n && priced)) return undefined;
    return { amount, source: 'router_computed' };
  },
  async lookUp({ hold, reference }, get, base) {
    for (const id of [reference, hold]) {
      if (id === null) continue;
      const { status, body } = await get(`${root(base)}/spend/logs?request_id=${encodeURIComponent(id)}`);
      const [row] = status === 200 ? (spendLogs.safeParse(body).data ?? []) : [];
      const cost = row === undefined ? undefined : readBilled(row.spend);
      if (cost !== undefined) return { outcome: 'found', cost, source: 'router_record' };
    }
    return { outcome: 'not yet', why: 'the spend logs do not have the call' };
  },
  // Not /v1/models: where it asks for no key at all, that would call every invented key valid.
  keyAddress: (base) => `${root(base)}/key/info`,
};

function root(base: string): string {
  return base.replace(/\/v1$/, '');
}
