// Computes from the sums of runs what each model of a benchmark achieved, how the models compare, and a one-line verdict.
import { toDollarNumber } from '../../billing/index.ts';
import type { Summary } from './statements.ts';
import {
  adjustPValues,
  divideCost,
  computeCostOfSuccess,
  type Difference,
  computePairedDifference,
  estimateRunsToDecide,
  type TaskPair,
  computeWilsonInterval,
} from './statistics.ts';
import type { ModelView, PairView, Rate } from './views.ts';

export interface Measurement {
  readonly models: readonly ModelView[];
  readonly pairs: readonly PairView[];
}

export class Measurements {
  /** The last of each app. */
  readonly #kept = new Map<string, { readonly of: string; readonly measurement: Measurement }>();

  getMeasurement(app: string, summaries: readonly Summary[]): Measurement {
    const print = summaries.map(toComparableText).join('\n');
    const kept = this.#kept.get(app);
    if (kept?.of === print) return kept.measurement;
    const measurement = measure(summaries);
    this.#kept.set(app, { of: print, measurement });
    return measurement;
  }
}

/** All that a summary has. */
function toComparableText(summary: Summary): string {
  return JSON.stringify(summary, (_key, value: unknown) => (typeof value === 'bigint' ? String(value) : value));
}

function measure(summaries: readonly Summary[]): Measurement {
  const byModel = Map.groupBy(summaries, ({ model }) => model);
  const models = [...byModel.values()].flatMap((of) => {
    const whole = of.find(({ task }) => task === '');
    const tasks = of.filter(({ task }) => task !== '');
    return whole === undefined ? [] : [toModelView(whole, tasks)];
  });
  return { models, pairs: comparePairs(models) };
}

function toModelView(whole: Summary, tasks: readonly Summary[]): ModelView {
  const { exact, atLeast } = computeCostOfSuccess(whole.cost, { passed: whole.passed, unknown: whole.cost_unknown });
  return {
    model: whole.model,
    runs: whole.runs,
    ...computeMeasures(whole),
    cost_per_success_usd: exact === undefined ? null : toDollarNumber(exact),
    cost_per_success_at_least_usd: atLeast === undefined ? null : toDollarNumber(atLeast),
    cost_unknown: whole.cost_unknown,
    errors: whole.errors,
    by_task: tasks.map((summary) => ({ task: summary.task, ...computeMeasures(summary) })),
  };
}

function computeMeasures(
  summary: Summary,
): Pick<ModelView, 'quality' | 'delivered' | 'cost_per_run_usd' | 'latency_ms'> {
  const { runs, passed, unanswered, cost, cost_unknown: unknown, latency_p50: p50, latency_p95: p95 } = summary;
  const each = divideCost(cost, runs - unknown);
  return {
    quality: toRate(passed, runs - unanswered),
    delivered: toRate(passed, runs),
    cost_per_run_usd: each === undefined ? null : toDollarNumber(each),
    latency_ms: { p50, p95 },
  };
}

export function toRate(passed: number, n: number): Rate {
  const interval = computeWilsonInterval(passed, n);
  return { passed, n, rate: n === 0 ? null : passed / n, interval: interval === undefined ? null : [...interval] };
}

interface Comparison {
  readonly a: string;
  readonly b: string;
  readonly pairs: readonly TaskPair[];
  readonly seen: Difference;
}

/** Every pair of models with a task in common, in the order of the models. */
export function comparePairs(models: readonly ModelView[]): PairView[] {
  const compared = models.flatMap((a, index) => models.slice(index + 1).flatMap((b) => compareModels(a, b)));
  const tested = compared.filter(({ seen }) => seen.spread !== undefined);
  const adjusted = adjustPValues(tested.map(({ seen }) => seen.spread?.p ?? 1));
  const adjustedP = new Map(tested.map((one, index) => [one, adjusted[index] ?? 1]));
  return compared.map((one) => toPairView(one, adjustedP.get(one)));
}

function compareModels(a: ModelView, b: ModelView): Comparison[] {
  const pairs = a.by_task.flatMap(({ task, quality }) => {
    const other = b.by_task.find((entry) => entry.task === task)?.quality;
    return other === undefined || quality.n === 0 || other.n === 0 ? [] : [{ a: quality, b: other }];
  });
  const seen = computePairedDifference(pairs);
  return seen === undefined ? [] : [{ a: a.model, b: b.model, pairs, seen }];
}

function toPairView({ a, b, pairs, seen }: Comparison, adjusted: number | undefined): PairView {
  const verdict = decidePair(seen, adjusted);
  return {
    a,
    b,
    difference: seen.difference,
    interval: seen.spread === undefined ? null : [...seen.spread.interval],
    tasks: seen.tasks,
    adjusted_p: adjusted ?? null,
    verdict,
    runs_to_decide: verdict === 'tie' ? (estimateRunsToDecide(pairs) ?? null) : null,
  };
}

/** Both have to agree: the interval of this pair, and what many pairs leave of its p-value. */
function decidePair({ spread }: Difference, adjusted: number | undefined): PairView['verdict'] {
  if (spread === undefined || adjusted === undefined || adjusted > 0.05) return 'tie';
  if (spread.interval[0] > 0) return 'a';
  return spread.interval[1] < 0 ? 'b' : 'tie';
}

export interface Verdict {
  readonly en: string;
  readonly zh: string;
}

