// POST /api/ask: one prompt to one model, answered whole or streamed, with what it cost.
import { z } from 'zod';
import {
  defineEndpoint,
  type Endpoint,
  eventStreamType,
  createEventStreamResponse,
  fileBodyLimit,
  createJsonResponse,
  type RequestContext,
  formatEvent,
} from '../http/index.ts';
import {
  billingProblems,
  idempotencyKey,
  idempotently,
  ledgerUnconfigured,
  type NoteCall,
  replayHeaders,
  chargedText,
  lowQuotaHint,
  rateLimitHeaders,
} from '../billing/index.ts';
import { ask, type Question, askStreaming, type ModelCallResult } from './metered-router.ts';
import { conversationOf, checkSaid, optionFields, optionsOf, promptOrMessages, saidFields } from './conversation.ts';
import { allowModels, modelField } from './catalog.ts';
import { payerOf } from './payers.ts';
import * as problems from './problems.ts';
import { answerOrThrow } from './problems.ts';
import { type ModelEndpointsOptions, type ModelServices, costHeaders, measurementOf } from './model-endpoint.ts';
import { problemBody, Problem } from '../../lib/problem.ts';

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

export type AskAnswer = z.output<typeof askAnswer>;

/** An answer as it is stored for an Idempotency-Key. */
export const storedAnswer = z.object({ answer: askAnswer, headers: z.record(z.string(), z.string()) });

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

/** The response to a finished call. @throws Problem when it failed */
export function answered(
  services: ModelServices,
  { model, payer }: Question,
  called: ModelCallResult,
  context: RequestContext,
): z.output<typeof storedAnswer> {
  const answer = answerOrThrow(services, { model, payer }, called);
  const { settlement } = called;
  const hint = lowQuotaHint(settlement.quota);
  return {
    headers: { ...costHeaders(settlement), ...rateLimitHeaders(settlement.quota, payer, Date.now()) },
    answer: {
      model: model.id,
      answer: answer.text,
      ...measurementOf(called),
      cost_source: settlement.source === 'none' ? 'pending' : settlement.source,
      ...(answer.finishReason === undefined ? {} : { finish_reason: answer.finishReason }),
      request_id: context.id,
      ...(hint === undefined ? {} : { hint }),
    },
  };
}

/** The first piece decides between a stream and a problem; from then on, a problem is an event. */
export async function streamAnswer(
  services: ModelServices,
  context: RequestContext,
  question: (signal: AbortSignal) => Question,
): Promise<Response> {
  const leaving = new AbortController();
  const asked = question(AbortSignal.any([context.signal, leaving.signal]));
  const texts = askStreaming(services.router, asked);
  const first = await texts.next();
  if (first.done === true) {
    const { answer, headers } = answered(services, asked, first.value, context);
    return createEventStreamResponse(atOnce(answer), { headers, abort: () => undefined });
  }
  return createEventStreamResponse(frames(services, asked, first.value, texts, context), {
    abort: () => {
      leaving.abort();
    },
  });
}

async function* frames(
  services: ModelServices,
  asked: Question,
  first: string,
  texts: AsyncGenerator<string, ModelCallResult, undefined>,
  context: RequestContext,
): AsyncGenerator<string, void, undefined> {
  yield formatEvent('delta', { text: first });
  for (;;) {
    const next = await texts.next();
    if (next.done !== true) {
      yield formatEvent('delta', { text: next.value });
      continue;
    }
    yield last(services, asked, next.value, context);
    return;
  }
}

function last(services: ModelServices, asked: Question, called: ModelCallResult, context: RequestContext): string {
  try {
    return doneFrame(answered(services, asked, called, context).answer);
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    return formatEvent('error', problemBody(error, services.baseUrl, '/api/ask', context.id));
  }
}

export async function* atOnce(answer: AskAnswer): AsyncGenerator<string, void, undefined> {
  yield await Promise.resolve(formatEvent('delta', { text: answer.answer }));
  yield doneFrame(answer);
}

/** All but the text, which was sent in pieces. */
function doneFrame(answer: AskAnswer): string {
  return formatEvent('done', { ...answer, answer: undefined });
}
