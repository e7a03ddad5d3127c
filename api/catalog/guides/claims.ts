// Decides whether a benchmark supports what a guide claims. Nothing is decided that the intervals do not decide.
import type { Benchmark, MeasuredModel, PassRate } from './benchmark.ts';
import { bestValue } from './evidence.ts';
import type { Claim } from './source.ts';

export type Verdict = 'supported' | 'contradicted' | 'undecided';

/** Figures of a verdict, in both languages; empty where there are none. */
export interface Figures {
  readonly en: string;
  readonly zh: string;
}

export interface ClaimCheck extends Figures {
  readonly verdict: Verdict;
}

export function checkClaim(claim: Claim, benchmark: Benchmark): ClaimCheck {
  switch (claim.kind) {
    case 'best-value':
      return checkBestValue(claim, benchmark);
    case 'cheaper-as-good':
      return checkCheaper(claim, benchmark);
    case 'reliable':
      return checkReliable(claim, benchmark);
  }
}

function checkBestValue({ model: named }: Extract<Claim, { kind: 'best-value' }>, benchmark: Benchmark): ClaimCheck {
  const best = bestValue(benchmark);
  if (best === undefined) return { verdict: 'undecided', ...noPass };
  const figures = figuresOf(best);
  if (named === undefined || named === best.model) return { verdict: 'supported', ...figures };
  // A model that nobody measured may still be it.
  const measured = benchmark.models.some(({ model, quality }) => model === named && quality.n > 0);
  return { verdict: measured ? 'contradicted' : 'undecided', ...figures };
}

/** The dearest model against each that costs less. */
function checkCheaper({ margin }: Extract<Claim, { kind: 'cheaper-as-good' }>, benchmark: Benchmark): ClaimCheck {
  const [dearest, ...others] = benchmark.models
    .filter(({ quality, cost_per_run_usd: cost }) => quality.n > 0 && cost !== null)
    .toSorted((one, other) => costOf(other) - costOf(one));
  const cheaper = others.filter((model) => dearest !== undefined && costOf(model) < costOf(dearest)).toReversed();
  if (dearest === undefined || cheaper.length === 0) return { verdict: 'undecided', ...tooFew };
  const compared = cheaper.map((model) => ({ model, ...gapBetween(benchmark, model.model, dearest.model) }));
  // The cheapest first, so this is the cheapest that is good enough.
  const asGood = compared.find(({ low }) => low !== undefined && low >= -margin);
  if (asGood !== undefined) return { verdict: 'supported', ...versus(asGood.model, dearest) };
  const contradicted = compared.every(({ worse }) => worse);
  return { verdict: contradicted ? 'contradicted' : 'undecided', ...versus(highest(cheaper), dearest) };
}

function checkReliable({ at_least }: Extract<Claim, { kind: 'reliable' }>, benchmark: Benchmark): ClaimCheck {
  const measured = benchmark.models.flatMap((model) => {
    const { interval } = model.quality;
    return interval === null ? [] : [{ model, low: interval[0], high: interval[1] }];
  });
  const [first] = measured.toSorted((one, other) => other.low - one.low);
  if (first === undefined) return { verdict: 'undecided', ...tooFew };
  if (first.low >= at_least) return { verdict: 'supported', ...figuresOf(first.model) };
  const none = measured.every(({ high }) => high < at_least);
  return { verdict: none ? 'contradicted' : 'undecided', ...figuresOf(first.model) };
}

interface Gap {
  /** Lower end of the interval of the pass rate of one model less that of the other; undefined where it is not known. */
  readonly low: number | undefined;
  /** Whether the benchmark decides that the one is worse. */
  readonly worse: boolean;
}

function gapBetween({ pairs }: Benchmark, one: string, other: string): Gap {
  const pair = pairs.find(({ a, b }) => (a === one && b === other) || (a === other && b === one));
  if (pair === undefined) return { low: undefined, worse: false };
  const first = pair.a === one;
  const { interval, verdict } = pair;
  return {
    low: interval === null ? undefined : first ? interval[0] : -interval[1],
    worse: verdict === (first ? 'b' : 'a'),
  };
}

function highest(models: readonly MeasuredModel[]): MeasuredModel {
  return models.reduce((best, model) => ((model.quality.rate ?? 0) > (best.quality.rate ?? 0) ? model : best));
}

function costOf({ cost_per_run_usd }: MeasuredModel): number {
  return cost_per_run_usd ?? 0;
}

const noPass: Figures = {
  en: 'no model with a result for every task has passed a run',
  zh: '还没有对全部任务都有结果的模型通过任何一次运行',
};
const tooFew: Figures = { en: 'too few models have results', zh: '有结果的模型太少' };

/** Like `alpha-v4-flash (14 of 15 runs passed, $0.0021 per run)`. */
function figuresOf({ model, quality, cost_per_run_usd: cost }: MeasuredModel): Figures {
  return {
    en: `${model} (${passed(quality)}${cost === null ? '' : `, ${dollars(cost)} per run`})`,
    zh: `${model}（${quality.n} 次运行通过 ${quality.passed} 次${cost === null ? '' : `，每次运行 ${dollars(cost)}`}）`,
  };
}

function versus(one: MeasuredModel, other: MeasuredModel): Figures {
  const [first, second] = [figuresOf(one), figuresOf(other)];
  return { en: `${first.en} against ${second.en}`, zh: `${first.zh}对比${second.zh}` };
}

function passed({ passed: count, n }: PassRate): string {
  return `${count} of ${n} runs passed`;
}

const amount = new Intl.NumberFormat('en', { maximumSignificantDigits: 3, useGrouping: false });

function dollars(usd: number): string {
  return `$${amount.format(usd)}`;
}
