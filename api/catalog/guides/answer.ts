// Creates the answer of a guide: its text, and whether benchmarks support, contradict or do not decide its claims.
import { type Benchmark, findBestValue, type MeasuredModel, type PassRate, type Reading } from './evidence.ts';
import type { Claim, SourceGuide } from './source.ts';

/** A claim with what the benchmark of each app says of it. */
export interface CheckedClaim {
  readonly kind: Claim['kind'];
  readonly says: string;
  readonly says_zh: string;
  readonly checks: readonly (ClaimCheck & { readonly app: string })[];
}

export interface Answer {
  readonly answer: string;
  readonly answer_zh: string;
  readonly claims: readonly CheckedClaim[];
}

type Readings = ReadonlyMap<string, Reading>;

/** `readings`: of every app in the evidence of the guide. */
export function createAnswer(guide: Pick<SourceGuide, 'answer' | 'answer_zh' | 'claims'>, readings: Readings): Answer {
  const claims = guide.claims.map((claim) => toCheckedClaim(claim, readings));
  const sentences = [...claims.flatMap(formatClaim), ...describeMissing(readings)];
  return {
    answer: [guide.answer, ...sentences.map(({ en }) => en)].join(' '),
    answer_zh: [guide.answer_zh, ...sentences.map(({ zh }) => zh)].join(''),
    claims,
  };
}

function toCheckedClaim(claim: Claim, readings: Readings): CheckedClaim {
  const { kind, says, says_zh } = claim;
  const checks = [...readings].flatMap(([app, reading]) =>
    typeof reading === 'string' ? [] : [{ app, ...checkClaim(claim, reading) }],
  );
  return { kind, says, says_zh, checks };
}

interface Sentence {
  readonly en: string;
  readonly zh: string;
}

/** How each verdict is said; a claim that is supported stands by itself. */
const frames: Readonly<Record<Verdict, (claim: CheckedClaim) => Sentence>> = {
  supported: ({ says, says_zh }) => ({ en: says, zh: says_zh }),
  contradicted: ({ says, says_zh }) => ({
    en: `The measurements do not support "${says}"`,
    zh: `现有测量不支持“${says_zh}”`,
  }),
  undecided: ({ says, says_zh }) => ({
    en: `The measurements do not decide yet whether "${says}"`,
    zh: `现有测量还不能判断“${says_zh}”是否成立`,
  }),
};

function formatClaim(claim: CheckedClaim): Sentence[] {
  return (['supported', 'contradicted', 'undecided'] as const).flatMap((verdict) => {
    const apps = claim.checks.filter((check) => check.verdict === verdict);
    if (apps.length === 0) return [];
    const { en, zh } = frames[verdict](claim);
    return [
      {
        en: `${en}: ${apps.map(({ app, en: figures }) => `${app}, ${figures}`).join('; ')}.`,
        zh: `${zh}：${apps.map(({ app, zh: figures }) => `${app}，${figures}`).join('；')}。`,
      },
    ];
  });
}

/** What the evidence does not say. */
function describeMissing(readings: Readings): Sentence[] {
  const listSlugs = (kind: Reading): string[] =>
    [...readings].flatMap(([slug, reading]) => (reading === kind ? [slug] : []));
  const [none, unreadable] = [listSlugs('none'), listSlugs('unreadable')];
  return [
    ...(none.length === 0 ? [] : [describeUnmeasured(none, readings.size)]),
    ...(unreadable.length === 0
      ? []
      : [
          {
            en: `The measurements of ${unreadable.join(', ')} cannot be read right now.`,
            zh: `目前无法读取 ${unreadable.join('、')} 的测量结果。`,
          },
        ]),
  ];
}

function describeUnmeasured(slugs: readonly string[], all: number): Sentence {
  if (slugs.length < all)
    return { en: `Not measured here yet: ${slugs.join(', ')}.`, zh: `本站尚未测量：${slugs.join('、')}。` };
  return {
    en: `Nothing has been measured here yet for ${slugs.join(', ')}, so this answer names no winner.`,
    zh: `本站尚未对 ${slugs.join('、')} 做过任何测量，因此这里不评出优胜者。`,
  };
}

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
  const best = findBestValue(benchmark);
  if (best === undefined) return { verdict: 'undecided', ...noPassFigures };
  const figures = formatFigures(best);
  if (named === undefined || named === best.model) return { verdict: 'supported', ...figures };
  // A model that nobody measured may still be it.
  const measured = benchmark.models.some(({ model, quality }) => model === named && quality.n > 0);
  return { verdict: measured ? 'contradicted' : 'undecided', ...figures };
}

