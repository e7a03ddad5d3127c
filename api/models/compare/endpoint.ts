// POST /api/compare: one prompt to several models in parallel, each with its answer, its cost and its own error.
import { z } from 'zod';
import {
  defineEndpoint,
  type Endpoint,
  eventStreamType,
  createEventStreamResponse,
  fileBodyLimit,
  createJsonResponse,
  formatEvent,
  type RequestContext,
} from '../../http/index.ts';
import {
  chooseModels,
  compareModels,
  type Comparison,
  comparisonResult,
  maxModels,
  spreadSize,
  askPart,
  type ComparedModel,
  comparisonOf,
  isRefusal,
  type Part,
  reserveParts,
} from './comparison.ts';
import {
  billingProblems,
  idempotencyKey,
  idempotently,
  ledgerUnconfigured,
  lowQuotaHint,
  type NoteCall,
  rateLimitHeaders,
  replayHeaders,
} from '../../billing/index.ts';
import { conversationOf, checkSaid, optionFields, optionsOf, promptOrMessages, saidFields } from '../conversation.ts';
import type { Question } from '../metered-router.ts';
import * as problems from '../problems.ts';
import type { ModelEndpointsOptions, ModelServices } from '../model-endpoint.ts';
import { Problem, problemBody } from '../../../lib/problem.ts';
import { type Model, modelField } from '../catalog.ts';
import { payerOf } from '../payers.ts';

/** What is answered. */
export const comparisonAnswer = comparisonResult.extend({
  request_id: z.string().describe('Request ID, for support and logs'),
  hint: z.string().optional().describe('Sent when the free quota runs low, with how to continue'),
});
type ComparisonAnswer = z.output<typeof comparisonAnswer>;

const storedAnswer = z.object({ answer: comparisonAnswer, headers: z.record(z.string(), z.string()) });

/** A comparison in the terms of a caller. */
function answerOf({ result, quota }: Comparison, id: string): ComparisonAnswer {
  const hint = lowQuotaHint(quota);
  return { ...result, request_id: id, ...(hint === undefined ? {} : { hint }) };
}

/** All but the results, which were sent one by one. */
function endOf(answer: ComparisonAnswer): Record<string, unknown> {
  return { ...answer, results: undefined };
}

export function compareEndpoint(options: ModelEndpointsOptions): Endpoint {
  const { catalog, maxTokens } = options;
  return defineEndpoint({
    method: 'POST',
    path: '/api/compare',
    operation: 'compare',
    tag: 'models',
    summary: 'Send a prompt to several models in parallel',
    description:
      `Compares up to ${maxModels} models. If you name none, ${spreadSize} that differ in price, quality and maker are chosen. The call takes as long as its slowest model. ` +
      'A model that fails has `error` in its entry, and the response status is still 200. Quota, API keys and Idempotency-Key work as in /api/ask. Each model is charged separately; what all of them can cost is reserved first, so a quota that does not cover all of them is 402 and no model is asked. ' +
      'With "stream": true the answers are sent as server-sent events: `models` ({"models"}) first, `delta` ({"model", "text"}) for each piece, `result` with the entry of each model that has ended, then `done` with all other fields, or `error` with a problem.',
    bodyLimit: fileBodyLimit,
    body: z
      .strictObject({
        ...saidFields,
        models: z
          .array(modelField(catalog))
          .max(maxModels, `must name at most ${maxModels} models`)
          .optional()
          .describe(
            `Model identifiers, up to ${maxModels}; default ${spreadSize} that differ in price, quality and maker`,
          ),
        max_tokens: z
          .int()
          .min(1)
          .max(maxTokens.max)
          .optional()
          .describe(`Maximum number of output tokens per model, 1 to ${maxTokens.max}; default ${maxTokens.default}`),
        ...optionFields,
        stream: z.boolean().optional().describe('Whether to send the answers as server-sent events'),
      })
      .check(checkSaid)
      .meta(promptOrMessages)
      .describe('{"prompt": "..."} or {"messages": [...]}, optionally with "models", "system", "max_tokens", "stream"'),
    output: comparisonAnswer,
    outputDescription: 'The answers, with metered costs and latencies.',
    produces: ['application/json', eventStreamType],
    problems: [...billingProblems, ...problems.modelProblems].filter((type) => !notAnswered.includes(type)),
    async handler({ body }, context) {
      const services = options.services();
      const payer = await payerOf(services, context);
      const models = chooseModels(body.models, payer, catalog);
      const question = (signal: AbortSignal, announce?: NoteCall): Omit<Question, 'model'> => ({
        kind: 'compare',
        payer,
        messages: conversationOf(body),
        options: optionsOf(body),
        request: context.id,
        maxTokens: body.max_tokens ?? maxTokens.default,
        signal,
        announce,
      });
      const streamed = body.stream ?? context.mediaType === eventStreamType;
      if (streamed && idempotencyKey(context.headers) === undefined)
        return streamComparison({
          services,
          context,
          models,
          question,
          end: (comparison) => endOf(answerOf(comparison, context.id)),
        });
      const { value, replayed } = await idempotently(services.idempotency, context, {
        name: 'compare',
        payer,
        body,
        answer: storedAnswer,
        run: async (signal, note) => {
          const comparison = await compareModels(services, models, question(signal, note));
          return {
            headers: rateLimitHeaders(comparison.quota, payer, Date.now()),
            answer: answerOf(comparison, context.id),
          };
        },
      });
      const headers = { ...value.headers, ...replayHeaders(replayed) };
      return streamed
        ? createEventStreamResponse(atOnce(value.answer.results, endOf(value.answer)), {
            headers,
            abort: () => undefined,
          })
        : createJsonResponse(value.answer, { headers: { 'cache-control': 'no-store', ...headers } });
    },
  });
}

