// POST /api/compare: one prompt to several models in parallel, each with its answer, its cost and its own error.
import { z } from 'zod';
import { Problem, type ProblemType } from '../../lib/problem.ts';
import { defineEndpoint, type Endpoint } from '../endpoint.ts';
import { ask, type Called } from './chat.ts';
import type { Catalog, Model } from './catalog.ts';
import { idempotently } from './idempotent.ts';
import { measured } from './measured.ts';
import type { Payer } from './payer.ts';
import * as problems from './problems.ts';
import { leftOf, lowQuotaHint, rateLimitHeaders, type Quota } from './quota.ts';
import { callProblem } from './refuse.ts';
import { allowModels, bodyLimit, payerOf, promptField, systemField } from './request.ts';
import type { ModelEndpointsOptions, ModelServices } from './services.ts';
import { pickSpread, spreadSize } from './spread.ts';
import { summarise } from './summary.ts';

/** Most models in one comparison. */
export const mostModels = 5;

const result = z.object({
  model: z.string().describe('Model identifier'),
  answer: z.string().describe("The model's answer; empty when it failed"),
  cost_usd: z.number().optional().describe('Metered cost in USD, as the router billed it. Absent while cost_source is pending'),
  cost_source: z.enum(['billed', 'router_computed', 'router_record', 'pending', 'none']).describe('Where the cost comes from; pending: the router has not told it yet; none: nothing was billed'),
  latency_ms: z.int().describe('Latency in milliseconds'),
  tokens_in: z.int().optional().describe('Tokens of the prompt, as the router counted them'),
  tokens_out: z.int().optional().describe('Tokens of the answer'),
  error: z.string().optional().describe('Error text for this model, when it failed'),
});
type Result = z.output<typeof result>;

/** What is answered. */
export const compareAnswer = z.object({
  results: z.array(result).describe('One entry per model, in the order asked'),
  summary: z.object({
    cheapest: z.string().optional().describe('Model identifier of the cheapest that answered'),
    fastest: z.string().optional().describe('Model identifier of the fastest that answered'),
    total_cost_usd: z.number().describe('Total metered cost'),
    cost_spread: z.string().describe('Text of the form "<ratio>x between cheapest and priciest"'),
    pending: z.array(z.string()).optional().describe('Models whose cost is not known yet and not in the total'),
  }).describe('Aggregate'),
  request_id: z.string().describe('Id of this request, in the log'),
  hint: z.string().optional().describe('Said when the free quota runs low: how to go on'),
});

const kept = z.object({ answer: compareAnswer, headers: z.record(z.string(), z.string()) });

export function compareEndpoint(options: ModelEndpointsOptions): Endpoint {
  const { catalog, maxTokens } = options;
  return defineEndpoint({
    method: 'POST',
    path: '/api/compare',
    operation: 'compare',
    tag: 'models',
    summary: 'Send one prompt to several models in parallel',
    description: `Up to ${mostModels} models; when none is named, ${spreadSize} that differ in price, quality and maker. The call lasts as long as its slowest model. `
      + 'A model that fails has `error` in its entry, and the call is still answered with 200. Quota, keys and Idempotency-Key work as in /api/ask; every model is booked by itself.',
    bodyLimit,
    body: z.strictObject({
      prompt: promptField.describe('Prompt sent to every model'),
      models: z.array(z.enum(catalog.ids, { error: () => `is not a model that can be asked: ${catalog.ids.join(', ')}` })).max(mostModels, `names more than ${mostModels} models`).optional()
        .describe(`Model identifiers, at most ${mostModels}; without them, a spread of ${spreadSize} is picked`),
      system: systemField.optional().describe('System prompt applied to every model'),
      max_tokens: z.int().min(1).max(maxTokens.most).optional().describe(`Output token cap of each model, 1 to ${maxTokens.most}; default ${maxTokens.usual}`),
    }).describe('{"prompt": "..."}, and if you like "models", "system", "max_tokens"'),
    output: compareAnswer,
    outputDescription: 'The answers, with metered costs and latencies.',
    problems: problems.modelProblems.filter((type) => ![problems.appTokenRefused, problems.keyInQuery, problems.modelFailed, problems.modelTimeout, problems.modelRefused].includes(type)),
    async handler({ body }, context) {
      const services = options.services();
      const payer = await payerOf(services, context);
      const models = chosen(body.models, payer, catalog);
      allowModels(models, payer, catalog);
      const { value, replayed } = await idempotently(services.idempotency, context, {
        scope: `compare:${payer.kind}:${payer.owner}`, body, answer: kept,
        run: async (signal) => {
          const asked = { kind: 'compare' as const, payer, prompt: body.prompt, system: body.system, maxTokens: body.max_tokens ?? maxTokens.usual, signal };
          const parts = await Promise.all(models.map((model) => part(services, model, payer, ask(services.meter, { ...asked, model }))));
          return summed(parts, payer, context.id);
        },
      });
      return Response.json(value.answer, { headers: { 'cache-control': 'no-store', ...value.headers, ...(replayed ? { 'idempotent-replayed': 'true' } : {}) } });
    },
  });
}

