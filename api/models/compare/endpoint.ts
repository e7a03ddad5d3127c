// POST /api/compare: one prompt to several models in parallel, each with its answer, its cost and its own error.
import { z } from 'zod';
import {
  billingProblems,
  ledgerUnconfigured,
  formatLowQuotaHint,
  type Payer,
  formatRateLimitHeaders,
} from '../../billing/index.ts';
import { defineEndpoint, type Endpoint, eventStreamType, fileBodyLimit } from '../../http/index.ts';
import { modelField } from '../catalog.ts';
import {
  checkPromptOrMessages,
  conversationFields,
  createModelCall,
  optionFields,
  promptOrMessagesSchema,
  readConversation,
} from '../conversation.ts';
import type { ModelCall } from '../metered-router.ts';
import {
  type AnswerEvent,
  answerModelRequest,
  createStoredAnswerSchema,
  type ModelEndpointsOptions,
  type PreparedAnswer,
} from '../model-endpoint.ts';
import { resolvePayer } from '../payers.ts';
import * as problems from '../problems.ts';
import {
  chooseModels,
  compareModels,
  type Comparison,
  comparisonResult,
  maxModels,
  spreadSize,
  streamComparison,
} from './comparison.ts';

/** What is answered. */
export const comparisonAnswer = comparisonResult.extend({
  request_id: z.string().describe('Request ID, for support and logs'),
  hint: z.string().optional().describe('Sent when the free quota runs low, with how to continue'),
});
type ComparisonAnswer = z.output<typeof comparisonAnswer>;
const storedAnswer = createStoredAnswerSchema(comparisonAnswer);

export function createCompareEndpoint(options: ModelEndpointsOptions): Endpoint {
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
        ...conversationFields,
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
      .check(checkPromptOrMessages)
      .meta(promptOrMessagesSchema)
      .describe('{"prompt": "..."} or {"messages": [...]}, optionally with "models", "system", "max_tokens", "stream"'),
    output: comparisonAnswer,
    outputDescription: 'The answers, with metered costs and latencies.',
    produces: ['application/json', eventStreamType],
    problems: [...billingProblems, ...problems.modelProblems].filter((type) => !notAnswered.includes(type)),
    async handler({ body }, context) {
      const services = options.services();
      const payer = await resolvePayer(context, services.payers);
      const models = chooseModels(body.models, payer, catalog);
      const toCalls = (signal: AbortSignal, announce?: ModelCall['announce']): ModelCall[] =>
        models.map((model) =>
          createModelCall({
            kind: 'compare',
            payer,
            model,
            ...readConversation(body),
            request: context.id,
            maxTokens: body.max_tokens ?? maxTokens.default,
            signal,
            announce,
          }),
        );
      return answerModelRequest(services, context, {
        name: 'compare',
        path: '/api/compare',
        payer,
        body,
        stored: storedAnswer,
        whole: async (signal, note) =>
          toAnswer(await compareModels(services, toCalls(signal, note)), payer, context.id),
        async *stream(signal) {
          return toAnswer(yield* streamComparison(services, toCalls(signal)), payer, context.id);
        },
        opening: [toModelsEvent(models.map(({ id }) => id))],
        replay: ({ results }) => [
          toModelsEvent(results.map(({ model }) => model)),
          ...results.map((result) => ({ event: 'result', data: result })),
        ],
        sent: 'results',
      });
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

/** A comparison in the terms of a caller. */
function toAnswer({ result, quota }: Comparison, payer: Payer, id: string): PreparedAnswer<ComparisonAnswer> {
  const hint = formatLowQuotaHint(quota);
  return {
    headers: formatRateLimitHeaders(quota, payer, Date.now()),
    answer: { ...result, request_id: id, ...(hint === undefined ? {} : { hint }) },
  };
}

function toModelsEvent(models: readonly string[]): AnswerEvent {
  return { event: 'models', data: { models } };
}