/** Problems of the whole call only: those of single models are in their entries. */
const notAnswered = [
  ledgerUnconfigured,
  problems.appTokenRefused,
  problems.modelFailed,
  problems.modelTimeout,
  problems.modelRefused,
];

/** A piece of an answer, or the entry of a model that has ended. */
export type ComparisonEvent =
  | { readonly event: 'delta'; readonly data: { readonly model: string; readonly text: string } }
  | { readonly event: 'result'; readonly data: ComparedModel };

/** What a stream of a comparison ends with, beside its results. */
export type ComparisonEnd = (comparison: Comparison) => Readonly<Record<string, unknown>>;

export interface StreamedComparison {
  readonly services: ModelServices;
  readonly context: RequestContext;
  readonly models: readonly Model[];
  readonly question: (signal: AbortSignal) => Omit<Question, 'model'>;
  readonly end: ComparisonEnd;
}

/** The first event decides between a stream and a problem; from then on, a problem is an event. @throws Problem */
export async function streamComparison(call: StreamedComparison): Promise<Response> {
  const { context, services, models, question } = call;
  const leaving = new AbortController();
  const asked = question(AbortSignal.any([context.signal, leaving.signal]));
  const events = compareStreaming(services, models, asked);
  const first = await events.next();
  return createEventStreamResponse(frames(first, events, call), {
    abort: () => {
      leaving.abort();
    },
  });
}

/** All events of a comparison that is over. */
export async function* atOnce(
  results: readonly ComparedModel[],
  done: unknown,
): AsyncGenerator<string, void, undefined> {
  yield await Promise.resolve(modelsFrame(results.map(({ model }) => model)));
  for (const result of results) yield formatEvent('result', result);
  yield formatEvent('done', done);
}

/**
 * Asks all models at once; yields what they say as it comes. What refuses the whole call is kept back until it is known
 * whether it refuses every model. @throws Problem as `compareModels`
 */
async function* compareStreaming(
  services: Pick<ModelServices, 'router' | 'keys'>,
  models: readonly Model[],
  question: Omit<Question, 'model'>,
): AsyncGenerator<ComparisonEvent, Comparison, undefined> {
  const reserved = await reserveParts(services, models, question);
  const waiting: ComparisonEvent[] = [];
  let wake = Promise.withResolvers<undefined>();
  const state = { open: reserved.length, refused: true };
  const push = (event: ComparisonEvent): void => {
    waiting.push(event);
    wake.resolve(undefined);
  };
  const all = Promise.all(
    reserved.map(async (one): Promise<Part> => {
      const part = await askPart(services, one, (text) => {
        state.refused = false;
        push({ event: 'delta', data: { model: one.question.model.id, text } });
      });
      state.refused &&= isRefusal(part.problem);
      state.open -= 1;
      push({ event: 'result', data: part.result });
      return part;
    }),
  );
  // Read below; a fault must not be reported as unhandled before that.
  all.catch(() => undefined);
  while (state.open > 0) {
    await Promise.race([wake.promise, all]);
    wake = Promise.withResolvers();
    if (!state.refused) yield* waiting.splice(0);
  }
  const comparison = comparisonOf(await all);
  yield* waiting.splice(0);
  return comparison;
}

type Next = IteratorResult<ComparisonEvent, Comparison>;

async function* frames(
  first: Next,
  events: AsyncGenerator<ComparisonEvent, Comparison, undefined>,
  { services, context, models, end }: StreamedComparison,
): AsyncGenerator<string, void, undefined> {
  yield modelsFrame(models.map(({ id }) => id));
  try {
    let next = first;
    for (; next.done !== true; next = await events.next()) yield formatEvent(next.value.event, next.value.data);
    yield formatEvent('done', end(next.value));
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    yield formatEvent('error', problemBody(error, services.baseUrl, '/api/compare', context.id));
  }
}

function modelsFrame(models: readonly string[]): string {
  return formatEvent('models', { models });
}
