// Reads how much an app was used in the last day, week and month: calls, traffic, CPU and memory.
import { z } from 'zod';
import type { Logger } from '../../../lib/telemetry.ts';
import { type Database, type LedgerHandle, money, toDollarNumber, type Statement } from '../../billing/index.ts';
import type { Telemetry, TelemetryWindow, Window } from './views.ts';

const windowHours: Readonly<Record<Window, number>> = { '24h': 24, '7d': 168, '30d': 720 };

const unknownUptime =
  'Nothing asks the app at regular times, so it is not known how long it would have answered. error_rate says how requests fared.';
const idle = 'The app was not called in this time.';
const unmetered = 'No gateway has sent its access log yet.';
const unused = 'Nobody used the app in this time.';
const uncomputed = 'The operator has not reported what apps use yet.';

/** @throws the driver's error */
export async function readTelemetry(database: Database, slug: string, now = new Date()): Promise<Telemetry> {
  const hours = Object.values(windowHours);
  const [calls, traffic] = await Promise.all([
    database.query(selectCalls, [slug, now, hours]),
    database.query(selectTraffic, [slug, now, hours]),
  ]);
  return mapWindows((window) => {
    const isOf = (row: { readonly hours: number }): boolean => row.hours === windowHours[window];
    const [callRow, trafficRow] = [calls.find(isOf), traffic.find(isOf)];
    return callRow === undefined || trafficRow === undefined
      ? createUnmeasuredWindow(idle)
      : toWindow(callRow, trafficRow);
  });
}

export interface TelemetryOptions {
  readonly ledger: Pick<LedgerHandle, 'get' | 'opened'>;
  readonly log: Logger;
}

/** Reads telemetry; where the database cannot be asked, all of it is null and says so. */
export function createTelemetryReader({ ledger, log }: TelemetryOptions): (slug: string) => Promise<Telemetry> {
  let isConfigured = true;
  void ledger.opened.then((opened) => {
    isConfigured = opened !== undefined;
  });
  return async (slug) => {
    if (!isConfigured)
      return mapWindows(() =>
        createUnmeasuredWindow('No ledger is configured. The operator of this installation can set DATABASE_URL.'),
      );
    try {
      return await readTelemetry(ledger.get().database, slug);
    } catch (error) {
      log.warn({ err: error, app: slug }, 'cannot read telemetry');
      return mapWindows(() => createUnmeasuredWindow('The database did not answer. Ask again later.'));
    }
  };
}

function mapWindows(of: (window: Window) => TelemetryWindow): Telemetry {
  return { '24h': of('24h'), '7d': of('7d'), '30d': of('30d') };
}

type Figures = Omit<TelemetryWindow, 'unmeasured'>;
type Reasons = TelemetryWindow['unmeasured'];

function toWindow(calls: Calls, traffic: Traffic): TelemetryWindow {
  const [served, used, taken] = [summarizeCalls(calls), summarizeTraffic(traffic), summarizeCompute(traffic)];
  return {
    ...served.figures,
    ...used.figures,
    ...taken.figures,
    uptime: null,
    unmeasured: { ...served.reasons, ...used.reasons, ...taken.reasons, uptime: unknownUptime },
  };
}

interface Part<Field extends keyof Figures> {
  readonly figures: Pick<Figures, Field>;
  /** Why each figure that is null is so. */
  readonly reasons: Reasons;
}

type CallField = 'requests' | 'callers' | 'latency_ms' | 'model_calls' | 'model_cost_usd' | 'model_costs_pending';

function summarizeCalls(calls: Calls): Part<CallField> {
  const [p50 = null, p95 = null] = calls.latencies ?? [];
  const { requests, callers, model_calls, model_costs_pending } = calls;
  return {
    figures: {
      ...{ requests, callers, model_calls, model_costs_pending },
      latency_ms: { p50, p95 },
      model_cost_usd: toDollarNumber(calls.model_cost),
    },
    reasons: p50 === null ? { latency_ms: idle } : {},
  };
}

