// Metrics of what apps use and request.
import { Counter, Gauge, type Registry } from 'prom-client';

export interface UsageMetrics {
  /** Apps of which the last look had a sample. */
  readonly apps: Gauge;
  readonly resizes: Counter;
  readonly failures: Counter;
}

export function usageMetrics(registry: Registry): UsageMetrics {
  const registers = [registry];
  return {
    apps: new Gauge({ name: 'moorage_usage_apps', help: 'Pods of apps whose use was measured last.', registers }),
    resizes: new Counter({
      name: 'moorage_usage_resizes_total',
      help: 'Pods of apps whose requests were changed to fit their use.',
      registers,
    }),
    failures: new Counter({
      name: 'moorage_usage_failures_total',
      help: 'Nodes whose usage could not be read, and pods whose requests could not be changed.',
      registers,
    }),
  };
}
