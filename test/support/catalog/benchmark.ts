// Benchmarks as a test of guides needs them: two models and their results.
import type { Benchmark, MeasuredModel, PassRate } from '../../../api/catalog/guides/evidence.ts';

const rate = (passed: number, n: number, interval: readonly [number, number] | null = null): PassRate => ({
  passed,
  n,
  rate: n === 0 ? null : passed / n,
  interval,
});

export interface SampleModel {
  readonly passed: number;
  readonly n: number;
  readonly usd: number;
  /** Default: wide. */
  readonly interval?: readonly [number, number];
  /** Runs in which its upstream was away. */
  readonly outages?: number;
}

/** One task; cost per success follows from the runs. */
export function sampleModel(
  model: string,
  { passed, n, usd, interval = [0, 1], outages = 0 }: SampleModel,
): MeasuredModel {
  const quality = rate(passed, n, n === 0 ? null : interval);
  const delivered = rate(passed, n + outages);
  return {
    model,
    runs: n + outages,
    quality,
    cost_per_run_usd: usd,
    cost_per_success_usd: passed === 0 ? null : (usd * (n + outages)) / passed,
    by_task: [{ task: 'one', quality, delivered }],
  };
}

export function sampleBenchmark(
  models: readonly MeasuredModel[],
  pairs: Benchmark['pairs'] = [],
  slug = 'research-agent',
): Benchmark {
  return {
    slug,
    updated: '2026-12-01T10:00:00.000Z',
    page: `https://moorage.test/bench/${slug}`,
    data_url: `https://moorage.test/api/bench/${slug}/runs.jsonl`,
    tasks: [{}],
    models,
    pairs,
  };
}
