// A comparison: one prompt to several models in parallel, for POST /api/compare and the tool compare_models.
import { z } from 'zod';
import { Problem, type ProblemType } from '../../lib/problem.ts';
import {
  callsInFlight,
  callsStopped,
  chargedText,
  ledgerUnavailable,
  type Money,
  toDollarNumber,
  negate,
  type Payer,
  type Quota,
  quotaExhausted,
  computeRemaining,
  type Spend,
  sumMoney,
} from '../billing/index.ts';
import type { Catalog, Model } from './catalog.ts';
import type { ModelServices } from './endpoints.ts';
import {
  getAnswerOrThrow,
  type ModelCall,
  type ModelCallResult,
  type Settlement,
  toMeasurement,
} from './metered-router.ts';
import { allowModels } from './payers.ts';
import { keyRefused } from './problems.ts';

/** Maximum number of models in one comparison. */
export const maxModels = 5;

const comparedModel = z.object({
  model: z.string().describe('Model identifier'),
  answer: z.string().describe("The model's answer; empty when it failed"),
  cost_usd: z
    .number()
    .optional()
    .describe('Metered cost in USD, as billed by the router. Absent while cost_source is pending'),
  charged_usd: z.number().describe(chargedText),
  cost_source: z
    .enum(['billed', 'router_computed', 'router_record', 'pending', 'none'])
    .describe('Source of the cost; pending: the router has not reported it yet; none: nothing was billed'),
  latency_ms: z.int().describe('Latency in milliseconds'),
  tokens_in: z.int().optional().describe('Prompt tokens, as counted by the router'),
  tokens_out: z.int().optional().describe('Completion tokens, as counted by the router'),
  error: z.string().optional().describe('Error message, if the model failed'),
});
export type ComparedModel = z.output<typeof comparedModel>;

/** What a comparison answers, wherever it is asked for. */
export const comparisonResult = z.object({
  results: z.array(comparedModel).describe('One entry per model, in the order requested'),
  summary: z
    .object({
      cheapest: z.string().describe('Model identifier of the cheapest model that answered'),
      fastest: z.string().describe('Model identifier of the fastest model that answered'),
      total_cost_usd: z.number().describe('Total metered cost'),
      total_charged_usd: z.number().describe('Total of charged_usd'),
      cost_spread: z.string().describe('Text of the form "<ratio>x between cheapest and priciest"'),
      pending: z
        .array(z.string())
        .optional()
        .describe('Models whose cost is not known yet, and not included in the total'),
    })
    .nullable()
    .describe('Aggregate; null if no model answered at a known cost, so that none is the cheapest'),
});

export interface Comparison {
  readonly result: z.output<typeof comparisonResult>;
  /** How each call that was made was settled, in no order. */
  readonly settlements: readonly Settlement[];
  /** The quota after all of them. */
  readonly quota: Quota | undefined;
}

/** The models that were named, or a spread of those that this caller may ask. @throws Problem (key-required) */
export function chooseModels(named: readonly string[] | undefined, payer: Payer, catalog: Catalog): Model[] {
  const models =
    named !== undefined && named.length > 0
      ? named.flatMap((id) => catalog.byId.get(id) ?? [])
      : pickSpread(catalog.models.filter(({ tier }) => tier === 'free' || payer.kind === 'key'));
  allowModels(models, payer, catalog);
  return models;
}

type Services = Pick<ModelServices, 'router' | 'keys'>;

/**
 * Reserves what all of these calls can cost, then makes them at the same time. A model that fails has its error in its entry.
 * @throws Problem before anything is spent (quota-exhausted, ledger-unavailable), and when no model could even be asked, or
 * every one refused the caller's key
 */
export async function compareModels(services: Services, calls: readonly ModelCall[]): Promise<Comparison> {
  const parts = await reserveParts(services, calls);
  return createComparison(await Promise.all(parts.map((part) => askPart(services, part))));
}

/**
 * Makes all calls at the same time; yields what the models say as it comes. A refusal of the whole call is held back until it
 * is known whether every model was refused. @throws Problem as `compareModels`
 */
