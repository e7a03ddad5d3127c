// Metrics of what apps use of CPU and memory. No label names an app: the set must not grow.
import { Counter, type Registry } from 'prom-client';

export interface ComputeMetrics {
  readonly samples: Counter<'result'>;
  readonly cpuSeconds: Counter;
  readonly memoryByteSeconds: Counter;
}

export function computeMetrics(registry: Registry): ComputeMetrics {
  const registers = [registry];
  return {
    samples: new Counter({
      name: 'moorage_compute_samples_total',
      help: 'Samples of the containers of apps, by result: counted, ignored (not newer than the last one), refused (ahead of the clock).',
      labelNames: ['result'],
      registers,
    }),
    cpuSeconds: new Counter({
      name: 'moorage_compute_cpu_seconds_total',
      help: 'Seconds of CPU that were counted of all apps.',
      registers,
    }),
    memoryByteSeconds: new Counter({
      name: 'moorage_compute_memory_byte_seconds_total',
      help: 'Memory of all apps times the seconds for which they held it.',
      registers,
    }),
  };
}