/** The dearest model against each that costs less. */
function checkCheaper({ margin }: Extract<Claim, { kind: 'cheaper-as-good' }>, benchmark: Benchmark): ClaimCheck {
  const [dearest, ...others] = benchmark.models
    .filter(({ quality, cost_per_run_usd: cost }) => quality.n > 0 && cost !== null)
    .toSorted((one, other) => readCost(other) - readCost(one));
  const cheaper = others.filter((model) => dearest !== undefined && readCost(model) < readCost(dearest)).toReversed();
  if (dearest === undefined || cheaper.length === 0) return { verdict: 'undecided', ...tooFewFigures };
  const compared = cheaper.map((model) => ({ model, ...computeGap(benchmark, model.model, dearest.model) }));
  // The cheapest first, so this is the cheapest that is good enough.
  const asGood = compared.find(({ low }) => low !== undefined && low >= -margin);
  if (asGood !== undefined) return { verdict: 'supported', ...formatComparison(asGood.model, dearest) };
  const contradicted = compared.every(({ worse }) => worse);
  return { verdict: contradicted ? 'contradicted' : 'undecided', ...formatComparison(findHighest(cheaper), dearest) };
}

function checkReliable({ at_least }: Extract<Claim, { kind: 'reliable' }>, benchmark: Benchmark): ClaimCheck {
  const measured = benchmark.models.flatMap((model) => {
    const { interval } = model.quality;
    return interval === null ? [] : [{ model, low: interval[0], high: interval[1] }];
  });
  const [first] = measured.toSorted((one, other) => other.low - one.low);
  if (first === undefined) return { verdict: 'undecided', ...tooFewFigures };
  if (first.low >= at_least) return { verdict: 'supported', ...formatFigures(first.model) };
  const none = measured.every(({ high }) => high < at_least);
  return { verdict: none ? 'contradicted' : 'undecided', ...formatFigures(first.model) };
}

interface Gap {
  /** Lower end of the interval of the pass rate of one model less that of the other; undefined where it is not known. */
  readonly low: number | undefined;
  /** Whether the benchmark decides that the one is worse. */
  readonly worse: boolean;
}

function computeGap({ pairs }: Benchmark, one: string, other: string): Gap {
  const pair = pairs.find(({ a, b }) => (a === one && b === other) || (a === other && b === one));
  if (pair === undefined) return { low: undefined, worse: false };
  const first = pair.a === one;
  const { interval, verdict } = pair;
  return {
    low: interval === null ? undefined : first ? interval[0] : -interval[1],
    worse: verdict === (first ? 'b' : 'a'),
  };
}

function findHighest(models: readonly MeasuredModel[]): MeasuredModel {
  return models.reduce((best, model) => ((model.quality.rate ?? 0) > (best.quality.rate ?? 0) ? model : best));
}

function readCost({ cost_per_run_usd }: MeasuredModel): number {
  return cost_per_run_usd ?? 0;
}

const noPassFigures: Figures = {
  en: 'no model with a result for every task has passed a run',
  zh: '还没有对全部任务都有结果的模型通过任何一次运行',
};
const tooFewFigures: Figures = { en: 'too few models have results', zh: '有结果的模型太少' };

/** Like `alpha-v4-flash (14 of 15 runs passed, $0.0021 per run)`. */
function formatFigures({ model, quality, cost_per_run_usd: cost }: MeasuredModel): Figures {
  return {
    en: `${model} (${formatPassed(quality)}${cost === null ? '' : `, ${formatDollars(cost)} per run`})`,
    zh: `${model}（${quality.n} 次运行通过 ${quality.passed} 次${cost === null ? '' : `，每次运行 ${formatDollars(cost)}`}）`,
  };
}

function formatComparison(one: MeasuredModel, other: MeasuredModel): Figures {
  const [first, second] = [formatFigures(one), formatFigures(other)];
  return { en: `${first.en} against ${second.en}`, zh: `${first.zh}对比${second.zh}` };
}

function formatPassed({ passed: count, n }: PassRate): string {
  return `${count} of ${n} runs passed`;
}

const amount = new Intl.NumberFormat('en', { maximumSignificantDigits: 3, useGrouping: false });

function formatDollars(usd: number): string {
  return `$${amount.format(usd)}`;
}
