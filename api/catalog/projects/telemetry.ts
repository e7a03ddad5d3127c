// What is recorded of the use of an app in the last day, week and month: calls, traffic, and what it took to serve them.
import type { Logger } from '../../../lib/log.ts';
import { type Database, type LedgerHandle, moneyToNumber } from '../../billing/index.ts';
import { type Calls, callsOf } from './calls.ts';
import { type Traffic, trafficOf } from './traffic.ts';
import type { Telemetry, TelemetryWindow, Window } from './views.ts';

const hoursOf: Readonly<Record<Window, number>> = { '24h': 24, '7d': 168, '30d': 720 };

const unknownUptime =
  'Nothing asks the app at regular times, so it is not known how long it would have answered. error_rate says how requests fared.';
const idle = 'The app was not called in this time.';
const unmetered = 'No gateway has sent its access log yet.';
const unused = 'Nobody used the app in this time.';
const uncomputed = 'The operator has not reported what apps use yet.';

/** @throws the driver's error */
export async function readTelemetry(database: Database, slug: string, now = new Date()): Promise<Telemetry> {
  const hours = Object.values(hoursOf);
  const [calls, traffic] = await Promise.all([
    database.query(callsOf, [slug, now, hours]),
    database.query(trafficOf, [slug, now, hours]),
  ]);
  return perWindow((window) => {
    const isOf = (row: { readonly hours: number }): boolean => row.hours === hoursOf[window];
    const [own, passed] = [calls.find(isOf), traffic.find(isOf)];
    return own === undefined || passed === undefined ? unmeasured(idle) : measured(own, passed);
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

type Figures = Omit<TelemetryWindow, 'unmeasured'>;
type Reasons = TelemetryWindow['unmeasured'];

function measured(calls: Calls, traffic: Traffic): TelemetryWindow {
  const [served, used, taken] = [ofCalls(calls), ofTraffic(traffic), ofCompute(traffic)];
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

function ofCalls(calls: Calls): Part<CallField> {
  const [p50 = null, p95 = null] = calls.latencies ?? [];
  const { requests, callers, model_calls, model_costs_pending } = calls;
  return {
    figures: {
      ...{ requests, callers, model_calls, model_costs_pending },
      latency_ms: { p50, p95 },
      model_cost_usd: moneyToNumber(calls.model_cost),
    },
    reasons: p50 === null ? { latency_ms: idle } : {},
  };
}

function ofTraffic({ is_metered, visits, answered, failed }: Traffic): Part<'visits' | 'error_rate'> {
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

function ofCompute({ is_computed, cpu_seconds, memory_byte_seconds }: Traffic): Part<'compute'> {
  return is_computed
    ? { figures: { compute: { cpu_seconds, memory_gib_hours: memory_byte_seconds / 2 ** 30 / 3_600 } }, reasons: {} }
    : { figures: { compute: null }, reasons: { compute: uncomputed } };
}

function unmeasured(reason: string): TelemetryWindow {
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
