// Answers of /v1: chat completions and embeddings, passed on to the router within limits, charged to who pays for them, and returned
// under our name of the model with the settled cost.
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { type Problem, createUnknownNameProblem } from '../../../lib/problem.ts';
import {
  computeMaxCost,
  toDollarNumber,
  type NoteCall,
  type Payer,
  type Prompt,
  formatQuotaHeaders,
} from '../../billing/index.ts';
import {
  createBufferedResponse,
  formatEvent,
  eventStreamType,
  createEventStreamResponse,
  createJsonResponse,
  type RequestContext,
} from '../../http/index.ts';
import type { Catalog } from '../catalog.ts';
import type { ModelServices } from '../endpoints.ts';
import { formatCostHeaders, type ModelCall, type ModelCallResult, type Settlement } from '../metered-router.ts';
import { allowModels } from '../payers.ts';
import { createCallProblem, describeFailure, modelUnknown } from '../problems.ts';
import type { StreamPart } from '../router/client.ts';
import type { RouterFailure } from '../router/failures.ts';
import { type Assignment, formatOutcome, formatRefusal, noteOutcome } from './assignments.ts';
import { type ChatRequest, type EmbeddingsRequest, readMessages, toChatPrompt, toRouterBody } from './request.ts';

export interface V1Call<Request> {
  readonly services: ModelServices;
  readonly catalog: Catalog;
  readonly payer: Payer;
  readonly request: Request;
  readonly context: Pick<RequestContext, 'id' | 'signal'>;
  /** Notes the call before it is made, where the request has an Idempotency-Key: its answer is kept, and a stream sent once complete. */
  readonly note: NoteCall | undefined;
}

/** Answers whole, or as a stream when the request says so. @throws Problem */
export async function answerChat(call: V1Call<ChatRequest>): Promise<Response> {
  const {
    services: { router },
    payer,
    request,
    context,
  } = call;
  const messages = readMessages(request.messages);
  const id = randomUUID();
  // Only the calls of an app can belong to a benchmark run.
  const assignment =
    payer.kind === 'app'
      ? await call.services.assignments.begin({
          app: payer.owner,
          hold: id,
          fields: [request.user, request.model],
        })
      : undefined;
  const model = findModel(assignment?.model ?? request.model, call.catalog.models);
  if (payer.kind === 'anonymous') allowModels([model], payer, call.catalog);
  const { maxTokens, headers } = readMaxTokens(request, call.services.maxTokens);
  const leaving = new AbortController();
  const modelCall: ModelCall = {
    id,
    kind: 'v1',
    payer,
    request: context.id,
    model,
    maxCost: computeMaxCost(model, toChatPrompt(request, messages), maxTokens),
    announce: call.note,
    signal: AbortSignal.any([context.signal, leaving.signal]),
    // A provider must not see that it is being measured.
    body: toRouterBody(assignment === undefined ? request : { ...request, user: undefined }, messages, {
      upstream: model.upstream,
      maxTokens,
    }),
  };
  if (request.stream === true) return streamChat(call, modelCall, { leaving, assignment, headers });
  const called = await noteOutcome(assignment, () => router.chat(modelCall));
  if (called.failure !== undefined) throw createCallProblem(called.failure, called.settlement, model.id, payer);
  return createJsonResponse(toCompletionBody(called.answer.body, model.id, called.settlement), {
    headers: { ...formatAnswerHeaders(called.settlement, payer), ...headers },
  });
}

interface StreamOptions {
  readonly leaving: AbortController;
  readonly assignment: Assignment | undefined;
  readonly headers: Readonly<Record<string, string>>;
}

/** The first event decides between a stream and a problem. */
async function streamChat(
  { services: { router }, payer, request, note }: V1Call<ChatRequest>,
  modelCall: ModelCall,
  { leaving, assignment, headers }: StreamOptions,
): Promise<Response> {
  const parts = noteStreamOutcome(router.stream(modelCall), assignment);
  const first = await parts.next();
  if (first.done === true && first.value.failure !== undefined)
    throw createCallProblem(first.value.failure, first.value.settlement, modelCall.model.id, payer);
  const events = toFrames(first, parts, modelCall, request.stream_options?.include_usage === true);
  if (note !== undefined) return gatherEvents(events, modelCall, headers);
  return createEventStreamResponse(events, {
    headers,
    abort: () => {
      leaving.abort();
    },
  });
}

