// A use as its caller sees it.
import { z } from 'zod';
import type { UseRow } from './statements.ts';

const text = z.string().nullable();
const count = z.int().nullable();

export const use = z.object({
  id: z.string().describe('Id of the call in the ledger.'),
  request_id: text.describe(
    'Id of the request that made it, as in X-Request-Id of its answer. A comparison makes several.',
  ),
  at: z.string().describe('When it began (UTC).'),
  kind: z.string().describe('ask, compare, v1, tool or app.'),
  tool: text,
  app: text,
  model: text,
  tokens_in: count.describe('Prompt tokens, as counted by the router.'),
  tokens_out: count.describe('Completion tokens, as counted by the router.'),
  latency_ms: count,
  state: z
    .enum(['settled', 'pending', 'unknown'])
    .describe(
      'settled: the cost is in the ledger; pending: the router has not reported it yet; unknown: given up by an earlier version, uncharged.',
    ),
  cost_usd: text.describe('What it cost, in USD; null until that is known.'),
  charged_usd: text.describe('What we charged your key for it, in USD; null until it is settled.'),
  cost_source: z
    .string()
    .describe(
      'Where the cost comes from: billed, router_computed, router_record (found later), tariff, estimated (tokens at list prices, where the router has no record of the call), or pending.',
    ),
  settled_at: text.describe('When the cost was settled (UTC): a pending one, later than the call ended.'),
  retry_of: text.describe(
    'Id of the call that this one repeats, because its request was sent again with the same Idempotency-Key before it had an answer.',
  ),
  billed_both: z
    .boolean()
    .nullable()
    .describe('Whether the router has billed both; null if this call repeats none, or one cost is not known yet.'),
});
export type Use = z.output<typeof use>;

export function useOf({ request, cost, charged, source, state, ...rest }: UseRow): Use {
  const { id, at, kind, tool, app, model, tokens_in, tokens_out, latency_ms, settled_at, retry_of, billed_both } = rest;
  return {
    id,
    request_id: request,
    at,
    kind,
    tool,
    app,
    model,
    tokens_in,
    tokens_out,
    latency_ms,
    state: state === 'settled' ? 'settled' : state === 'abandoned' ? 'unknown' : 'pending',
    cost_usd: cost,
    charged_usd: charged,
    cost_source: source,
    settled_at,
    retry_of,
    billed_both,
  };
}
