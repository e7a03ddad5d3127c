// What the other rooms use of benchmarks: their endpoints, and the same views as functions.
import type { LedgerHandle } from '../../billing/index.ts';
import type { Endpoint } from '../../http/index.ts';
import { type BenchmarkSource, readBenchmark, readBenchmarks, readEntry } from './benchmark.ts';
import { benchEndpoints } from './endpoints.ts';
import { type BenchmarkFigures, readFigures, readVisitFigures, type VisitFigures } from './figures.ts';
import { Measurements } from './measurements.ts';
import * as statements from './store/statements.ts';
import { loadBenchmarks } from './tasks/load.ts';
import type { BenchmarkDetail, BenchmarkEntry } from './views.ts';

export type { BenchmarkFigures, VisitFigures } from './figures.ts';
export { type Interval, wilsonInterval } from './statistics/index.ts';
export { visitDays, visitLimitMs } from './store/visits.ts';
export { type BenchmarkDetail, benchmarkDetail, type BenchmarkEntry, benchmarkEntry, type Rate } from './views.ts';

export interface Bench {
  readonly endpoints: readonly Endpoint[];
  /** The benchmark of an app; undefined where none was ever registered. @throws Problem while there is no database */
  benchmarkOf(slug: string): Promise<BenchmarkDetail | undefined>;
  /** Its entry in the index. @throws Problem while there is no database */
  entryOf(slug: string): Promise<BenchmarkEntry | undefined>;
  /** What each adds up to, by slug. @throws Problem while there is no database */
  benchmarkFigures(): Promise<Map<string, BenchmarkFigures>>;
  /** What first visits of each app add up to, by slug. @throws Problem while there is no database */
  visitFigures(): Promise<Map<string, VisitFigures>>;
  /** All benchmarks, each with its verdict. @throws Problem while there is no database */
  benchmarkIndex(): Promise<BenchmarkEntry[]>;
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
    endpoints: benchEndpoints(source),
    benchmarkOf: (slug) => readBenchmark(source, slug),
    entryOf: (slug) => readEntry(source, slug),
    benchmarkFigures: () => readFigures(source),
    visitFigures: () => readVisitFigures(source),
    benchmarkIndex: () => readBenchmarks(source),
  };
}
