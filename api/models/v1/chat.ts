// Chat completions: passed on to the router within limits, and charged to who pays for them.
import { randomUUID } from 'node:crypto';
import {
  createBufferedResponse,
  formatEvent,
  eventStreamType,
  createEventStreamResponse,
  createJsonResponse,
  type RequestContext,
} from '../../http/index.ts';
import { unknownName } from '../../../lib/similar-names.ts';
import type { Catalog } from '../catalog.ts';
import type { ModelCall, ModelCallResult } from '../metered/metered-router.ts';
import { maxCallCost, type NoteCall, type Payer } from '../../billing/index.ts';
import { callProblem } from '../metered/call-problem.ts';
import type { StreamPart } from '../router/client.ts';
import { modelUnknown } from '../problems.ts';
import { allowModels } from '../request.ts';
import type { ModelServices } from '../services.ts';
import { type Assignment, noting, outcomeOf, refusalOf } from './assignments.ts';
import { answerHeaders, completionBody, settledUsage } from './bodies.ts';
import { failureEvent } from './errors.ts';
import { promptOf, readMessages } from './messages.ts';
import { passOn, type ChatRequest } from './request.ts';

export interface V1Call<Request> {
  readonly services: ModelServices;
  readonly catalog: Catalog;
  readonly payer: Payer;
  readonly request: Request;
  readonly context: Pick<RequestContext, 'id' | 'signal'>;
  /** Notes the call before it is made, where the request has an Idempotency-Key. */
  readonly note?: NoteCall | undefined;
}

export interface ChatCall extends V1Call<ChatRequest> {
  /** Whether the events of a stream are sent once all of them are there, and not as they come. */
  readonly atOnce?: boolean;
}

/** Answers whole, or as a stream when the request says so. @throws Problem */
export async function answerChat(call: ChatCall): Promise<Response> {
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
    model: model.id,
    maxCost: maxCallCost(model, promptOf(request, messages), maxTokens),
    prices: model,
    signal: AbortSignal.any([context.signal, leaving.signal]),
    // A provider must not see that it is being measured.
    body: passOn(assignment === undefined ? request : { ...request, user: undefined }, messages, {
      upstream: model.upstream,
      maxTokens,
    }),
  };
  await call.note?.(id, model.id);
  if (request.stream === true) return streamed(call, modelCall, { leaving, assignment, headers });
  const called = await noting(assignment, () => router.chat(modelCall));
  if (called.failure !== undefined) throw callProblem(called.failure, called.settlement, model.id, payer);
  return createJsonResponse(completionBody(called.answer.body, model.id, called.settlement), {
    headers: { ...answerHeaders(called.settlement, payer), ...headers },
  });
}

interface StreamOptions {
  readonly leaving: AbortController;
  readonly assignment: Assignment | undefined;
  readonly headers: Readonly<Record<string, string>>;
}

/** The first event decides between a stream and a problem. */
async function streamed(
  { services: { router }, payer, request, atOnce = false }: ChatCall,
  modelCall: ModelCall,
  { leaving, assignment, headers }: StreamOptions,
): Promise<Response> {
  const parts = noted(router.stream(modelCall), assignment);
  const first = await parts.next();
  if (first.done === true && first.value.failure !== undefined)
    throw callProblem(first.value.failure, first.value.settlement, modelCall.model, payer);
  const events = frames(first, parts, modelCall, request.stream_options?.include_usage === true);
  if (atOnce) return gathered(events, modelCall, headers);
  return createEventStreamResponse(events, {
    headers,
    abort: () => {
      leaving.abort();
    },
  });
}

/** All events of a stream in one response. @throws Problem where the call failed, even at its last event */
async function gathered(
  events: ReturnType<typeof frames>,
  { model, payer }: ModelCall,
  headers: StreamOptions['headers'],
): Promise<Response> {
  let text = '';
  let next = await events.next();
  for (; next.done !== true; next = await events.next()) text += next.value;
  const { failure, settlement } = next.value;
  if (failure !== undefined) throw callProblem(failure, settlement, model, payer);
  return createBufferedResponse(text, {
    headers: { 'content-type': eventStreamType, ...answerHeaders(settlement, payer), ...headers },
  });
}

type Parts = AsyncGenerator<StreamPart, ModelCallResult, undefined>;

/** The parts of a stream; how it ended is noted before its reader can know. */
async function* noted(parts: Parts, assignment: Assignment | undefined): Parts {
  try {
    const result = yield* parts;
    await assignment?.end(outcomeOf(result));
    return result;
  } catch (error) {
    await assignment?.end(refusalOf(error));
    throw error;
  }
}

type Next = IteratorResult<StreamPart, ModelCallResult>;

/** Usage comes last, when it is settled what the call cost. @returns how the call ended */
async function* frames(
  first: Next,
  parts: Parts,
  { model, payer }: Pick<ModelCall, 'model' | 'payer'>,
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
    yield formatEvent(undefined, { ...last, choices: [], usage: settledUsage(last.usage, settlement), model });
  if (failure !== undefined) yield formatEvent(undefined, failureEvent(failure, payer.kind));
  yield formatEvent(undefined, '[DONE]');
  return next.value;
}

/** @throws Problem (model-unknown) with the models of a similar name */
export function findModel<Found extends { readonly id: string }>(id: string, models: readonly Found[]): Found {
  const model = models.find((one) => one.id === id);
  if (model !== undefined) return model;
  throw unknownName(modelUnknown, {
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
