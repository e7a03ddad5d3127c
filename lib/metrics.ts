// The metrics registry of a process and the metrics of requests, with label sets that cannot grow.
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';

/** A registry with the process's own metrics (memory, CPU, event loop, file handles). */
export function createRegistry(): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  return registry;
}

/** Metrics of an HTTP server. Label `route` is a pattern, never a path. */
export interface HttpMetrics {
  /** Seconds until the answer began. */
  seconds: Histogram<'method' | 'route' | 'status'>;
  /** Requests being answered, open streams included. */
  open: Gauge;
  /** Problems answered, by their type. */
  problems: Counter<'type'>;
}

const methods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

/** A method fit for a label: an invented one becomes OTHER. */
export function methodLabel(method: string): string {
  return methods.has(method) ? method : 'OTHER';
}

/** Makes the metrics of an HTTP server in a registry. */
export function httpMetrics(registry: Registry): HttpMetrics {
  const registers = [registry];
  return {
    seconds: new Histogram({
      name: 'moorage_http_request_duration_seconds',
      help: 'Seconds until the answer to a request began.',
      labelNames: ['method', 'route', 'status'],
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
      registers,
    }),
    open: new Gauge({ name: 'moorage_http_open_requests', help: 'Requests being answered.', registers }),
    problems: new Counter({
      name: 'moorage_http_problems_total',
      help: 'Problems answered, by type.',
      labelNames: ['type'],
      registers,
    }),
  };
}