export async function* streamComparison(
  services: Services,
  calls: readonly ModelCall[],
): AsyncGenerator<ComparisonEvent, Comparison, undefined> {
  const parts = await reserveParts(services, calls);
  const waiting: ComparisonEvent[] = [];
  let wake = Promise.withResolvers<undefined>();
  const state = { open: parts.length, refused: true };
  const push = (event: ComparisonEvent): void => {
    waiting.push(event);
    wake.resolve(undefined);
  };
  const all = Promise.all(
    parts.map(async (part): Promise<ComparedPart> => {
      const compared = await askPart(services, part, (text) => {
        state.refused = false;
        push({ event: 'delta', data: { model: part.call.model.id, text } });
      });
      state.refused &&= isRefusal(compared.problem);
      state.open -= 1;
      push({ event: 'result', data: compared.result });
      return compared;
    }),
  );
  // Read below; a fault must not be reported as unhandled before that.
  all.catch(() => undefined);
  while (state.open > 0) {
    await Promise.race([wake.promise, all]);
    wake = Promise.withResolvers();
    if (!state.refused) yield* waiting.splice(0);
  }
  const comparison = createComparison(await all);
  yield* waiting.splice(0);
  return comparison;
}

/** A piece of an answer, or the entry of a model that has ended. */
export type ComparisonEvent =
  | { readonly event: 'delta'; readonly data: { readonly model: string; readonly text: string } }
  | { readonly event: 'result'; readonly data: ComparedModel };

/** The call of one model, and the money reserved for it. */
interface ReservedPart {
  readonly call: ModelCall;
  readonly spend: Spend;
}

/** Reserves all of a comparison or nothing of it. @throws Problem (quota-exhausted, ledger-unavailable) */
async function reserveParts({ router }: Services, calls: readonly ModelCall[]): Promise<ReservedPart[]> {
  const spends = await router.reserveAll(calls);
  return calls.flatMap((call, index) => {
    const spend = spends[index];
    return spend === undefined ? [] : [{ call, spend }];
  });
}

/** The part of one model. */
interface ComparedPart {
  readonly result: ComparedModel;
  readonly called: ModelCallResult | undefined;
  readonly problem: Problem | undefined;
}

/** Asks one model. `onText` gets its text piece by piece. */
async function askPart(
  services: Services,
  { call, spend }: ReservedPart,
  onText?: (text: string) => void,
): Promise<ComparedPart> {
  const model = call.model.id;
  const since = performance.now();
  let called: ModelCallResult | undefined;
  try {
    called = await (onText === undefined
      ? services.router.chat(call, spend)
      : readTexts(services.router.streamTexts(call, spend), onText));
    const { text } = getAnswerOrThrow(services, call, called);
    return {
      called,
      problem: undefined,
      result: { model, answer: text, ...toMeasurement(called), cost_source: called.settlement.source },
    };
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    const figures =
      called === undefined
        ? {
            cost_usd: 0,
            charged_usd: 0,
            cost_source: 'none' as const,
            latency_ms: Math.round(performance.now() - since),
          }
        : { ...toMeasurement(called), cost_source: called.settlement.source };
    return { called, problem: error, result: { model, answer: '', ...figures, error: error.message } };
  }
}

async function readTexts(
  texts: AsyncGenerator<string, ModelCallResult, undefined>,
  onText: (text: string) => void,
): Promise<ModelCallResult> {
  for (;;) {
    const next = await texts.next();
    if (next.done === true) return next.value;
    onText(next.value);
  }
}

/** Sums up all parts. @throws Problem when none could even be asked */
function createComparison(parts: readonly ComparedPart[]): Comparison {
  const refusals = parts.flatMap(({ problem }) => (isRefusal(problem) ? [problem] : []));
  const [refusal] = refusals;
  if (refusal !== undefined && refusals.length === parts.length) throw refusal;
  const entries = parts.map(({ result: { model, latency_ms }, called }) => ({
    model,
    ok: called?.answer !== undefined,
    cost: called?.settlement.cost,
    latencyMs: latency_ms,
  }));
  const pending = parts.flatMap(({ result: { model, cost_source } }) => (cost_source === 'pending' ? [model] : []));
  const summary = summarizeComparison(entries, pending);
  const settlements = parts.flatMap(({ called }) => called?.settlement ?? []);
  return {
    result: {
      results: parts.map(({ result }) => result),
      summary:
        summary === null
          ? null
          : { ...summary, total_charged_usd: toDollarNumber(sumMoney(settlements.map(({ charged }) => charged))) },
    },
    settlements,
    quota: findNewest(settlements.flatMap(({ quota }) => quota ?? [])),
  };
}

/** Whether a part was refused for a reason that is that of the whole call. */
function isRefusal(problem: Problem | undefined): problem is Problem {
  return problem !== undefined && wholeCall.includes(problem.type);
}

/** Problems that are the caller's or ours rather than a model's. */
const wholeCall: readonly ProblemType[] = [quotaExhausted, callsStopped, callsInFlight, ledgerUnavailable, keyRefused];

