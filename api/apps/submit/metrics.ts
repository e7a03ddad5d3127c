// Metrics of submissions and of the build logs that are followed.
import { Counter, Gauge, type Registry } from 'prom-client';

export interface SubmitMetrics {
  /** Submissions by `result`: created, known, or the slug of the problem. */
  readonly submissions: Counter<'result'>;
  readonly streams: Gauge;
}

export function submitMetrics(registry: Registry): SubmitMetrics {
  const registers = [registry];
  return {
    submissions: new Counter({
      name: 'moorage_submissions_total',
      help: 'Submissions by result.',
      labelNames: ['result'],
      registers,
    }),
    streams: new Gauge({ name: 'moorage_log_streams', help: 'Build logs being followed.', registers }),
  };
}
