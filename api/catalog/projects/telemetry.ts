// What the ledger records of the use of an app: its model calls and the calls of it, in the last day, week and month.
import { z } from 'zod';
import type { Logger } from '../../../lib/log.ts';
import { type Database, type LedgerHandle, money, moneyToNumber, type Statement } from '../../billing/index.ts';
import type { Telemetry, TelemetryWindow, Window } from './views.ts';

const used = z.object({
  hours: z.number(),
  requests: z.number(),
  callers: z.number(),
  latencies: z.array(z.number().nullable()).nullable(),
  model_calls: z.number(),
  model_cost: money,
  model_costs_pending: z.number(),
});
type Used = z.output<typeof used>;

/** By the index usage_app alone. */
export const usedBy: Statement<Used> = {
  name: 'catalog-telemetry',
  text: `select w.hours, u.*,
      (select count(*)::int from catalog.caller c where c.app = $1 and c.last_at >= t.now - w.hours * interval '1 hour') as callers
    from (select coalesce($2::timestamptz, clock_timestamp()) as now) t
    cross join (values (24), (168), (720)) w (hours)
    cross join lateral (
      select count(*) filter (where kind = 'app')::int as requests,
        percentile_disc(array[0.5, 0.95]) within group (order by latency_ms) filter (where kind = 'app') as latencies,
        count(*) filter (where kind = 'v1')::int as model_calls,
        coalesce(sum(cost) filter (where kind = 'v1'), 0)::text as model_cost,
        count(*) filter (where kind = 'v1' and cost_source = 'pending')::int as model_costs_pending
      from ledger.usage where app = $1 and kind <> 'visit' and at >= t.now - w.hours * interval '1 hour' and at <= t.now) u`,
  row: used,
};

const hoursOf: Readonly<Record<Window, number>> = { '24h': 24, '7d': 168, '30d': 720 };

const never = {
  visits: 'Traffic of visitors is not metered yet.',
  uptime: 'Traffic of visitors is not metered yet.',
  error_rate: 'The ledger records calls that succeeded only, and traffic of visitors is not metered yet.',
};
const idle = 'The app was not called in this time.';
const recorded = ['requests', 'callers', 'latency_ms', 'model_calls', 'model_cost_usd', 'model_costs_pending'] as const;

/** @throws the driver's error */
export async function readTelemetry(database: Database, slug: string, now: Date | null = null): Promise<Telemetry> {
  const rows = await database.query(usedBy, [slug, now]);
  return perWindow((window) => {
    const row = rows.find(({ hours }) => hours === hoursOf[window]);
    return row === undefined ? unmeasured(idle) : measured(row);
  });
}

export interface TelemetryOptions {
  readonly ledger: Pick<LedgerHandle, 'get' | 'opened'>;
  readonly log: Logger;
}

/** Reads telemetry; where the database cannot be asked, all of it is null and says so. */
export function telemetryReader({ ledger, log }: TelemetryOptions): (slug: string) => Promise<Telemetry> {
  let isConfigured = true;
  void ledger.opened.then((opened) => {
    isConfigured = opened !== undefined;
  });
  return async (slug) => {
    if (!isConfigured)
      return perWindow(() =>
        unmeasured('No ledger is configured. The operator of this installation can set DATABASE_URL.'),
      );
    try {
      return await readTelemetry(ledger.get().database, slug);
    } catch (error) {
      log.warn({ err: error, app: slug }, 'telemetry cannot be read');
      return perWindow(() => unmeasured('The database did not answer. Ask again later.'));
    }
  };
}

function perWindow(of: (window: Window) => TelemetryWindow): Telemetry {
  return { '24h': of('24h'), '7d': of('7d'), '30d': of('30d') };
}

function measured(row: Used): TelemetryWindow {
  const [p50 = null, p95 = null] = row.latencies ?? [];
  return {
    requests: row.requests,
    callers: row.callers,
    latency_ms: { p50, p95 },
    model_calls: row.model_calls,
    model_cost_usd: moneyToNumber(row.model_cost),
    model_costs_pending: row.model_costs_pending,
    visits: null,
    uptime: null,
    error_rate: null,
    unmeasured: p50 === null ? { latency_ms: idle, ...never } : never,
  };
}

function unmeasured(reason: string): TelemetryWindow {
  return {
    requests: null,
    callers: null,
    latency_ms: { p50: null, p95: null },
    model_calls: null,
    model_cost_usd: null,
    model_costs_pending: null,
    visits: null,
    uptime: null,
    error_rate: null,
    unmeasured: { ...Object.fromEntries(recorded.map((field) => [field, reason])), ...never },
  };
}