/** The parts end in any order; the one with the highest use is the newest. */
function findNewest(quotas: readonly Quota[]): Quota | undefined {
  return quotas.reduce<Quota | undefined>(
    (last, quota) =>
      last === undefined ||
      quota.used > last.used ||
      (quota.used === last.used && computeRemaining(quota) > computeRemaining(last))
        ? quota
        : last,
    undefined,
  );
}

/** How many models are picked for a caller who named none. */
export const spreadSize = 3;

/**
 * Picks the models of a comparison for a caller who named none, different in price, quality and maker: the cheapest, the
 * dearest, and one between them that adds most: a maker and a quality not there yet, then a price near the geometric mean. Models of one maker are taken only when no other is left. Always the same for the same models.
 */
export function pickSpread(models: readonly Model[]): Model[] {
  const sorted = [...models].sort((a, b) => computeWeight(a) - computeWeight(b));
  const [cheapest, ...others] = sorted;
  if (cheapest === undefined) return [];
  const dearest = findDearest(others.filter(({ maker }) => maker !== cheapest.maker)) ?? findDearest(others);
  if (dearest === undefined) return [cheapest];
  const ends = [cheapest, dearest];
  const middle = Math.sqrt(computeWeight(cheapest) * computeWeight(dearest));
  const rank = (model: Model): number => {
    const newMaker = ends.every(({ maker }) => maker !== model.maker) ? 0 : 1;
    const newQuality = ends.every(({ quality }) => quality !== model.quality) ? 0 : 1;
    return newMaker * 1e6 + newQuality * 1e3 + Math.abs(Math.log(computeWeight(model) / middle));
  };
  const between = sorted
    .filter((model) => !ends.includes(model))
    .sort((a, b) => rank(a) - rank(b))
    .slice(0, spreadSize - ends.length);
  return sorted.filter((model) => ends.includes(model) || between.includes(model));
}

/** What an answer of usual shape, three tokens in for one out, costs relative to others; only to order by. */
function computeWeight({ in_per_m, out_per_m }: Model): number {
  return Number(in_per_m * 3n + out_per_m) + 1;
}

/** Of several at one price, the first. */
function findDearest(models: readonly Model[]): Model | undefined {
  return models.reduce<Model | undefined>(
    (heaviest, model) => (heaviest === undefined || computeWeight(model) > computeWeight(heaviest) ? model : heaviest),
    undefined,
  );
}

/** One model's part in it. `cost` is absent while it is not known. */
export interface Entry {
  readonly model: string;
  readonly ok: boolean;
  readonly cost: Money | undefined;
  readonly latencyMs: number;
}

export interface Summary {
  cheapest: string;
  fastest: string;
  total_cost_usd: number;
  cost_spread: string;
  /** Models whose cost is not known yet and not in the total. */
  pending?: string[];
}

/**
 * Sums up a comparison. Of several that are equal, the first one is named. Only models that answered are compared; the total is of all costs
 * known. null where no model is the cheapest, since none has answered at a cost that is known.
 */
export function summarizeComparison(entries: readonly Entry[], pending: readonly string[]): Summary | null {
  const answered = entries.filter(({ ok }) => ok);
  const priced = answered.flatMap(({ model, cost }) => (cost === undefined ? [] : [{ model, cost }]));
  const cheapest = findLeast(priced, ({ cost }) => cost);
  const fastest = findLeast(answered, ({ latencyMs }) => BigInt(latencyMs));
  if (cheapest === undefined || fastest === undefined) return null;
  return {
    cheapest: cheapest.model,
    fastest: fastest.model,
    total_cost_usd: toDollarNumber(sumMoney(entries.flatMap(({ cost }) => (cost === undefined ? [] : [cost])))),
    cost_spread: `${computeSpreadRatio(priced.map(({ cost }) => cost))}x between cheapest and priciest`,
    ...(pending.length === 0 ? {} : { pending: [...pending] }),
  };
}

function findLeast<Item>(items: readonly Item[], by: (item: Item) => bigint): Item | undefined {
  return items.reduce<Item | undefined>(
    (best, item) => (best === undefined || by(item) < by(best) ? item : best),
    undefined,
  );
}

/**
 * How many times the dearest costs the cheapest, to one decimal: `1`, `12.5`. `∞` when only the cheapest is free of
 * charge.
 */
export function computeSpreadRatio(costs: readonly Money[]): string {
  const cheapest = findLeast(costs, (cost) => cost) ?? 0n;
  const priciest = findLeast(costs, negate) ?? 0n;
  if (priciest === cheapest) return '1';
  if (cheapest === 0n) return '∞';
  const tenths = (priciest * 20n + cheapest) / (cheapest * 2n);
  return tenths % 10n === 0n ? (tenths / 10n).toString() : `${(tenths / 10n).toString()}.${(tenths % 10n).toString()}`;
}
