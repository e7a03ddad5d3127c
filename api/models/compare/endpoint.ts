// POST /api/compare: one prompt to several models in parallel, each with its answer, its cost and its own error.
import { z } from 'zod';
import {
  defineEndpoint,
  type Endpoint,
  eventStreamType,
  createEventStreamResponse,
  fileBodyLimit,
  createJsonResponse,
} from '../../http/index.ts';
import { chooseModels, compareModels, type Comparison, comparisonResult, maxModels } from './comparison.ts';
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
import { conversationOf } from '../conversation/conversation.ts';
import { checkSaid, optionFields, optionsOf, promptOrMessages, saidFields } from '../conversation/fields.ts';
import type { Question } from '../metered/question.ts';
import * as problems from '../problems.ts';
import { modelField, payerOf } from '../request.ts';
import type { ModelEndpointsOptions } from '../services.ts';
import { spreadSize } from './spread.ts';
import { atOnce, streamComparison } from './stream.ts';

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
