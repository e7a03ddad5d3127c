// POST /api/ask: one prompt to one model, answered whole or streamed, with what it cost.
import { z } from 'zod';
import {
  defineEndpoint,
  type Endpoint,
  eventStreamType,
  createEventStreamResponse,
  fileBodyLimit,
  createJsonResponse,
} from '../../http/index.ts';
import {
  billingProblems,
  idempotencyKey,
  idempotently,
  ledgerUnconfigured,
  type NoteCall,
  replayHeaders,
} from '../../billing/index.ts';
import { ask, type Question } from '../metered/question.ts';
import { conversationOf } from '../conversation/conversation.ts';
import { checkSaid, optionFields, optionsOf, promptOrMessages, saidFields } from '../conversation/fields.ts';
import * as problems from '../problems.ts';
import { allowModels, modelField, payerOf } from '../request.ts';
import type { ModelEndpointsOptions } from '../services.ts';
import { answered, askAnswer, storedAnswer } from './answer.ts';
import { atOnce, streamAnswer } from './stream.ts';

export function askEndpoint(options: ModelEndpointsOptions): Endpoint {
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
        ...saidFields,
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
      .check(checkSaid)
      .meta(promptOrMessages)
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
      const payer = await payerOf(services, context);
      const model = (body.model === undefined ? undefined : catalog.get(body.model)) ?? catalog.preferred;
      allowModels([model], payer, catalog);
      const question = (signal: AbortSignal, announce?: NoteCall): Question => ({
        kind: 'ask',
        payer,
        model,
        messages: conversationOf(body),
        options: optionsOf(body),
        request: context.id,
        maxTokens: body.max_tokens ?? maxTokens.default,
        signal,
        announce,
      });
      const streamed = body.stream ?? context.mediaType === eventStreamType;
      if (streamed && idempotencyKey(context.headers) === undefined) return streamAnswer(services, context, question);
      const { value, replayed } = await idempotently(services.idempotency, context, {
        name: 'ask',
        payer,
        body,
        answer: storedAnswer,
        run: async (signal, note) => {
          const asked = question(signal, note);
          return answered(services, asked, await ask(services.router, asked), context);
        },
      });
      const headers = { ...value.headers, ...replayHeaders(replayed) };
      return streamed
        ? createEventStreamResponse(atOnce(value.answer), { headers, abort: () => undefined })
        : createJsonResponse(value.answer, { headers: { 'cache-control': 'no-store', ...headers } });
    },
  });
}
