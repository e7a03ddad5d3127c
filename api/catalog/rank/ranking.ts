// The ranking: values of all criteria from recorded data, and a total by the weights that the caller sent.
import type { Money } from '../../billing/index.ts';
import { type Page, createPage, type SortKey } from '../paging.ts';
import type { Projects } from '../projects/projects.ts';
import type { ProjectRecord } from '../projects/records.ts';
import { criteria, type Criterion, type RankedApp, type Score, type Weights } from './criteria.ts';
import type { Retention, Retentions } from './retention.ts';
import type { Stabilities, Stability } from './stability.ts';
import type { BenchmarkFigures, VisitFigures } from '../bench/bench.ts';
import type { Rate } from '../bench/views.ts';

export type Benchmarks = ReadonlyMap<string, BenchmarkFigures>;

/** What was measured of all apps, by slug; undefined while it cannot be read. */
interface MeasuredData {
  readonly benchmarks: Benchmarks | undefined;
  readonly visits: ReadonlyMap<string, VisitFigures> | undefined;
  readonly cheapest: PricedFigures | undefined;
}

export interface RankingOptions {
  readonly baseUrl: string;
  readonly projects: Pick<Projects, 'listSorted'>;
  readonly retentions: Pick<Retentions, 'getRetention'>;
  readonly stabilities: Pick<Stabilities, 'getStability'>;
  /** Of all apps that have one, by slug. Rejects while they cannot be read. */
  readonly readBenchmarks: () => Promise<Benchmarks>;
  /** First visits of all apps that had one, by slug. Rejects while they cannot be read. */
  readonly readVisits: () => Promise<ReadonlyMap<string, VisitFigures>>;
}

export interface RankQuery {
  readonly weights?: Weights | undefined;
  readonly limit: number;
  readonly cursor?: string | undefined;
}

type Value = Omit<Score, 'formula' | 'detail'> & Partial<Pick<Score, 'detail'>>;

export class Ranking {
  readonly #options: RankingOptions;

  constructor(options: RankingOptions) {
    this.#options = options;
  }

  /** One page, the highest score first; without weights by title. @throws Problem (invalid-request) for a wrong cursor */
  async getPage({ weights, limit, cursor }: RankQuery): Promise<Page<RankedApp>> {
    const measured = await this.#readMeasured();
    const getValue = (id: string, criterion: Criterion): Value => this.#computeValue(id, criterion, measured);
    const sorted = this.#sort(weights, getValue);
    const page = createPage(sorted, ({ key }) => key, {
      limit,
      cursor,
      order: `rank ${JSON.stringify(weights ?? null)}`,
    });
    return { ...page, items: page.items.map(({ record }) => this.#toView(record, weights, getValue)) };
  }

  async #readMeasured(): Promise<MeasuredData> {
    const [benchmarks, visits] = await Promise.all([
      this.#options.readBenchmarks().catch(() => undefined),
      this.#options.readVisits().catch(() => undefined),
    ]);
    return { benchmarks, visits, cheapest: findCheapest(benchmarks ?? new Map()) };
  }

  #sort(
    weights: Weights | undefined,
    valueOf: (id: string, criterion: Criterion) => Value,
  ): readonly { readonly record: ProjectRecord; readonly key: SortKey }[] {
    const byTitle = this.#options.projects.listSorted('name').filter(({ record }) => record.state === 'live');
    if (weights === undefined) return byTitle;
    // Those of one score stay in the order of their titles.
    return byTitle
      .map(({ record, key }) => {
        const { score } = computeScore(weights, (criterion) => valueOf(record.id, criterion));
        const place = score === null ? 1 : -score;
        return { record, place, key: [place, ...key] };
      })
      .sort((a, b) => a.place - b.place);
  }

  #toView(
    { id, slug, title }: ProjectRecord,
    weights: Weights | undefined,
    valueOf: (id: string, criterion: Criterion) => Value,
  ): RankedApp {
    const { baseUrl } = this.#options;
    const score = (criterion: Criterion): Score => ({
      detail: null,
      ...valueOf(id, criterion),
      formula: `${baseUrl}/api/rank/formulas#${criterion}`,
    });
    return {
      slug,
      title,
      ...computeScore(weights, (criterion) => valueOf(id, criterion)),
      scores: {
        onboarding: score('onboarding'),
        quality: score('quality'),
        cost: score('cost'),
        stability: score('stability'),
        retention: score('retention'),
      },
      page: `${baseUrl}/apps/${slug}`,
      machine_readable: `${baseUrl}/api/projects/${slug}`,
    };
  }

  #computeValue(id: string, criterion: Criterion, { benchmarks, visits, cheapest }: MeasuredData): Value {
    switch (criterion) {
      case 'onboarding':
        return visits === undefined
          ? createUnmeasured('First visits cannot be read right now.')
          : scoreOnboarding(visits.get(id));
      case 'stability':
        return fromEstimate(this.#options.stabilities.getStability(id));
      case 'quality':
        return benchmarks === undefined ? createUnmeasured(unread) : scoreQuality(benchmarks.get(id));
      case 'cost':
        return benchmarks === undefined ? createUnmeasured(unread) : scoreCost(benchmarks.get(id), cheapest);
      case 'retention':
        return fromEstimate(this.#options.retentions.getRetention(id));
    }
  }
}

