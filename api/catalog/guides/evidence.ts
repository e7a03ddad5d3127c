// The evidence of a guide: what the benchmark of an app says, as an entry of its record.
import type { Benchmark, MeasuredModel, Reading } from './benchmark.ts';
import type { EvidenceEntry } from './record.ts';

/** `models`: all of this installation, to say which were not measured. */
export function evidenceOf(slug: string, reading: Reading, models: readonly string[]): EvidenceEntry {
  if (typeof reading === 'string')
    return {
      slug,
      available: false,
      url: null,
      data_url: null,
      updated: null,
      runs_per_task: 0,
      models_tested: 0,
      models_with_complete_pass_rate: 0,
      best_measured_value: null,
      failed_all_tasks: [],
      not_measured: [...models],
    };
  const tested = reading.models.filter(({ runs }) => runs > 0);
  const best = bestValue(reading);
  return {
    slug,
    available: true,
    url: reading.page,
    data_url: reading.data_url,
    updated: new Date(reading.updated).toISOString(),
    runs_per_task: Math.min(...tested.map((model) => fewestRuns(model, reading))),
    models_tested: tested.length,
    models_with_complete_pass_rate: tested.filter((model) => isComplete(model, reading)).length,
    best_measured_value: best === undefined ? null : { model: best.model, usd_per_run: best.cost_per_run_usd },
    failed_all_tasks: tested.filter(({ quality }) => quality.n > 0 && quality.passed === 0).map(({ model }) => model),
    not_measured: models.filter((id) => !tested.some(({ model, quality }) => model === id && quality.n > 0)),
  };
}

/** A task without a run counts as 0. */
function fewestRuns({ by_task }: MeasuredModel, { tasks }: Benchmark): number {
  return by_task.length < tasks.length ? 0 : Math.min(...by_task.map(({ delivered }) => delivered.n));
}

/** Whether it has a quality result in every task. */
function isComplete({ by_task }: MeasuredModel, { tasks }: Benchmark): boolean {
  return by_task.length >= tasks.length && by_task.every(({ quality }) => quality.n > 0);
}

/** A model whose cost is known, by which it can be compared. */
export interface PricedModel extends MeasuredModel {
  readonly cost_per_run_usd: number;
}

/** The lowest cost per success: a cheap model that has to be run often is not cheap. */
export function bestValue(benchmark: Benchmark): (PricedModel & { cost_per_success_usd: number }) | undefined {
  return benchmark.models
    .flatMap((model) => {
      const { cost_per_run_usd, cost_per_success_usd } = model;
      if (cost_per_run_usd === null || cost_per_success_usd === null || !isComplete(model, benchmark)) return [];
      return model.quality.passed > 0 ? [{ ...model, cost_per_run_usd, cost_per_success_usd }] : [];
    })
    .toSorted((one, other) => one.cost_per_success_usd - other.cost_per_success_usd || compare(one.model, other.model))
    .at(0);
}

function compare(one: string, other: string): number {
  return one < other ? -1 : 1;
}
