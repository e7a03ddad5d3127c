// Reads the benchmarks that a guide rests on, and summarises each as evidence.
import { Problem } from '../../../lib/problem.ts';
import type { EvidenceEntry } from './endpoints.ts';

/** `models`: all of this installation, to say which were not measured. */
export function toEvidence(slug: string, reading: Reading, models: readonly string[]): EvidenceEntry {
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
  const best = findBestValue(reading);
  return {
    slug,
    available: true,
    url: reading.page,
    data_url: reading.data_url,
    updated: new Date(reading.updated).toISOString(),
    runs_per_task: Math.min(...tested.map((model) => countFewestRuns(model, reading))),
    models_tested: tested.length,
    models_with_complete_pass_rate: tested.filter((model) => isComplete(model, reading)).length,
    best_measured_value: best === undefined ? null : { model: best.model, usd_per_run: best.cost_per_run_usd },
    failed_all_tasks: tested.filter(({ quality }) => quality.n > 0 && quality.passed === 0).map(({ model }) => model),
    not_measured: models.filter((id) => !tested.some(({ model, quality }) => model === id && quality.n > 0)),
  };
}

/** A task without a run counts as 0. */
function countFewestRuns({ by_task }: MeasuredModel, { tasks }: Benchmark): number {
  return by_task.length < tasks.length ? 0 : Math.min(...by_task.map(({ delivered }) => delivered.n));
}

/** Whether it has a quality result in every task. */
function isComplete({ by_task }: MeasuredModel, { tasks }: Benchmark): boolean {
  return by_task.length >= tasks.length && by_task.every(({ quality }) => quality.n > 0);
}

/** A model with a known cost, so that it can be compared. */
export interface PricedModel extends MeasuredModel {
  readonly cost_per_run_usd: number;
}

/** The lowest cost per success: a cheap model that has to be run often is not cheap. */
export function findBestValue(benchmark: Benchmark): (PricedModel & { cost_per_success_usd: number }) | undefined {
  return benchmark.models
    .flatMap((model) => {
      const { cost_per_run_usd, cost_per_success_usd } = model;
      if (cost_per_run_usd === null || cost_per_success_usd === null || !isComplete(model, benchmark)) return [];
      return model.quality.passed > 0 ? [{ ...model, cost_per_run_usd, cost_per_success_usd }] : [];
    })
    .toSorted(
      (one, other) => one.cost_per_success_usd - other.cost_per_success_usd || compareNames(one.model, other.model),
    )
    .at(0);
}

function compareNames(one: string, other: string): number {
  return one < other ? -1 : 1;
}

/** A share of runs that passed, with its interval. */
export interface PassRate {
  readonly passed: number;
  readonly n: number;
  readonly rate: number | null;
  readonly interval: readonly [number, number] | null;
}

export interface MeasuredModel {
  readonly model: string;
  readonly runs: number;
  /** Without runs in which the upstream was unavailable. */
  readonly quality: PassRate;
  readonly cost_per_run_usd: number | null;
  readonly cost_per_success_usd: number | null;
  /** `delivered` counts every run of the task. */
  readonly by_task: readonly { readonly task: string; readonly quality: PassRate; readonly delivered: PassRate }[];
}

/** Two models by their quality on the same tasks. */
export interface MeasuredPair {
  readonly a: string;
  readonly b: string;
  /** The better one, where the benchmark decides it. */
  readonly verdict: 'a' | 'b' | 'tie';
  /** Of the pass rate of `a` less that of `b`. */
  readonly interval: readonly [number, number] | null;
}

export interface Benchmark {
  readonly slug: string;
  readonly updated: string;
  readonly page: string;
  readonly data_url: string;
  readonly tasks: readonly unknown[];
  readonly models: readonly MeasuredModel[];
  readonly pairs: readonly MeasuredPair[];
}

/** The benchmark of an app; undefined where there is none. @throws Problem while the store cannot be read */
export type BenchmarkReader = (slug: string) => Promise<Benchmark | undefined>;

/** `unreadable`: whether there is a benchmark is not known now. */
export type Reading = Benchmark | 'none' | 'unreadable';

interface Entry {
  readonly at: number;
  readonly reading: Promise<Reading>;
}

/** Reads benchmarks. Agents read many guides in a row, and a benchmark changes by the hour. */
export class Benchmarks {
  readonly #readBenchmark: BenchmarkReader;
  readonly #keepMs: number;
  readonly #entries = new Map<string, Entry>();

  constructor(readBenchmark: BenchmarkReader, { keepMs = 5_000 }: { readonly keepMs?: number } = {}) {
    this.#readBenchmark = readBenchmark;
    this.#keepMs = keepMs;
  }

  async read(slug: string): Promise<Reading> {
    const now = Date.now();
    const kept = this.#entries.get(slug);
    if (kept !== undefined && now - kept.at < this.#keepMs) return kept.reading;
    const reading = this.#read(slug);
    this.#entries.set(slug, { at: now, reading });
    // A fault is not kept.
    reading.catch(() => this.#entries.delete(slug));
    return reading;
  }

  async #read(slug: string): Promise<Reading> {
    try {
      const benchmark = await this.#readBenchmark(slug);
      return benchmark?.models.some(({ runs }) => runs > 0) === true ? benchmark : 'none';
    } catch (error) {
      if (error instanceof Problem) return 'unreadable';
      throw error;
    }
  }
}
