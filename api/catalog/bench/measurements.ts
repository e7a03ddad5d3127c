// Computes from the sums of runs what each model of a benchmark achieved, how the models compare, and a one-line verdict.
import { moneyToNumber } from '../../billing/index.ts';
import type { Summary } from './statements.ts';
import {
  benjaminiHochberg,
  costEach,
  costOfSuccess,
  type Difference,
  pairedDifference,
  runsToDecide,
  type TaskPair,
  wilsonInterval,
} from './statistics.ts';
import type { ModelView, PairView, Rate } from './views.ts';

export interface Measurement {
  readonly models: readonly ModelView[];
  readonly pairs: readonly PairView[];
}

export class Measurements {
  /** The last of each app. */
  readonly #kept = new Map<string, { readonly of: string; readonly measurement: Measurement }>();

  of(app: string, summaries: readonly Summary[]): Measurement {
    const print = summaries.map(printOf).join('\n');
    const kept = this.#kept.get(app);
    if (kept?.of === print) return kept.measurement;
    const measurement = measure(summaries);
    this.#kept.set(app, { of: print, measurement });
    return measurement;
  }
}

/** All that a summary has. */
function printOf(summary: Summary): string {
  return JSON.stringify(summary, (_key, value: unknown) => (typeof value === 'bigint' ? String(value) : value));
}

function measure(summaries: readonly Summary[]): Measurement {
  const byModel = Map.groupBy(summaries, ({ model }) => model);
  const models = [...byModel.values()].flatMap((of) => {
    const whole = of.find(({ task }) => task === '');
    const tasks = of.filter(({ task }) => task !== '');
    return whole === undefined ? [] : [modelView(whole, tasks)];
  });
  return { models, pairs: comparePairs(models) };
}

function modelView(whole: Summary, tasks: readonly Summary[]): ModelView {
  const { exact, atLeast } = costOfSuccess(whole.cost, { passed: whole.passed, unknown: whole.cost_unknown });
  return {
    model: whole.model,
    runs: whole.runs,
    ...measures(whole),
    cost_per_success_usd: exact === undefined ? null : moneyToNumber(exact),
    cost_per_success_at_least_usd: atLeast === undefined ? null : moneyToNumber(atLeast),
    cost_unknown: whole.cost_unknown,
    errors: whole.errors,
    by_task: tasks.map((summary) => ({ task: summary.task, ...measures(summary) })),
  };
}

function measures(summary: Summary): Pick<ModelView, 'quality' | 'delivered' | 'cost_per_run_usd' | 'latency_ms'> {
  const { runs, passed, unanswered, cost, cost_unknown: unknown, latency_p50: p50, latency_p95: p95 } = summary;
  const each = costEach(cost, runs - unknown);
  return {
    quality: rateOf(passed, runs - unanswered),
    delivered: rateOf(passed, runs),
    cost_per_run_usd: each === undefined ? null : moneyToNumber(each),
    latency_ms: { p50, p95 },
  };
}

export function rateOf(passed: number, n: number): Rate {
  const interval = wilsonInterval(passed, n);
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
  const compared = models.flatMap((a, index) => models.slice(index + 1).flatMap((b) => compare(a, b)));
  const tested = compared.filter(({ seen }) => seen.spread !== undefined);
  const adjusted = benjaminiHochberg(tested.map(({ seen }) => seen.spread?.p ?? 1));
  const adjustedP = new Map(tested.map((one, index) => [one, adjusted[index] ?? 1]));
  return compared.map((one) => pairView(one, adjustedP.get(one)));
}

function compare(a: ModelView, b: ModelView): Comparison[] {
  const pairs = a.by_task.flatMap(({ task, quality }) => {
    const other = b.by_task.find((entry) => entry.task === task)?.quality;
    return other === undefined || quality.n === 0 || other.n === 0 ? [] : [{ a: quality, b: other }];
  });
  const seen = pairedDifference(pairs);
  return seen === undefined ? [] : [{ a: a.model, b: b.model, pairs, seen }];
}

