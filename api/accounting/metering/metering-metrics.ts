// Defines the metrics of metering. Label values are classes and reasons from this room; no label names an app, so the sets cannot grow.
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import { readForScrape } from '../../billing/index.ts';

export interface MeteringMetrics {
  readonly events: Counter<'class'>;
  readonly duplicates: Counter;
  readonly refused: Counter<'reason'>;
  readonly requests: Counter<'status'>;
  readonly seconds: Histogram;
  readonly runs: Counter;
  readonly withdrawn: Counter;
}

/** Makes the metrics; `standing` runs at each scrape. */
export function createMeteringMetrics(
  registry: Registry,
  readTotals: () => Promise<{ missing: number; lost: number; difference: number } | undefined>,
): MeteringMetrics {
  const registers = [registry];
  new Gauge({
    name: 'moorage_metering_requests_unaccounted',
    help: 'Requests that gateways counted and that are no events: missing (not come yet), lost (missing for too long), and difference, which is a fault of the accounting itself.',
    labelNames: ['state'],
    registers,
    async collect() {
      const now = await readForScrape(readTotals);
      this.reset();
      for (const [state, count] of Object.entries(now ?? {})) this.set({ state }, count);
    },
  });
  return {
    events: new Counter({
      name: 'moorage_metering_records_total',
      help: 'Records of gateways that were taken, by class; one that came twice counts twice.',
      labelNames: ['class'],
      registers,
    }),
    duplicates: new Counter({
      name: 'moorage_metering_duplicates_total',
      help: 'Records of gateways that were known already.',
      registers,
    }),
    refused: new Counter({
      name: 'moorage_metering_refused_total',
      help: 'Records of gateways that were refused, by reason: unreadable, too_old, in_the_future.',
      labelNames: ['reason'],
      registers,
    }),
    requests: new Counter({
      name: 'moorage_metering_requests_total',
      help: 'Requests to the receiver, by the status that it answered.',
      labelNames: ['status'],
      registers,
    }),
    seconds: new Histogram({
      name: 'moorage_metering_batch_seconds',
      help: 'Seconds from the arrival of a batch to its acknowledgement.',
      buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
      registers,
    }),
    runs: new Counter({
      name: 'moorage_metering_gateway_runs_total',
      help: 'Runs of gateway processes that were seen for the first time.',
      registers,
    }),
    withdrawn: new Counter({
      name: 'moorage_metering_losses_withdrawn_total',
      help: 'Requests that had been declared lost, and of which the record came after all.',
      registers,
    }),
  };
}

export interface ComputeMetrics {
  readonly samples: Counter<'result'>;
  readonly cpuSeconds: Counter;
  readonly memoryByteSeconds: Counter;
}

export function createComputeMetrics(registry: Registry): ComputeMetrics {
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
