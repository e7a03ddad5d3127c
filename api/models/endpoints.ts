// POST /api/ask and POST /api/compare: one prompt to one model or to several in parallel, answered whole or streamed, once for each
// Idempotency-Key, with what it cost.
import { z } from 'zod';
import {
  billingProblems,
  chargedText,
  createNotOpenProblem,
  ledgerUnconfigured,
  formatLowQuotaHint,
  formatQuotaHeaders,
  type Payer,
  type IdempotencyKeys,
  runOnce,
  type NoteCall,
  replayHeaders,
} from '../billing/index.ts';
import {
  defineEndpoint,
  type Endpoint,
  eventStreamType,
  fileBodyLimit,
  type RequestContext,
  formatEvent,
  createEventStreamResponse,
  JsonAnswer,
  readIdempotencyKey,
} from '../http/index.ts';
import { modelField, type Catalog } from './catalog.ts';
import {
  checkPromptOrMessages,
  createModelCall,
  optionFields,
  promptOrMessagesSchema,
  readConversation,
  conversationFields,
} from './conversation.ts';
import {
  formatCostHeaders,
  getAnswerOrThrow,
  type MeteredRouter,
  type ModelCall,
  type ModelCallResult,
  toMeasurement,
} from './metered-router.ts';
import { allowModels, resolvePayer, type PayerRules } from './payers.ts';
import * as problems from './problems.ts';
import {
  chooseModels,
  compareModels,
  type Comparison,
  comparisonResult,
  maxModels,
  spreadSize,
  streamComparison,
} from './comparison.ts';
import { Problem, buildProblemBody } from '../../lib/problem.ts';
import type { CallerKeys } from './caller-keys.ts';
import type { Assignments } from './v1/assignments.ts';

export interface ModelServices {
  readonly router: MeteredRouter;
  readonly keys: CallerKeys;
  readonly payers: PayerRules;
  /** Models that benchmark runs have assigned to apps. */
  readonly assignments: Assignments;
  /** Where the pages of problems are. */
  readonly baseUrl: string;
  readonly idempotency: IdempotencyKeys;
  readonly maxTokens: { readonly default: number; readonly max: number };
}

export interface ModelEndpointsOptions {
  readonly catalog: Catalog;
  readonly maxTokens: ModelServices['maxTokens'];
  /** The services. @throws Problem (models-unconfigured, ledger-unavailable) while there are none */
  readonly services: () => ModelServices;
}

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
  hint: z.string().optional().describe('Included when the free quota runs low, with ways to continue'),
});
type AskAnswer = z.output<typeof askAnswer>;
const storedAskAnswer = createStoredAnswerSchema(askAnswer);

export function createAskEndpoint(options: ModelEndpointsOptions): Endpoint {
  const { catalog, maxTokens } = options;
  return defineEndpoint({
    method: 'POST',
    path: '/api/ask',
    operation: 'ask',
    tag: 'models',
    summary: 'Send a prompt to a model',
    description:
      'The response includes the cost of the call, as billed by the router, and its latency. Without an API key, the call uses the free daily quota (headers RateLimit and RateLimit-Policy). ' +
      'With `Authorization: Bearer sk-…`, your own API key for the model router, the call is billed to that key and no quota applies. Models in the premium tier require a key. ' +
      'Send `prompt`, or the whole conversation as `messages`, with images too. Before a call, its maximum cost is reserved: for text and schemas by their length, for an image up to 49152 tokens, for the answer by max_tokens. ' +
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
      const model = (body.model === undefined ? undefined : catalog.byId.get(body.model)) ?? catalog.preferred;
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
        stored: storedAskAnswer,
        async whole(signal, note) {
          const call = toCall(signal, note);
          return toAskAnswer(services, call, await services.router.chat(call), context);
        },
        async *stream(signal) {
          const call = toCall(signal);
          const texts = services.router.streamTexts(call);
          let next = await texts.next();
          for (; next.done !== true; next = await texts.next()) yield { event: 'delta', data: { text: next.value } };
          return toAskAnswer(services, call, next.value, context);
        },
        replay: ({ answer }) => [{ event: 'delta', data: { text: answer } }],
        sent: 'answer',
      });
    },
  });
}

