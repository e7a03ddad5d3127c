// What guides read of a benchmark, and how: a narrow view of its detail, read at most once in a few seconds.
import { Problem } from '../../../lib/problem.ts';

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
export type BenchmarkOf = (slug: string) => Promise<Benchmark | undefined>;

/** `unreadable`: whether there is a benchmark is not known now. */
export type Reading = Benchmark | 'none' | 'unreadable';

interface Entry {
  readonly at: number;
  readonly reading: Promise<Reading>;
}

/** Reads benchmarks. Agents read many guides in a row, and a benchmark changes by the hour. */
export class Benchmarks {
  readonly #benchmarkOf: BenchmarkOf;
  readonly #keepMs: number;
  readonly #entries = new Map<string, Entry>();

  constructor(benchmarkOf: BenchmarkOf, { keepMs = 5_000 }: { readonly keepMs?: number } = {}) {
    this.#benchmarkOf = benchmarkOf;
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
      const benchmark = await this.#benchmarkOf(slug);
      return benchmark?.models.some(({ runs }) => runs > 0) === true ? benchmark : 'none';
    } catch (error) {
      if (error instanceof Problem) return 'unreadable';
      throw error;
    }
  }
}
