// Starts benchmarks: their endpoints, and the same data as functions for the ranking, guides and pages.
import { type LedgerHandle, type Money, sumMoney } from '../../billing/index.ts';
import type { Endpoint } from '../../http/index.ts';
import { type BenchmarkSource, readBenchmark, readBenchmarks, readEntry } from './benchmark.ts';
import { createBenchEndpoints } from './endpoints.ts';
import { Measurements, toRate } from './measurements.ts';
import * as statements from './statements.ts';
import { readIndex, readVisits, type Visits } from './store.ts';
import { loadBenchmarks } from './tasks/task.ts';
import type { BenchmarkDetail, BenchmarkEntry, Rate } from './views.ts';

export interface Bench {
  readonly endpoints: readonly Endpoint[];
  /** The benchmark of an app; undefined where none was ever registered. @throws Problem while there is no database */
  readBenchmark(slug: string): Promise<BenchmarkDetail | undefined>;
  /** Its entry in the index. @throws Problem while there is no database */
  readEntry(slug: string): Promise<BenchmarkEntry | undefined>;
  /** What each adds up to, by slug. @throws Problem while there is no database */
  readFigures(): Promise<Map<string, BenchmarkFigures>>;
  /** What first visits of each app add up to, by slug. @throws Problem while there is no database */
  readVisitFigures(): Promise<Map<string, VisitFigures>>;
  /** All benchmarks, each with its verdict. @throws Problem while there is no database */
  listBenchmarks(): Promise<BenchmarkEntry[]>;
}

export interface BenchOptions {
  readonly baseUrl: string;
  readonly ledger: LedgerHandle;
  /** Folder of the tasks; default manifests/bench. */
  readonly folder?: string;
}

export function startBench({ baseUrl, ledger, folder }: BenchOptions): Bench {
  const source: BenchmarkSource = {
    baseUrl,
    database: () => ledger.get().database,
    manifests: loadBenchmarks(folder),
    measurements: new Measurements(),
  };
  // Routers report some costs later than their answers.
  void ledger.opened.then((opened) => {
    opened?.repeat('settle costs of benchmark runs', 30_000, async () => {
      const [row] = await opened.database.query(statements.settleCosts, [500]);
      return row?.count ?? 0;
    });
  });
  return {
    endpoints: createBenchEndpoints(source),
    readBenchmark: (slug) => readBenchmark(source, slug),
    readEntry: (slug) => readEntry(source, slug),
    readFigures: () => readFigures(source),
    readVisitFigures: () => readVisitFigures(source),
    listBenchmarks: () => readBenchmarks(source),
  };
}

export interface BenchmarkFigures {
  /** Without runs that failed because an upstream was unavailable. */
  readonly quality: Rate;
  /** With them. */
  readonly delivered: Rate;
  /** What all runs cost; undefined while that of some is not known. */
  readonly cost: Money | undefined;
}

/** First visits of an app: how many got a useful answer in time, in how many requests and milliseconds. */
export interface VisitFigures extends Pick<Visits, 'steps' | 'p50' | 'p95'> {
  readonly answered: Rate;
}

/** By the slug of the app, of those that were visited. @throws Problem while there is no database */
export async function readVisitFigures({
  database,
}: Pick<BenchmarkSource, 'database'>): Promise<Map<string, VisitFigures>> {
  const visits = await readVisits(database());
  return new Map(visits.map(({ app, n, answered, ...times }) => [app, { ...times, answered: toRate(answered, n) }]));
}

/** By the slug of the app, of those that have finished runs. @throws Problem while there is no database */
export async function readFigures({
  database,
}: Pick<BenchmarkSource, 'database'>): Promise<Map<string, BenchmarkFigures>> {
  const campaigns = await readIndex(database());
  return new Map(
    campaigns.flatMap(({ campaign, summaries }) => {
      // Those of single tasks are parts of these.
      const whole = summaries.filter(({ task }) => task === '');
      const all = { runs: 0, passed: 0, unanswered: 0, unknown: 0 };
      for (const summary of whole) {
        all.runs += summary.runs;
        all.passed += summary.passed;
        all.unanswered += summary.unanswered;
        all.unknown += summary.cost_unknown;
      }
      if (all.runs === 0) return [];
      const figures: BenchmarkFigures = {
        quality: toRate(all.passed, all.runs - all.unanswered),
        delivered: toRate(all.passed, all.runs),
        cost: all.unknown > 0 ? undefined : sumMoney(whole.map(({ cost }) => cost)),
      };
      return [[campaign.app, figures] as const];
    }),
  );
}