function pairView({ a, b, pairs, seen }: Comparison, adjusted: number | undefined): PairView {
  const verdict = decidePair(seen, adjusted);
  return {
    a,
    b,
    difference: seen.difference,
    interval: seen.spread === undefined ? null : [...seen.spread.interval],
    tasks: seen.tasks,
    adjusted_p: adjusted ?? null,
    verdict,
    runs_to_decide: verdict === 'tie' ? (runsToDecide(pairs) ?? null) : null,
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

export function verdictOf({ models, pairs, open }: Findings): Verdict {
  const ranked = models
    .filter(({ quality }) => quality.n > 0)
    .sort((one, other) => (other.quality.rate ?? 0) - (one.quality.rate ?? 0));
  const [leader, ...others] = ranked;
  if (leader === undefined) return nothingYet(models, open);
  if (others.length === 0) return onlyOne(leader);
  const tied = others.filter(({ model }) => !beats(leader.model, model, pairs));
  return tied.length === 0 ? winner(leader, others, pairs) : tie(leader, tied, pairs);
}

function nothingYet(models: readonly ModelView[], open: number): Verdict {
  const runs = models.reduce((sum, { delivered }) => sum + delivered.n, 0);
  if (runs === 0)
    return { en: `No run has finished yet; ${open} are registered.`, zh: `尚无完成的运行，已登记 ${open} 次。` };
  return {
    en: `No model could be judged: in all ${runs} runs the upstream was out or a limit refused the call.`,
    zh: `无法评判任何模型：全部 ${runs} 次运行都因上游中断或额度限制而没有得到回答。`,
  };
}

function onlyOne(model: ModelView): Verdict {
  const { quality } = model;
  const [low, high] = quality.interval ?? [0, 1];
  return {
    en: `${named(model)} of ${quality.n} runs (95 % interval ${percent(low)} to ${percent(high)})${costEn(model)}; no other model was measured.`,
    zh: `${model.model} 在 ${quality.n} 次运行中通过 ${percent(quality.rate)}（95% 区间 ${percent(low)} 至 ${percent(high)}）${costZh(model)}；没有其他模型的数据。`,
  };
}

function winner(leader: ModelView, others: readonly ModelView[], pairs: readonly PairView[]): Verdict {
  const next = others[0] ?? leader;
  const { difference, interval } = between(leader.model, next.model, pairs) ?? { difference: 0, interval: [0, 0] };
  const [low = '', high = ''] = interval.map(points);
  return {
    en: `${named(leader)} of ${leader.quality.n} runs and wins: ${points(difference)} points over ${next.model} (95 % interval ${low} to ${high})${costEn(leader)}.`,
    zh: `${leader.model} 胜出：在 ${leader.quality.n} 次运行中通过 ${percent(leader.quality.rate)}，比 ${next.model} 高 ${points(difference)} 个百分点（95% 区间 ${low} 至 ${high}）${costZh(leader)}。`,
  };
}

function tie(leader: ModelView, tied: readonly ModelView[], pairs: readonly PairView[]): Verdict {
  const names = [leader, ...tied].map(({ model, quality }) => `${model} (${percent(quality.rate)})`);
  const needed = tied.map(({ model }) => between(leader.model, model, pairs)?.runs ?? null);
  const runs = needed.includes(null) ? undefined : Math.max(...needed.map(Number));
  return {
    en: `Tie between ${listed(names, ', ', ' and ')}: ${runs === undefined ? 'the runs so far do not decide, and only more tasks would' : `about ${runs} runs of each task would decide`}.`,
    zh: `平局：${listed(names, '、', '与')}；${runs === undefined ? '现有运行无法分出高下，需要更多任务' : `每个任务约需 ${runs} 次运行才能分出高下`}。`,
  };
}

function beats(one: string, other: string, pairs: readonly PairView[]): boolean {
  return between(one, other, pairs)?.wins === true;
}

/** A pair as seen from one side. */
function between(
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

const named = ({ model, quality }: ModelView): string => `${model} passes ${percent(quality.rate)}`;

const percent = (rate: number | null): string => `${Math.round((rate ?? 0) * 100)} %`;

/** Percentage points. Zero has no sign. */
const points = (difference: number): string => String(Math.round(difference * 100) + 0).replace('-', '−');

function listed(names: readonly string[], comma: string, and: string): string {
  return names.length === 1 ? names.join('') : `${names.slice(0, -1).join(comma)}${and}${names.at(-1) ?? ''}`;
}

const dollars = new Intl.NumberFormat('en', { maximumSignificantDigits: 3, useGrouping: false });

function costEn({ cost_per_success_usd: cost }: ModelView): string {
  return cost === null ? '' : `, at $${dollars.format(cost)} a success`;
}

function costZh({ cost_per_success_usd: cost }: ModelView): string {
  return cost === null ? '' : `，每次成功 ${dollars.format(cost)} 美元`;
}
