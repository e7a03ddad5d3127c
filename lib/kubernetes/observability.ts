// Defines the logger that the runtime writes to, and its own metrics under the names that controller dashboards expect.
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

/** Writes one structured line. */
type LogLine = (fields: object, message: string) => void;

/** The part of a structured logger that the runtime uses; pino's logger fits. */
export interface Logger {
  debug: LogLine;
  info: LogLine;
  warn: LogLine;
  error: LogLine;
}

const ignoreLine: LogLine = () => undefined;

/** The default where no logger is given. */
export const silentLogger: Logger = { debug: ignoreLine, info: ignoreLine, warn: ignoreLine, error: ignoreLine };

const REGISTERED = new WeakMap<Registry, RuntimeMetrics>();

/** The runtime's metrics. Label `controller` is a controller's name, `resource` a plural. */
export interface RuntimeMetrics {
  /** Reconciles by `controller` and `result`: done, requeue, waiting, stalled, error, cut (by the shutdown). */
  reconciles: Counter<'controller' | 'result'>;
  /** Seconds of a reconcile. */
  reconcileSeconds: Histogram<'controller'>;
  /** Keys ready to be worked on. */
  queueDepth: Gauge<'controller'>;
  /** Keys in work. */
  activeWorkers: Gauge<'controller'>;
  /** Retries after errors. */
  retries: Counter<'controller'>;
  /** Lists of a resource: at the start and after each watch that lost its position. */
  lists: Counter<'resource'>;
  /** Watches ended, by `reason`: end (server's time limit), expired, error. */
  watchRestarts: Counter<'resource' | 'reason'>;
  /** Objects in a cache. */
  cachedObjects: Gauge<'resource'>;
  /** 1 while this replica leads. */
  leader: Gauge;
}

/** The runtime's metrics in a registry; created on first use. */
export function getRuntimeMetrics(registry: Registry): RuntimeMetrics {
  const existing = REGISTERED.get(registry);
  if (existing !== undefined) return existing;
  const metrics = createMetrics([registry]);
  REGISTERED.set(registry, metrics);
  return metrics;
}

function createMetrics(registers: Registry[]): RuntimeMetrics {
  const controller = ['controller'] as const;
  const resource = ['resource'] as const;
  return {
    reconciles: new Counter({
      name: 'moorage_reconcile_total',
      help: 'Reconciles by result.',
      labelNames: ['controller', 'result'],
      registers,
    }),
    reconcileSeconds: new Histogram({
      name: 'moorage_reconcile_duration_seconds',
      help: 'Seconds of a reconcile.',
      labelNames: controller,
      buckets: [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
      registers,
    }),
    queueDepth: new Gauge({
      name: 'moorage_queue_depth',
      help: 'Keys ready to be reconciled.',
      labelNames: controller,
      registers,
    }),
    activeWorkers: new Gauge({
      name: 'moorage_active_workers',
      help: 'Reconciles in progress.',
      labelNames: controller,
      registers,
    }),
    retries: new Counter({
      name: 'moorage_reconcile_retries_total',
      help: 'Retries after errors.',
      labelNames: controller,
      registers,
    }),
    lists: new Counter({
      name: 'moorage_lists_total',
      help: 'Full lists of a resource.',
      labelNames: resource,
      registers,
    }),
    watchRestarts: new Counter({
      name: 'moorage_watch_restarts_total',
      help: 'Ended watches by reason.',
      labelNames: ['resource', 'reason'],
      registers,
    }),
    cachedObjects: new Gauge({
      name: 'moorage_cached_objects',
      help: 'Objects in the cache.',
      labelNames: resource,
      registers,
    }),
    leader: new Gauge({ name: 'moorage_leader', help: '1 while this replica leads.', registers }),
  };
}
