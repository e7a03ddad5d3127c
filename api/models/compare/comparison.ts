// One prompt to several models in parallel: what POST /api/compare and the tool compare_models do.
import { z } from 'zod';
import { Problem, type ProblemType } from '../../../lib/problem.ts';
import type { Catalog, Model } from '../catalog.ts';
import { ask, type Called, type Question } from '../metered/question.ts';
import { measured } from '../metered/measurement.ts';
import type { Booked } from '../metered/metered-router.ts';
import type { Payer } from '../../billing/payer.ts';
import { ledgerUnavailable, quotaExhausted } from '../../billing/problems.ts';
import { keyRefused } from '../problems.ts';
import { leftOf, type Quota } from '../../billing/quota.ts';
import { answerOf } from '../metered/call-problem.ts';
import { allowModels } from '../request.ts';
import type { ModelServices } from '../services.ts';
import { pickSpread } from './spread.ts';
import { summarise } from './summary.ts';

/** Most models in one comparison. */
export const mostModels = 5;

const comparedModel = z.object({
  model: z.string().describe('Model identifier'),
  answer: z.string().describe("The model's answer; empty when it failed"),
  cost_usd: z
    .number()
    .optional()
    .describe('Metered cost in USD, as the router billed it. Absent while cost_source is pending'),
  cost_source: z
    .enum(['billed', 'router_computed', 'router_record', 'pending', 'none'])
    .describe('Where the cost comes from; pending: the router has not told it yet; none: nothing was billed'),
  latency_ms: z.int().describe('Latency in milliseconds'),
  tokens_in: z.int().optional().describe('Tokens of the prompt, as the router counted them'),
  tokens_out: z.int().optional().describe('Tokens of the answer'),
  error: z.string().optional().describe('Error text for this model, when it failed'),
});
type Result = z.output<typeof comparedModel>;

/** What a comparison answers, wherever it is asked for. */
export const comparisonResult = z.object({
  results: z.array(comparedModel).describe('One entry per model, in the order asked'),
  summary: z
    .object({
      cheapest: z.string().optional().describe('Model identifier of the cheapest that answered'),
      fastest: z.string().optional().describe('Model identifier of the fastest that answered'),
      total_cost_usd: z.number().describe('Total metered cost'),
      cost_spread: z.string().describe('Text of the form "<ratio>x between cheapest and priciest"'),
      pending: z.array(z.string()).optional().describe('Models whose cost is not known yet and not in the total'),
    })
    .describe('Aggregate'),
});

export interface Comparison {
  readonly result: z.output<typeof comparisonResult>;
  /** What each call that was made has cost, in no order. */
  readonly booked: readonly Booked[];
  /** The quota after all of them. */
  readonly quota: Quota | undefined;
}

/** The models that were named, or a spread of those that this caller may ask. @throws Problem (key-required) */
export function chooseModels(named: readonly string[] | undefined, payer: Payer, catalog: Catalog): Model[] {
  const models =
    named !== undefined && named.length > 0
      ? named.flatMap((id) => catalog.get(id) ?? [])
      : pickSpread(catalog.models.filter(({ tier }) => tier === 'free' || payer.kind === 'key'));
  allowModels(models, payer, catalog);
  return models;
}

/**
 * Asks all of them at once. A model that fails has its error in its entry. @throws Problem when no model could even be
 * asked, or every one refused the caller's key
 */
export async function compareModels(
  services: Pick<ModelServices, 'meter' | 'keys'>,
  models: readonly Model[],
  question: Omit<Question, 'model'>,
): Promise<Comparison> {
  const parts = await Promise.all(models.map((model) => part(services, { ...question, model })));
  const refusals = parts.flatMap(({ problem }) =>
    problem !== undefined && wholeCall.includes(problem.type) ? [problem] : [],
  );
  const [refusal] = refusals;
  if (refusal !== undefined && refusals.length === parts.length) throw refusal;
  const entries = parts.map(({ result: { model, latency_ms }, called }) => ({
    model,
    ok: called?.answer !== undefined,
    cost: called?.booked.cost,
    latencyMs: latency_ms,
  }));
  const pending = parts.flatMap(({ result: { model, cost_source } }) => (cost_source === 'pending' ? [model] : []));
  const booked = parts.flatMap(({ called }) => called?.booked ?? []);
  return {
    result: { results: parts.map(({ result }) => result), summary: summarise(entries, pending) },
    booked,
    quota: lowest(booked.flatMap(({ quota }) => quota ?? [])),
  };
}

interface Part {
  readonly result: Result;
  readonly called: Called | undefined;
  readonly problem: Problem | undefined;
}

async function part(services: Pick<ModelServices, 'meter' | 'keys'>, question: Question): Promise<Part> {
  const model = question.model.id;
  const since = performance.now();
  let called: Called | undefined;
  try {
    called = await ask(services.meter, question);
    const { text } = answerOf(services, question, called);
    return {
      called,
      problem: undefined,
      result: { model, answer: text, ...measured(called), cost_source: called.booked.source },
    };
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    const figures =
      called === undefined
        ? { cost_usd: 0, cost_source: 'none' as const, latency_ms: Math.round(performance.now() - since) }
        : { ...measured(called), cost_source: called.booked.source };
    return { called, problem: error, result: { model, answer: '', ...figures, error: error.message } };
  }
}

/** Problems that are the caller's or ours rather than a model's. */
const wholeCall: readonly ProblemType[] = [quotaExhausted, ledgerUnavailable, keyRefused];

/** The parts end in any order; the one that used most is the newest. */
function lowest(quotas: readonly Quota[]): Quota | undefined {
  return quotas.reduce<Quota | undefined>(
    (newest, quota) =>
      newest === undefined || quota.used > newest.used || (quota.used === newest.used && leftOf(quota) > leftOf(newest))
        ? quota
        : newest,
    undefined,
  );
}