function fromEstimate(result: Retention | Stability): Value {
  if ('reason' in result) return createUnmeasured(result.reason, result.n);
  const { value, interval, n } = result.estimate;
  return { value: round(value), interval: [round(interval[0]), round(interval[1])], n, reason: null };
}

function createUnmeasured(reason: string, n = 0): Value {
  return { value: null, interval: null, n, reason };
}

const unread = 'Benchmarks cannot be read right now.';
const noBenchmark = 'No benchmark of this app has been run here.';

function scoreOnboarding(visits: VisitFigures | undefined): Value {
  if (visits === undefined) return createUnmeasured('No first visit of this app has been made here.');
  const { answered, steps, p50, p95 } = visits;
  const seconds = { p50: p50 === null ? null : p50 / 1_000, p95: p95 === null ? null : p95 / 1_000 };
  return { ...fromRate(answered), detail: { requests: steps, seconds } };
}

function scoreQuality(figures: BenchmarkFigures | undefined): Value {
  if (figures === undefined) return createUnmeasured(noBenchmark);
  const { quality } = figures;
  return quality.rate === null
    ? createUnmeasured('No run of its benchmark could be judged.', quality.n)
    : fromRate(quality);
}

function fromRate({ rate, interval, n }: Rate): Value {
  const [low, high] = interval ?? [];
  return {
    value: rate === null ? null : round(rate),
    interval: low === undefined || high === undefined ? null : [round(low), round(high)],
    n,
    reason: null,
  };
}

function scoreCost(figures: BenchmarkFigures | undefined, cheapest: PricedFigures | undefined): Value {
  if (figures === undefined) return createUnmeasured(noBenchmark);
  const { delivered, cost } = figures;
  if (cost === undefined) return createUnmeasured('The cost of some runs of its benchmark is not known.', delivered.n);
  if (delivered.passed === 0) return createUnmeasured('No run of its benchmark passed.', delivered.n);
  if (cost === 0n || cheapest === undefined)
    return createUnmeasured('The runs of its benchmark cost nothing.', delivered.n);
  // c(cheapest) / c(app) = (cost of the cheapest / its successes) / (cost / successes), in millionths.
  const ratio = (cheapest.cost * BigInt(delivered.passed) * 1_000_000n) / (BigInt(cheapest.delivered.passed) * cost);
  return { value: Number(ratio) / 1_000_000, interval: null, n: delivered.n, reason: null };
}

type PricedFigures = BenchmarkFigures & { readonly cost: Money };

const isPriced = (figures: BenchmarkFigures): figures is PricedFigures =>
  figures.delivered.passed > 0 && figures.cost !== undefined && figures.cost > 0n;

/** The lowest cost per success of all; of those that cost nothing, or not yet known, there is no comparison. */
function findCheapest(benchmarks: Benchmarks): PricedFigures | undefined {
  let best: PricedFigures | undefined;
  for (const figures of benchmarks.values()) {
    if (!isPriced(figures)) continue;
    const isCheaper =
      best === undefined || figures.cost * BigInt(best.delivered.passed) < best.cost * BigInt(figures.delivered.passed);
    if (isCheaper) best = figures;
  }
  return best;
}

/** The total by these weights; null where one of them falls on what is not measured. */
export function computeScore(
  weights: Weights | undefined,
  valueOf: (criterion: Criterion) => Pick<Score, 'value'>,
): { readonly score: number | null; readonly score_reason: string | null } {
  if (weights === undefined) return { score: null, score_reason: 'No weights were sent.' };
  let [total, sum] = [0, 0];
  const missing: Criterion[] = [];
  for (const criterion of criteria) {
    const weight = weights[criterion] ?? 0;
    if (weight === 0) continue;
    const { value } = valueOf(criterion);
    if (value === null) missing.push(criterion);
    total += weight * (value ?? 0);
    sum += weight;
  }
  return missing.length > 0
    ? { score: null, score_reason: `Not measured for this app: ${missing.join(', ')}.` }
    : { score: round(total / sum), score_reason: null };
}

/** Six decimal places: more than any of it is exact to. */
function round(value: number): number {
  return Math.round(value * 1_000_000) / 1_000_000;
}