interface Findings {
  readonly models: readonly ModelView[];
  readonly pairs: readonly PairView[];
  /** Registered runs that have not finished. */
  readonly open: number;
}

export function formatVerdict({ models, pairs, open }: Findings): Verdict {
  const ranked = models
    .filter(({ quality }) => quality.n > 0)
    .sort((one, other) => (other.quality.rate ?? 0) - (one.quality.rate ?? 0));
  const [leader, ...others] = ranked;
  if (leader === undefined) return describeNoResult(models, open);
  if (others.length === 0) return describeSingleModel(leader);
  const tied = others.filter(({ model }) => !isBetter(leader.model, model, pairs));
  return tied.length === 0 ? describeWinner(leader, others, pairs) : describeTie(leader, tied, pairs);
}

function describeNoResult(models: readonly ModelView[], open: number): Verdict {
  const runs = models.reduce((sum, { delivered }) => sum + delivered.n, 0);
  if (runs === 0)
    return { en: `No run has finished yet; ${open} are registered.`, zh: `尚无完成的运行，已登记 ${open} 次。` };
  return {
    en: `No model could be judged: in all ${runs} runs the upstream was out or a limit refused the call.`,
    zh: `无法评判任何模型：全部 ${runs} 次运行都因上游中断或额度限制而没有得到回答。`,
  };
}

function describeSingleModel(model: ModelView): Verdict {
  const { quality } = model;
  const [low, high] = quality.interval ?? [0, 1];
  return {
    en: `${describePassRate(model)} of ${quality.n} runs (95 % interval ${formatPercent(low)} to ${formatPercent(high)})${formatCostEn(model)}; no other model was measured.`,
    zh: `${model.model} 在 ${quality.n} 次运行中通过 ${formatPercent(quality.rate)}（95% 区间 ${formatPercent(low)} 至 ${formatPercent(high)}）${formatCostZh(model)}；没有其他模型的数据。`,
  };
}

function describeWinner(leader: ModelView, others: readonly ModelView[], pairs: readonly PairView[]): Verdict {
  const next = others[0] ?? leader;
  const { difference, interval } = findPair(leader.model, next.model, pairs) ?? { difference: 0, interval: [0, 0] };
  const [low = '', high = ''] = interval.map(formatPoints);
  return {
    en: `${describePassRate(leader)} of ${leader.quality.n} runs and wins: ${formatPoints(difference)} points over ${next.model} (95 % interval ${low} to ${high})${formatCostEn(leader)}.`,
    zh: `${leader.model} 胜出：在 ${leader.quality.n} 次运行中通过 ${formatPercent(leader.quality.rate)}，比 ${next.model} 高 ${formatPoints(difference)} 个百分点（95% 区间 ${low} 至 ${high}）${formatCostZh(leader)}。`,
  };
}

function describeTie(leader: ModelView, tied: readonly ModelView[], pairs: readonly PairView[]): Verdict {
  const names = [leader, ...tied].map(({ model, quality }) => `${model} (${formatPercent(quality.rate)})`);
  const needed = tied.map(({ model }) => findPair(leader.model, model, pairs)?.runs ?? null);
  const runs = needed.includes(null) ? undefined : Math.max(...needed.map(Number));
  return {
    en: `Tie between ${joinNames(names, ', ', ' and ')}: ${runs === undefined ? 'the runs so far do not decide, and only more tasks would' : `about ${runs} runs of each task would decide`}.`,
    zh: `平局：${joinNames(names, '、', '与')}；${runs === undefined ? '现有运行无法分出高下，需要更多任务' : `每个任务约需 ${runs} 次运行才能分出高下`}。`,
  };
}

function isBetter(one: string, other: string, pairs: readonly PairView[]): boolean {
  return findPair(one, other, pairs)?.wins === true;
}

/** A pair as seen from one side. */
function findPair(
  one: string,
  other: string,
  pairs: readonly PairView[],
): { difference: number; interval: number[]; wins: boolean; runs: number | null } | undefined {
  const pair = pairs.find(({ a, b }) => (a === one && b === other) || (a === other && b === one));
  if (pair === undefined) return undefined;
  const { difference, interval, verdict, runs_to_decide: runs } = pair;
  const bounds = [...(interval ?? [-1, 1])];
  return pair.a === one
    ? { difference, interval: bounds, wins: verdict === 'a', runs }
    : { difference: -difference, interval: bounds.reverse().map((bound) => -bound), wins: verdict === 'b', runs };
}

const describePassRate = ({ model, quality }: ModelView): string => `${model} passes ${formatPercent(quality.rate)}`;

const formatPercent = (rate: number | null): string => `${Math.round((rate ?? 0) * 100)} %`;

/** Percentage points. Zero has no sign. */
const formatPoints = (difference: number): string => String(Math.round(difference * 100) + 0).replace('-', '−');

function joinNames(names: readonly string[], comma: string, and: string): string {
  return names.length === 1 ? names.join('') : `${names.slice(0, -1).join(comma)}${and}${names.at(-1) ?? ''}`;
}

const dollars = new Intl.NumberFormat('en', { maximumSignificantDigits: 3, useGrouping: false });

function formatCostEn({ cost_per_success_usd: cost }: ModelView): string {
  return cost === null ? '' : `, at $${dollars.format(cost)} a success`;
}

function formatCostZh({ cost_per_success_usd: cost }: ModelView): string {
  return cost === null ? '' : `，每次成功 ${dollars.format(cost)} 美元`;
}