/** All events of a stream in one response. @throws Problem where the call failed, even at its last event */
async function gatherEvents(
  events: ReturnType<typeof toFrames>,
  { model, payer }: ModelCall,
  headers: StreamOptions['headers'],
): Promise<Response> {
  let text = '';
  let next = await events.next();
  for (; next.done !== true; next = await events.next()) text += next.value;
  const { failure, settlement } = next.value;
  if (failure !== undefined) throw createCallProblem(failure, settlement, model.id, payer);
  return createBufferedResponse(text, {
    headers: { 'content-type': eventStreamType, ...formatAnswerHeaders(settlement, payer), ...headers },
  });
}

type Parts = AsyncGenerator<StreamPart, ModelCallResult, undefined>;

/** The parts of a stream; how it ended is noted before its reader can know. */
async function* noteStreamOutcome(parts: Parts, assignment: Assignment | undefined): Parts {
  try {
    const result = yield* parts;
    await assignment?.end(formatOutcome(result));
    return result;
  } catch (error) {
    await assignment?.end(formatRefusal(error));
    throw error;
  }
}

type Next = IteratorResult<StreamPart, ModelCallResult>;

/** Usage comes last, when it is settled what the call cost. @returns how the call ended */
async function* toFrames(
  first: Next,
  parts: Parts,
  { model: { id: model }, payer }: Pick<ModelCall, 'model' | 'payer'>,
  withUsage: boolean,
): AsyncGenerator<string, ModelCallResult, undefined> {
  let next = first;
  let last: StreamPart['chunk'] | undefined;
  for (; next.done !== true; next = await parts.next()) {
    const { chunk } = next.value;
    const { usage, ...rest } = chunk;
    if (usage !== null && usage !== undefined) last = chunk;
    // Clients that did not ask for usage may stumble over a chunk without a choice.
    if ((chunk.choices ?? []).length > 0) yield formatEvent(undefined, { ...rest, model });
  }
  const { failure, settlement } = next.value;
  if (withUsage && last !== undefined)
    yield formatEvent(undefined, { ...last, choices: [], usage: toSettledUsage(last.usage, settlement), model });
  if (failure !== undefined) yield formatEvent(undefined, toFailureEvent(failure, payer.kind));
  yield formatEvent(undefined, '[DONE]');
  return next.value;
}

/** Answers with embeddings. @throws Problem */
export async function answerEmbeddings({
  services: { router, assignments },
  catalog,
  payer,
  request,
  context,
  note,
}: V1Call<EmbeddingsRequest>): Promise<Response> {
  const model = findModel(request.model, catalog.embeddings);
  if (payer.kind === 'anonymous') allowModels([model], payer, { models: catalog.embeddings });
  const { input, encoding_format, dimensions, user } = request;
  const id = randomUUID();
  // The model is the app's own choice; what it costs belongs to the run all the same.
  const assignment =
    payer.kind === 'app' ? await assignments.begin({ app: payer.owner, hold: id, fields: [request.user] }) : undefined;
  // Undefined members are left out of JSON.
  const body = {
    model: model.upstream,
    input,
    encoding_format: encoding_format ?? undefined,
    dimensions: dimensions ?? undefined,
    // A provider must not see that it is being measured.
    user: assignment === undefined ? (user ?? undefined) : undefined,
  };
  const called = await noteOutcome(assignment, () =>
    router.embed({
      id,
      kind: 'v1',
      payer,
      request: context.id,
      model,
      maxCost: computeMaxCost(model, toEmbeddingPrompt(input), 0),
      announce: note,
      signal: context.signal,
      body,
    }),
  );
  if (called.failure !== undefined) throw createCallProblem(called.failure, called.settlement, model.id, payer);
  return createJsonResponse(
    encodeEmbeddings(encoding_format, toCompletionBody(called.answer.body, model.id, called.settlement)),
    {
      headers: formatAnswerHeaders(called.settlement, payer),
    },
  );
}

/** Around each text a model may add some tokens; those that are sent as such are counted. */
const perText = 32;

