// POST /api/ask: one prompt to one model, answered whole or streamed, with what it cost.
import { z } from 'zod';
import { problemBody, Problem } from '../../../lib/problem.ts';
import { defineEndpoint, type Endpoint, type RequestContext } from '../../http/endpoint.ts';
import { eventFrame, eventStream, eventStreamResponse } from '../../http/event-stream.ts';
import { ask, askStreaming, type Called, type Question } from '../metered/question.ts';
import { idempotencyKey, idempotently } from '../../billing/idempotency/request.ts';
import { measured } from '../metered/measurement.ts';
import { billingProblems, ledgerUnconfigured } from '../../billing/problems.ts';
import * as problems from '../problems.ts';
import { lowQuotaHint, rateLimitHeaders } from '../../billing/quota.ts';
import { answerOf } from '../metered/call-problem.ts';
import { allowModels, bodyLimit, modelField, payerOf, promptField, systemField } from '../request.ts';
import type { ModelEndpointsOptions, ModelServices } from '../services.ts';

/** What is answered. */
export const askAnswer = z.object({
  model: z.string().describe('The model that answered'),
  answer: z.string().describe('Its answer'),
  cost_usd: z
    .number()
    .optional()
    .describe('Metered cost in USD, as the router billed it. Absent while cost_source is pending'),
  cost_source: z
    .enum(['billed', 'router_computed', 'router_record', 'pending'])
    .describe('Where the cost comes from; pending: the router has not told it yet'),
  latency_ms: z.int().describe('Milliseconds until the model had answered'),
  tokens_in: z.int().optional().describe('Tokens of the prompt, as the router counted them'),
  tokens_out: z.int().optional().describe('Tokens of the answer'),
  finish_reason: z.string().optional().describe('Why the answer ends: stop; length when it was cut at max_tokens'),
  request_id: z.string().describe('Id of this request, in the log'),
  hint: z.string().optional().describe('Said when the free quota runs low: how to go on'),
});
type AskAnswer = z.output<typeof askAnswer>;

const kept = z.object({ answer: askAnswer, headers: z.record(z.string(), z.string()) });

export function askEndpoint(options: ModelEndpointsOptions): Endpoint {
  const { catalog, maxTokens } = options;
  return defineEndpoint({
    method: 'POST',
    path: '/api/ask',
    operation: 'ask',
    tag: 'models',
    summary: 'Send one prompt to one model',
    description:
      'The answer carries what the call cost, as the router billed it, and how long it took. Without a key it draws on the free quota of the day (headers RateLimit and RateLimit-Policy); ' +
      'with `Authorization: Bearer sk-…`, a key of the model router, it is billed to that key and no quota applies. Models of the tier premium need such a key. ' +
      'With "stream": true the answer comes as server-sent events: `delta` ({"text"}), and last `done` with everything else, or `error` with a problem. ' +
      'With an Idempotency-Key the same request sent again gets the same answer and is paid once.',
    bodyLimit,
    body: z
      .strictObject({
        prompt: promptField.describe('The prompt'),
        model: modelField(catalog).optional().describe(`The model; default ${catalog.preferred.id}`),
        system: systemField.optional().describe('System prompt'),
        max_tokens: z
          .int()
          .min(1)
          .max(maxTokens.most)
          .optional()
          .describe(`Output token cap, 1 to ${maxTokens.most}; default ${maxTokens.usual}`),
        stream: z.boolean().optional().describe('true: answer as server-sent events'),
      })
      .describe('{"prompt": "..."}, and if you like "model", "system", "max_tokens", "stream"'),
    output: askAnswer,
    outputDescription: 'The answer, with metered cost and latency.',
    produces: ['application/json', eventStream],
    problems: [...billingProblems, ...problems.modelProblems].filter(
      (type) => type !== problems.appTokenRefused && type !== ledgerUnconfigured,
    ),
    async handler({ body }, context) {
      const services = options.services();
      const payer = await payerOf(services, context);
      const model = (body.model === undefined ? undefined : catalog.get(body.model)) ?? catalog.preferred;
      allowModels([model], payer, catalog);
      const question = (signal: AbortSignal): Question => ({
        kind: 'ask',
        payer,
        model,
        prompt: body.prompt,
        system: body.system,
        maxTokens: body.max_tokens ?? maxTokens.usual,
        signal,
      });
      const streamed = body.stream ?? context.mediaType === eventStream;
      if (streamed && idempotencyKey(context.headers) === undefined) return streamAnswer(services, context, question);
      const { value, replayed } = await idempotently(services.idempotency, context, {
        scope: `ask:${payer.kind}:${payer.owner}`,
        body,
        answer: kept,
        run: async (signal) => {
          const asked = question(signal);
          return answered(services, asked, await ask(services.meter, asked), context);
        },
      });
      const headers = { ...value.headers, ...(replayed ? { 'idempotent-replayed': 'true' } : {}) };
      return streamed
        ? eventStreamResponse(atOnce(value.answer), { headers, abort: () => undefined })
        : Response.json(value.answer, { headers: { 'cache-control': 'no-store', ...headers } });
    },
  });
}

/** The first piece decides between a stream and a problem; from then on, a problem is an event. */
async function streamAnswer(
  services: ModelServices,
  context: RequestContext,
  question: (signal: AbortSignal) => Question,
): Promise<Response> {
  const leaving = new AbortController();
  const asked = question(AbortSignal.any([context.signal, leaving.signal]));
  const texts = askStreaming(services.meter, asked);
  const first = await texts.next();
  if (first.done === true) {
    const { answer, headers } = answered(services, asked, first.value, context);
    return eventStreamResponse(atOnce(answer), { headers, abort: () => undefined });
  }
  return eventStreamResponse(frames(services, asked, first.value, texts, context), {
    abort: () => {
      leaving.abort();
    },
  });
}

async function* frames(
  services: ModelServices,
  asked: Question,
  first: string,
  texts: AsyncGenerator<string, Called, undefined>,
  context: RequestContext,
): AsyncGenerator<string, void, undefined> {
  yield eventFrame('delta', { text: first });
  for (;;) {
    const next = await texts.next();
    if (next.done !== true) {
      yield eventFrame('delta', { text: next.value });
      continue;
    }
    yield last(services, asked, next.value, context);
    return;
  }
}

function last(services: ModelServices, asked: Question, called: Called, context: RequestContext): string {
  try {
    return doneFrame(answered(services, asked, called, context).answer);
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    return eventFrame('error', problemBody(error, services.baseUrl, '/api/ask', context.id));
  }
}

async function* atOnce(answer: AskAnswer): AsyncGenerator<string, void, undefined> {
  yield await Promise.resolve(eventFrame('delta', { text: answer.answer }));
  yield doneFrame(answer);
}

/** All but the text, which was sent in pieces. */
function doneFrame(answer: AskAnswer): string {
  return eventFrame('done', { ...answer, answer: undefined });
}

/** What a finished call is answered with. @throws Problem when it failed */
function answered(
  services: ModelServices,
  { model, payer }: Question,
  called: Called,
  context: RequestContext,
): z.output<typeof kept> {
  const answer = answerOf(services, { model, payer }, called);
  const { booked } = called;
  const hint = lowQuotaHint(booked.quota);
  return {
    headers: rateLimitHeaders(booked.quota, payer, Date.now()),
    answer: {
      model: model.id,
      answer: answer.text,
      ...measured(called),
      cost_source: booked.source === 'none' ? 'pending' : booked.source,
      ...(answer.finishReason === undefined ? {} : { finish_reason: answer.finishReason }),
      request_id: context.id,
      ...(hint === undefined ? {} : { hint }),
    },
  };
}
