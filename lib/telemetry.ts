// Creates the log and the metrics registry of a process: JSON lines with secrets redacted, and label sets that cannot grow.
import { pino, type Logger } from 'pino';
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import { z } from 'zod';
import { defineSetting, kinds } from './settings.ts';

export type { Logger };

const defaultLogLevel = 'info';

/** The variable of the log, which every process reads. */
export const logEnvironment = z.object({
  LOG_LEVEL: defineSetting(kinds.text(z.enum(['trace', 'debug', 'info', 'warn', 'error']), z.string()), {
    value: 'logLevel',
    default: defaultLogLevel,
    description: 'Lowest level of the lines in the log: trace, debug, info, warn or error.',
    chartDescription: '',
  }),
});

/** The structured log of a process, on stdout; level from LOG_LEVEL. */
export function createLog(component: string): Logger {
  return pino({
    level: process.env['LOG_LEVEL'] ?? defaultLogLevel,
    base: { component },
    timestamp: pino.stdTimeFunctions.isoTime,
    redact: [
      'authorization',
      '*.authorization',
      'headers.authorization',
      'req.headers.authorization',
      'password',
      '*.password',
      'token',
      '*.token',
    ],
    formatters: { level: (label) => ({ level: label }) },
  });
}

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

/** Creates the metrics of an HTTP server in a registry. */
export function createHttpMetrics(registry: Registry): HttpMetrics {
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