function toEmbeddingPrompt(input: EmbeddingsRequest['input']): Prompt {
  const all: readonly (string | number | number[])[] = typeof input === 'string' ? [input] : input;
  const texts = all.filter((one) => typeof one === 'string');
  const lists = all.filter((one) => Array.isArray(one));
  const single = all.filter((one) => typeof one === 'number').length;
  return { texts, tokens: lists.reduce((sum, { length }) => sum + length + perText, 0) + single + perText };
}

/** @throws Problem (model-unknown) with the models of a similar name */
function findModel<Found extends { readonly id: string }>(id: string, models: readonly Found[]): Found {
  const model = models.find((one) => one.id === id);
  if (model !== undefined) return model;
  throw createUnknownNameProblem(modelUnknown, {
    says: 'There is no model',
    name: id,
    names: models.map((one) => one.id),
    all: 'GET /v1/models lists all models.',
  });
}

/** The maximum number of output tokens, and the header that says so to who named none. */
function readMaxTokens(
  { max_completion_tokens, max_tokens }: ChatRequest,
  limits: ModelServices['maxTokens'],
): { maxTokens: number; headers: Record<string, string> } {
  const named = max_completion_tokens ?? max_tokens;
  return typeof named === 'number'
    ? { maxTokens: named, headers: {} }
    : { maxTokens: limits.default, headers: { 'x-max-tokens': String(limits.default) } };
}

const body = z.looseObject({ usage: z.looseObject({}).nullish() });

function toCompletionBody(text: string, model: string, settlement: Settlement): Record<string, unknown> {
  const read = body.parse(JSON.parse(text));
  return { ...read, model, usage: toSettledUsage(read.usage, settlement) };
}

/** Usage with the settled cost. One that is not known yet is left out, whatever the router wrote there. */
function toSettledUsage(usage: object | null | undefined, { cost }: Settlement): Record<string, unknown> {
  // Undefined members are left out of JSON.
  return { ...usage, cost: cost === undefined ? undefined : toDollarNumber(cost) };
}

function formatAnswerHeaders(settlement: Settlement, payer: Payer): Record<string, string> {
  return {
    'cache-control': 'no-store',
    ...formatCostHeaders(settlement),
    // Its older name, which hosted apps may read.
    'x-moorage-cost-source': settlement.source,
    ...formatQuotaHeaders(settlement.quota, payer, Date.now()),
  };
}

const embedding = z.looseObject({ embedding: z.unknown() });
const vectors = z.looseObject({ data: z.array(embedding) });
const floats = z.array(z.number());

/**
 * Embeddings as base64 of 32-bit floats where a client asked for that: OpenAI's own do so unasked, and take a list of
 * numbers, which some routers answer all the same, for base64.
 */
function encodeEmbeddings(format: unknown, answer: Record<string, unknown>): Record<string, unknown> {
  if (format !== 'base64') return answer;
  const { data } = vectors.parse(answer);
  return {
    ...answer,
    data: data.map((entry) => {
      const read = floats.safeParse(entry.embedding);
      return read.success ? { ...entry, embedding: encodeBase64(read.data) } : entry;
    }),
  };
}

function encodeBase64(numbers: readonly number[]): string {
  const bytes = Buffer.alloc(numbers.length * 4);
  numbers.forEach((number, index) => bytes.writeFloatLE(number, index * 4));
  return bytes.toString('base64');
}

/** As OpenAI names kinds of errors. */
const types: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  402: 'insufficient_quota',
  403: 'permission_error',
  404: 'not_found_error',
  429: 'rate_limit_error',
};

/** The `error` member of problems of /v1, which is where OpenAI clients look; none at other paths. */
export function toOpenAiError(problem: Problem, path: string): Readonly<Record<string, unknown>> {
  if (!path.startsWith('/v1/')) return {};
  const { status, slug } = problem.type;
  return {
    error: {
      message: problem.message,
      type: types[status] ?? (status < 500 ? 'invalid_request_error' : 'server_error'),
      code: slug,
      param: problem.errors[0]?.field ?? null,
    },
  };
}

/** Event of a stream that failed after it began. */
function toFailureEvent(failure: RouterFailure, payer: Payer['kind']): Record<string, unknown> {
  return { error: { message: describeFailure(failure, payer), type: 'server_error', code: failure.kind, param: null } };
}
