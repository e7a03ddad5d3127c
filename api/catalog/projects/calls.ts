// Calls of an app through the API and of models by it, as the ledger records each: counts, exact costs and latencies.
import { z } from 'zod';
import { money, type Statement } from '../../billing/index.ts';

const calls = z.object({
  hours: z.number(),
  requests: z.number(),
  callers: z.number(),
  latencies: z.array(z.number().nullable()).nullable(),
  model_calls: z.number(),
  model_cost: money,
  model_costs_pending: z.number(),
});
/** Of one window. */
export type Calls = z.output<typeof calls>;

/**
 * Of app $1 until $2 (default now), in windows of $3 hours that end then; by the index usage_app alone. The beginning of a
 * window is no constant of the plan, so that it is planned once for each connection and its days are chosen when it runs.
 * Percentiles need each latency, and costs may still come: sums by hour have neither.
 */
export const callsOf: Statement<Calls> = {
  name: 'catalog-calls',
  text: `select w.hours, u.*,
      (select count(*)::int from catalog.caller c where c.app = $1 and c.last_at >= t.now - w.hours * interval '1 hour') as callers
    from (select coalesce($2::timestamptz, clock_timestamp()) as now) t
    cross join unnest($3::int[]) w (hours)
    cross join lateral (
      select count(*) filter (where kind = 'app')::int as requests,
        percentile_disc(array[0.5, 0.95]) within group (order by latency_ms) filter (where kind = 'app') as latencies,
        count(*) filter (where kind = 'v1')::int as model_calls,
        coalesce(sum(cost) filter (where kind = 'v1'), 0)::text as model_cost,
        count(*) filter (where kind = 'v1' and cost_source = 'pending')::int as model_costs_pending
      from ledger.usage where app = $1 and kind <> 'visit' and at >= t.now - w.hours * interval '1 hour' and at <= t.now) u`,
  row: calls,
};
