// Metrics of the activator.
import { Gauge, Histogram, type Registry } from 'prom-client';

export interface ActivatorMetrics {
  /** Seconds from the first request to the first connection. */
  readonly wakes: Histogram<'depth'>;
}

/** @param counts requests that are held, and all that are in progress */
export function activatorMetrics(
  registry: Registry,
  counts: () => { readonly held: number; readonly open: number },
): ActivatorMetrics {
  const registers = [registry];
  const gauge = (name: string, help: string, read: () => number): void => {
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(read());
      },
    });
  };
  gauge('moorage_activator_held_requests', 'Requests that are held until their app wakes.', () => counts().held);
  gauge(
    'moorage_activator_open_requests',
    'Requests and connections in progress through the activator, held ones included.',
    () => counts().open,
  );
  return {
    wakes: new Histogram({
      name: 'moorage_wake_duration_seconds',
      help: 'Seconds from the first request for an app at rest until it took the connection.',
      labelNames: ['depth'],
      buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 1.5, 2.5, 5, 10, 30, 60, 120],
      registers,
    }),
  };
}
