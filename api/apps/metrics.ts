// Metrics of calls of apps. Labels are the ways in and slugs of problems: sets that cannot grow with apps or callers.
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import { Problem } from '../../lib/problem.ts';

/** By which way a call came. */
export type AppVia = 'path' | 'json' | 'mcp';

export interface AppMetrics {
  /** `outcome`: answered, failed (the app said 5xx), the slug of the problem, or fault. */
  called(via: AppVia, outcome: string, seconds: number): void;
}

export interface AppGauges {
  readonly calls: number;
  readonly operations: number;
}

export function appMetrics(registry: Registry, gauges: () => AppGauges): AppMetrics {
  const registers = [registry];
  const calls = new Counter({
    name: 'moorage_app_calls_total',
    help: 'Calls of hosted apps by outcome.',
    labelNames: ['via', 'outcome'],
    registers,
  });
  const seconds = new Histogram({
    name: 'moorage_app_call_duration_seconds',
    help: 'Seconds until an app began to respond.',
    labelNames: ['via'],
    buckets: [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120],
    registers,
  });
  new Gauge({
    name: 'moorage_app_calls_running',
    help: 'Calls of hosted apps in progress.',
    registers,
    collect() {
      this.set(gauges().calls);
    },
  });
  new Gauge({
    name: 'moorage_app_operations',
    help: 'Operations of hosted apps offered as tools.',
    registers,
    collect() {
      this.set(gauges().operations);
    },
  });
  return {
    called(via, outcome, took) {
      calls.inc({ via, outcome });
      seconds.observe({ via }, took);
    },
  };
}

export function outcomeOf(error: unknown): string {
  return error instanceof Problem ? error.type.slug : 'fault';
}