function summarizeTraffic({ is_metered, visits, answered, failed }: Traffic): Part<'visits' | 'error_rate'> {
  // Calls that an app failed to answer are in no ledger: without a gateway's log, only those that went well are known.
  if (!is_metered)
    return {
      figures: { visits: null, error_rate: null },
      reasons: { visits: unmetered, error_rate: unmetered },
    };
  return answered === 0
    ? { figures: { visits, error_rate: null }, reasons: { error_rate: unused } }
    : { figures: { visits, error_rate: failed / answered }, reasons: {} };
}

function summarizeCompute({ is_computed, cpu_seconds, memory_byte_seconds }: Traffic): Part<'compute'> {
  return is_computed
    ? { figures: { compute: { cpu_seconds, memory_gib_hours: memory_byte_seconds / 2 ** 30 / 3_600 } }, reasons: {} }
    : { figures: { compute: null }, reasons: { compute: uncomputed } };
}

function createUnmeasuredWindow(reason: string): TelemetryWindow {
  const figures: Omit<Figures, 'latency_ms'> = {
    requests: null,
    callers: null,
    model_calls: null,
    model_cost_usd: null,
    model_costs_pending: null,
    visits: null,
    error_rate: null,
    compute: null,
    uptime: null,
  };
  const reasons = Object.fromEntries([...Object.keys(figures), 'latency_ms'].map((field) => [field, reason]));
  return {
    ...figures,
    latency_ms: { p50: null, p95: null },
    unmeasured: { ...reasons, uptime: unknownUptime },
  };
}

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
export const selectCalls: Statement<Calls> = {
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

const traffic = z.object({
  hours: z.number(),
  is_metered: z.boolean(),
  is_computed: z.boolean(),
  visits: z.coerce.number(),
  answered: z.coerce.number(),
  failed: z.coerce.number(),
  cpu_seconds: z.coerce.number(),
  memory_byte_seconds: z.coerce.number(),
});
/** Of one window. `is_metered`: a gateway has sent its access log; `is_computed`: an operator has reported. */
export type Traffic = z.output<typeof traffic>;

/**
 * Requests that count for the error rate: uses by visitors and calls that were recorded, which an app has answered, and
 * any of both that it answered with a server error.
 */
export const answeredWell = `((kind = 'visit' and class = 'use') or kind = 'app')`;
export const answeredWrong = `(kind = 'visit' and class in ('failed', 'call') and status_class = 5)`;

/** Whole days where the window has them, hours at its ends. A window of $3 hours begins with the hour it begins in. */
export const selectTraffic: Statement<Traffic> = {
  name: 'catalog-traffic',
  text: `with bounds as (
      select h as hours, date_trunc('hour', $2::timestamptz - h * interval '1 hour', 'UTC') as since,
        least(((date_trunc('hour', $2::timestamptz - h * interval '1 hour', 'UTC') at time zone 'utc') + interval '1 day' - interval '1 microsecond')::date,
          ($2::timestamptz at time zone 'utc')::date) as first_day,
        ($2::timestamptz at time zone 'utc')::date as today
      from unnest($3::int[]) as h)
    select b.hours, exists (select from metering.instance) as is_metered, exists (select from metering.compute_hour) as is_computed,
      u.*, c.*
    from bounds b
    cross join lateral (
      select coalesce(sum(uses) filter (where kind = 'visit' and class = 'use'), 0)::text as visits,
        coalesce(sum(uses) filter (where ${answeredWell} or ${answeredWrong}), 0)::text as answered,
        coalesce(sum(uses) filter (where ${answeredWrong}), 0)::text as failed
      from (
        select kind, class, status_class, uses from metering.day where app = $1 and day >= b.first_day and day < b.today
        union all
        select kind, class, status_class, uses from metering.hour
          where app = $1 and hour >= b.since and hour < ledger.day_start(b.first_day)
        union all
        select kind, class, status_class, uses from metering.hour
          where app = $1 and hour >= greatest(b.since, ledger.day_start(b.today)) and hour <= $2) s) u
    cross join lateral (
      select coalesce(sum(cpu_seconds), 0)::text as cpu_seconds, coalesce(sum(memory_byte_seconds), 0)::text as memory_byte_seconds
      from metering.compute_hour where app = $1 and hour >= b.since and hour <= $2) c`,
  row: traffic,
};
