// Metrics of calls of apps. Labels are the ways in and slugs of problems: sets that cannot grow with apps or callers.
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import { Problem } from '../../lib/problem.ts';

/** By which way a call came. */
export type AppVia = 'path' | 'json' | 'mcp';

export interface AppMetrics {
  /** `outcome`: answered, failed (the app said 5xx), the slug of the problem, or fault. */
  called(via: AppVia, outcome: string, seconds: number): void;
}

export interface Watched {
  readonly calls: number;
  readonly operations: number;
}

export function appMetrics(registry: Registry, watched: () => Watched): AppMetrics {
  const registers = [registry];
  const calls = new Counter({
    name: 'moorage_app_calls_total',
    help: 'Calls of hosted apps through the API by how they ended.',
    labelNames: ['via', 'outcome'],
    registers,
  });
  const seconds = new Histogram({
    name: 'moorage_app_call_duration_seconds',
    help: 'Seconds until an app began to answer.',
    labelNames: ['via'],
    buckets: [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120],
    registers,
  });
  new Gauge({
    name: 'moorage_app_calls_running',
    help: 'Calls of hosted apps under way.',
    registers,
    collect() {
      this.set(watched().calls);
    },
  });
  new Gauge({
    name: 'moorage_app_operations',
    help: 'Operations of hosted apps that are offered as tools.',
    registers,
    collect() {
      this.set(watched().operations);
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
