// One line on a benchmark, made from its data, in English and in Chinese. It names a winner only where the data do.
import type { ModelView, PairView } from './views.ts';

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