/** The models that were named, or a spread of those that this caller may ask. */
function chosen(named: readonly string[] | undefined, payer: Payer, catalog: Catalog): Model[] {
  if (named !== undefined && named.length > 0) return named.flatMap((id) => catalog.get(id) ?? []);
  return pickSpread(catalog.models.filter(({ tier }) => tier === 'free' || payer.kind === 'key'));
}

interface Part {
  readonly result: Result;
  readonly called: Called | undefined;
  readonly problem: Problem | undefined;
}

async function part({ keys }: ModelServices, model: Model, payer: Payer, asking: Promise<Called>): Promise<Part> {
  const since = performance.now();
  try {
    const called = await asking;
    const { booked, answer, failure } = called;
    if (failure === undefined) return { called, problem: undefined, result: { model: model.id, answer: answer.text, ...measured(called), cost_source: booked.source } };
    if (failure.kind === 'key' && payer.key !== undefined) keys.forget(payer.key);
    const problem = callProblem(failure, booked, model.id, payer);
    return { called, problem, result: { model: model.id, answer: '', ...measured(called), cost_source: booked.source, error: problem.message } };
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    return { called: undefined, problem: error, result: { model: model.id, answer: '', cost_usd: 0, cost_source: 'none', latency_ms: Math.round(performance.now() - since), error: error.message } };
  }
}

/** Problems that are the caller's or ours rather than a model's. */
const wholeCall: readonly ProblemType[] = [problems.quotaExhausted, problems.ledgerUnavailable, problems.keyRefused];

/** @throws Problem when no model could even be asked, or every one refused the caller's key */
function summed(parts: readonly Part[], payer: Payer, id: string): z.output<typeof kept> {
  const refusals = parts.flatMap(({ problem }) => (problem !== undefined && wholeCall.includes(problem.type) ? [problem] : []));
  const [refusal] = refusals;
  if (refusal !== undefined && refusals.length === parts.length) throw refusal;
  const entries = parts.map(({ result: { model, latency_ms }, called }) => ({ model, ok: called?.answer !== undefined, cost: called?.booked.cost, latencyMs: latency_ms }));
  const pending = parts.flatMap(({ result: { model, cost_source } }) => (cost_source === 'pending' ? [model] : []));
  const quota = lowest(parts.flatMap(({ called }) => called?.booked.quota ?? []));
  const hint = lowQuotaHint(quota);
  return {
    headers: rateLimitHeaders(quota, payer, Date.now()),
    answer: { results: parts.map((one) => one.result), summary: summarise(entries, pending), request_id: id, ...(hint === undefined ? {} : { hint }) },
  };
}

/** The parts end in any order; the one that used most is the newest. */
function lowest(quotas: readonly Quota[]): Quota | undefined {
  return quotas.reduce<Quota | undefined>((newest, quota) => (newest === undefined || quota.used > newest.used || (quota.used === newest.used && leftOf(quota) > leftOf(newest)) ? quota : newest), undefined);
}