/** The answer to a finished call. @throws Problem when it failed */
function toAskAnswer(
  services: ModelServices,
  call: ModelCall,
  called: ModelCallResult,
  context: RequestContext,
): PreparedAnswer<AskAnswer> {
  const answer = getAnswerOrThrow(services, call, called);
  const { settlement } = called;
  const hint = formatLowQuotaHint(settlement.quota);
  return {
    headers: { ...formatCostHeaders(settlement), ...formatQuotaHeaders(settlement.quota, call.payer, Date.now()) },
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

/** What is answered. */
export const comparisonAnswer = comparisonResult.extend({
  request_id: z.string().describe('Request ID, for support and logs'),
  hint: z.string().optional().describe('Included when the free quota runs low, with ways to continue'),
});
type ComparisonAnswer = z.output<typeof comparisonAnswer>;
const storedComparisonAnswer = createStoredAnswerSchema(comparisonAnswer);

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
      'A model that fails has `error` in its entry, and the response status is still 200. Quota, API keys and Idempotency-Key work as in /api/ask. Each model is charged separately. The maximum cost of all of them is reserved first, so if the quota does not cover it, the response is 402 and no model is called. ' +
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
        stored: storedComparisonAnswer,
        whole: async (signal, note) =>
          toComparisonAnswer(await compareModels(services, toCalls(signal, note)), payer, context.id),
        async *stream(signal) {
          return toComparisonAnswer(yield* streamComparison(services, toCalls(signal)), payer, context.id);
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
function toComparisonAnswer({ result, quota }: Comparison, payer: Payer, id: string): PreparedAnswer<ComparisonAnswer> {
  const hint = formatLowQuotaHint(quota);
  return {
    headers: formatQuotaHeaders(quota, payer, Date.now()),
    answer: { ...result, request_id: id, ...(hint === undefined ? {} : { hint }) },
  };
}

function toModelsEvent(models: readonly string[]): AnswerEvent {
  return { event: 'models', data: { models } };
}

/** An answer, and the headers that go with it: what is stored for an Idempotency-Key. */
interface PreparedAnswer<Answer> {
  readonly answer: Answer;
  readonly headers: Readonly<Record<string, string>>;
}

interface AnswerEvent {
  readonly event: string;
  readonly data: unknown;
}

/** The schema of an answer as it is stored for an Idempotency-Key. Create it once: it is costly for a request. */
function createStoredAnswerSchema<Answer>(answer: z.ZodType<Answer>): z.ZodType<PreparedAnswer<Answer>> {
  return z.object({ answer, headers: z.record(z.string(), z.string()) });
}

interface ModelRequest<Answer extends object> {
  /** Name of the endpoint, for which its idempotency keys hold. */
  readonly name: string;
  readonly path: string;
  readonly payer: Payer;
  readonly body: { readonly stream?: boolean | undefined };
  readonly stored: z.ZodType<PreparedAnswer<Answer>>;
  /** Makes the whole answer. */
  readonly whole: (signal: AbortSignal, note: NoteCall | undefined) => Promise<PreparedAnswer<Answer>>;
  /** Makes the same answer, and yields events as they come. The first one decides between a stream and a problem. */
  readonly stream: (signal: AbortSignal) => AsyncGenerator<AnswerEvent, PreparedAnswer<Answer>, undefined>;
  /** Events that are sent in front of those of `stream`. */
  readonly opening?: readonly AnswerEvent[];
  /** The events of an answer that is complete. */
  readonly replay: (answer: Answer) => readonly AnswerEvent[];
  /** The field of the answer that these events have sent: `done` has all others. */
  readonly sent: keyof Answer;
}

/** Answers whole or, where the request asks for it, with server-sent events. @throws Problem */
async function answerModelRequest<Answer extends object>(
  services: Pick<ModelServices, 'idempotency' | 'baseUrl'>,
  context: RequestContext,
  request: ModelRequest<Answer>,
): Promise<JsonAnswer<Answer> | Response> {
  const { name, payer, body, stored, whole } = request;
  const isStreamed = body.stream ?? context.mediaType === eventStreamType;
  if (readIdempotencyKey(context.headers) === undefined) {
    if (isStreamed) return streamAnswer(services.baseUrl, context, request);
    const { answer, headers } = await whole(context.signal, undefined);
    return new JsonAnswer(answer, headers);
  }
  const { value, replayed } = await runOnce(services.idempotency, context, {
    name,
    payer,
    body,
    answer: stored,
    run: whole,
  });
  const headers = { ...value.headers, ...replayHeaders(replayed) };
  return isStreamed ? replayAnswer(request, { answer: value.answer, headers }) : new JsonAnswer(value.answer, headers);
}

/** The first event decides between a stream and a problem; from then on, a problem is an event. */
async function streamAnswer<Answer extends object>(
  baseUrl: string,
  context: RequestContext,
  request: ModelRequest<Answer>,
): Promise<Response> {
  const leaving = new AbortController();
  const events = request.stream(AbortSignal.any([context.signal, leaving.signal]));
  const first = await events.next();
  if (first.done === true) return replayAnswer(request, first.value);
  return createEventStreamResponse(frames(first), {
    abort: () => {
      leaving.abort();
    },
  });

  async function* frames(
    next: IteratorResult<AnswerEvent, PreparedAnswer<Answer>>,
  ): AsyncGenerator<string, void, undefined> {
    for (const { event, data } of request.opening ?? []) yield formatEvent(event, data);
    try {
      let now = next;
      for (; now.done !== true; now = await events.next()) yield formatEvent(now.value.event, now.value.data);
      yield formatDone(request, now.value.answer);
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      yield formatEvent('error', buildProblemBody(error, baseUrl, request.path, context.id));
    }
  }
}

function replayAnswer<Answer extends object>(
  request: ModelRequest<Answer>,
  { answer, headers }: PreparedAnswer<Answer>,
): Response {
  async function* frames(): AsyncGenerator<string, void, undefined> {
    for (const { event, data } of request.replay(answer)) yield await Promise.resolve(formatEvent(event, data));
    yield formatDone(request, answer);
  }
  return createEventStreamResponse(frames(), { headers, abort: () => undefined });
}

function formatDone<Answer extends object>({ sent }: ModelRequest<Answer>, answer: Answer): string {
  return formatEvent('done', { ...answer, [sent]: undefined });
}

/** The services from the time when the ledger is open. `missing`: the setting without which they never are. */
export function createServicesAccess(missing: string | undefined): {
  readonly services: ModelEndpointsOptions['services'];
  readonly open: (opened: ModelServices) => void;
} {
  let current: ModelServices | undefined;
  return {
    services: () => current ?? throwUnavailable(missing),
    open(opened) {
      current = opened;
    },
  };
}

function throwUnavailable(missing: string | undefined): never {
  if (missing !== undefined) throw new Problem(problems.modelsUnconfigured, missing);
  throw createNotOpenProblem();
}
