// POST /api/ask: one prompt to one model, answered whole or streamed, with what it cost.
import { z } from 'zod';
import {
  billingProblems,
  chargedText,
  ledgerUnconfigured,
  formatLowQuotaHint,
  formatRateLimitHeaders,
} from '../billing/index.ts';
import { defineEndpoint, type Endpoint, eventStreamType, fileBodyLimit, type RequestContext } from '../http/index.ts';
import { allowModels, modelField } from './catalog.ts';
import {
  checkPromptOrMessages,
  createModelCall,
  optionFields,
  promptOrMessagesSchema,
  readConversation,
  conversationFields,
} from './conversation.ts';
import type { ModelCall, ModelCallResult } from './metered-router.ts';
import {
  answerModelRequest,
  createStoredAnswerSchema,
  getAnswerOrThrow,
  formatCostHeaders,
  type ModelEndpointsOptions,
  type ModelServices,
  type PreparedAnswer,
  toMeasurement,
} from './model-endpoint.ts';
import { resolvePayer } from './payers.ts';
import * as problems from './problems.ts';

/** What is answered. */
export const askAnswer = z.object({
  model: z.string().describe('The model that answered'),
  answer: z.string().describe('Its answer'),
  cost_usd: z
    .number()
    .optional()
    .describe('Metered cost in USD, as billed by the router. Absent while cost_source is pending'),
  charged_usd: z.number().describe(chargedText),
  cost_source: z
    .enum(['billed', 'router_computed', 'router_record', 'pending'])
    .describe('Source of the cost; pending: the router has not reported it yet'),
  latency_ms: z.int().describe('Latency in milliseconds'),
  tokens_in: z.int().optional().describe('Prompt tokens, as counted by the router'),
  tokens_out: z.int().optional().describe('Completion tokens, as counted by the router'),
  finish_reason: z.string().optional().describe('Why the answer ended: stop, or length when it reached max_tokens'),
  request_id: z.string().describe('Request ID, for support and logs'),
  hint: z.string().optional().describe('Sent when the free quota runs low, with how to continue'),
});
type AskAnswer = z.output<typeof askAnswer>;
const storedAnswer = createStoredAnswerSchema(askAnswer);

export function createAskEndpoint(options: ModelEndpointsOptions): Endpoint {
  const { catalog, maxTokens } = options;
  return defineEndpoint({
    method: 'POST',
    path: '/api/ask',
    operation: 'ask',
    tag: 'models',
    summary: 'Send a prompt to a model',
    description:
      'The answer carries the cost of the call, as billed by the router, and its latency. Without an API key, the call uses the free daily quota (headers RateLimit and RateLimit-Policy). ' +
      'With `Authorization: Bearer sk-…`, your own API key for the model router, the call is billed to that key and no quota applies. Models in the premium tier require a key. ' +
      'Send `prompt`, or the whole conversation as `messages`, with images too. Before a call, the most that it can cost is reserved: for text and schemas by their length, for an image up to 49152 tokens, for the answer by max_tokens. ' +
      'With "stream": true the answer is sent as server-sent events: `delta` ({"text"}) for each piece, then `done` with all other fields, or `error` with a problem. ' +
      'A request sent again with the same Idempotency-Key gets the same answer and is charged once.',
    bodyLimit: fileBodyLimit,
    body: z
      .strictObject({
        ...conversationFields,
        model: modelField(catalog).optional().describe(`The model; default ${catalog.preferred.id}`),
        max_tokens: z
          .int()
          .min(1)
          .max(maxTokens.max)
          .optional()
          .describe(`Maximum number of output tokens, 1 to ${maxTokens.max}; default ${maxTokens.default}`),
        ...optionFields,
        stream: z.boolean().optional().describe('Whether to send the answer as server-sent events'),
      })
      .check(checkPromptOrMessages)
      .meta(promptOrMessagesSchema)
      .describe('{"prompt": "..."} or {"messages": [...]}, optionally with "model", "system", "max_tokens", "stream"'),
    output: askAnswer,
    responseHeaders: {
      'X-Cost-Usd': 'What the call cost, in USD; absent while it is not known.',
      'X-Charged-Usd': 'What you are charged for it, in USD.',
      'X-Cost-Source': 'Where the cost comes from; pending while it is not known.',
    },
    outputDescription: 'The answer, with metered cost and latency.',
    produces: ['application/json', eventStreamType],
    problems: [...billingProblems, ...problems.modelProblems].filter(
      (type) => type !== problems.appTokenRefused && type !== ledgerUnconfigured,
    ),
    async handler({ body }, context) {
      const services = options.services();
      const payer = await resolvePayer(context, services.payers);
      const model = (body.model === undefined ? undefined : catalog.get(body.model)) ?? catalog.preferred;
      allowModels([model], payer, catalog);
      const toCall = (signal: AbortSignal, announce?: ModelCall['announce']): ModelCall =>
        createModelCall({
          kind: 'ask',
          payer,
          model,
          ...readConversation(body),
          request: context.id,
          maxTokens: body.max_tokens ?? maxTokens.default,
          signal,
          announce,
        });
      return answerModelRequest(services, context, {
        name: 'ask',
        path: '/api/ask',
        payer,
        body,
        stored: storedAnswer,
        async whole(signal, note) {
          const call = toCall(signal, note);
          return toAnswer(services, call, await services.router.chat(call), context);
        },
        async *stream(signal) {
          const call = toCall(signal);
          const texts = services.router.streamTexts(call);
          let next = await texts.next();
          for (; next.done !== true; next = await texts.next()) yield { event: 'delta', data: { text: next.value } };
          return toAnswer(services, call, next.value, context);
        },
        replay: ({ answer }) => [{ event: 'delta', data: { text: answer } }],
        sent: 'answer',
      });
    },
  });
}

/** The answer to a finished call. @throws Problem when it failed */
function toAnswer(
  services: ModelServices,
  call: ModelCall,
  called: ModelCallResult,
  context: RequestContext,
): PreparedAnswer<AskAnswer> {
  const answer = getAnswerOrThrow(services, call, called);
  const { settlement } = called;
  const hint = formatLowQuotaHint(settlement.quota);
  return {
    headers: { ...formatCostHeaders(settlement), ...formatRateLimitHeaders(settlement.quota, call.payer, Date.now()) },
    answer: {
      model: call.model.id,
      answer: answer.text,
      ...toMeasurement(called),
      cost_source: settlement.source === 'none' ? 'pending' : settlement.source,
      ...(answer.finishReason === undefined ? {} : { finish_reason: answer.finishReason }),
      request_id: context.id,
      ...(hint === undefined ? {} : { hint }),
    },
  };
}
