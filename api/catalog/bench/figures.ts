// What the benchmark of each app adds up to over all models, and its first visits, for the ranking.
import { type Money, sumMoney } from '../../billing/index.ts';
import type { BenchmarkSource } from './benchmark.ts';
import { rateOf } from './measurements.ts';
import { readIndex } from './store/reading.ts';
import { readVisits, type Visits } from './store/visits.ts';
import type { Rate } from './views.ts';

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
  const found = await readVisits(database());
  return new Map(found.map(({ app, n, answered, ...times }) => [app, { ...times, answered: rateOf(answered, n) }]));
}

/** By the slug of the app, of those that have finished runs. @throws Problem while there is no database */
export async function readFigures({
  database,
}: Pick<BenchmarkSource, 'database'>): Promise<Map<string, BenchmarkFigures>> {
  const found = await readIndex(database());
  return new Map(
    found.flatMap(({ campaign, summaries }) => {
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
        quality: rateOf(all.passed, all.runs - all.unanswered),
        delivered: rateOf(all.passed, all.runs),
        cost: all.unknown > 0 ? undefined : sumMoney(whole.map(({ cost }) => cost)),
      };
      return [[campaign.app, figures] as const];
    }),
  );
}
