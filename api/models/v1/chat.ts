// Chat completions of hosted apps: passed on to the router within bounds, and booked to the app.
import type { RequestContext } from '../../http/endpoint.ts';
import { eventFrame, eventStreamResponse } from '../../http/event-stream.ts';
import { invalid } from '../../http/validation.ts';
import type { Catalog, Model } from '../catalog.ts';
import { bookedStream, finish, type Called } from '../metered/question.ts';
import type { Reservation } from '../metered/metered-router.ts';
import type { Payer } from '../../billing/payer.ts';
import { mostItCosts } from '../../billing/price.ts';
import { callProblem } from '../metered/call-problem.ts';
import type { RouterCall, StreamPart } from '../router/client.ts';
import type { ModelServices } from '../services.ts';
import { completionBody, answerHeaders } from './bodies.ts';
import { failureEvent } from './errors.ts';
import { passOn, promptOf, unboundedParts, type ChatRequest } from './request.ts';

export interface AppCall<Request> {
  readonly services: ModelServices;
  readonly catalog: Catalog;
  readonly payer: Payer;
  readonly request: Request;
  readonly context: RequestContext;
}

/** Answers whole, or as a stream when the request says so. @throws Problem */
export async function answerChat(call: AppCall<ChatRequest>): Promise<Response> {
  const {
    services: { meter },
    payer,
    request,
    context,
  } = call;
  const model = modelOf(call.request.model, call.catalog);
  const maxTokens = tokensOf(request, call.services.maxTokens);
  refuseUnbounded(request);
  const reservation = await meter.reserve({
    kind: 'v1',
    payer,
    model: model.id,
    most: mostItCosts(model, promptOf(request), maxTokens),
  });
  const leaving = new AbortController();
  const routed: RouterCall = {
    hold: reservation.id,
    key: undefined,
    priced: model.in_per_m > 0n || model.out_per_m > 0n,
    signal: AbortSignal.any([context.signal, leaving.signal]),
    body: passOn(request, model.upstream, maxTokens),
  };
  if (request.stream === true) return streamed(call, model, reservation, routed, leaving);
  const called = await finish(meter, reservation, meter.router.chat(routed));
  if (called.failure !== undefined) throw callProblem(called.failure, called.booked, model.id, payer);
  return Response.json(completionBody(called.answer.body, model.id, called.booked), {
    headers: answerHeaders(called.booked, payer),
  });
}

/** The first event decides between a stream and a problem. */
async function streamed(
  { services: { meter }, payer, request }: AppCall<ChatRequest>,
  model: Model,
  reservation: Reservation,
  routed: RouterCall,
  leaving: AbortController,
): Promise<Response> {
  const parts = bookedStream(meter, reservation, meter.router.stream(routed));
  const first = await parts.next();
  if (first.done === true && first.value.failure !== undefined)
    throw callProblem(first.value.failure, first.value.booked, model.id, payer);
  return eventStreamResponse(frames(first, parts, model.id, request.stream_options?.include_usage === true), {
    abort: () => {
      leaving.abort();
    },
  });
}

type Next = IteratorResult<StreamPart, Called>;

async function* frames(
  first: Next,
  parts: AsyncGenerator<StreamPart, Called, undefined>,
  model: string,
  withUsage: boolean,
): AsyncGenerator<string, void, undefined> {
  let next = first;
  for (; next.done !== true; next = await parts.next()) {
    const frame = frameOf(next.value, model, withUsage);
    if (frame !== undefined) yield frame;
  }
  if (next.value.failure !== undefined) yield eventFrame(undefined, failureEvent(next.value.failure));
  yield eventFrame(undefined, '[DONE]');
}

/** Clients that did not ask for usage may stumble over a chunk without a choice. */
function frameOf({ chunk }: StreamPart, model: string, withUsage: boolean): string | undefined {
  const { usage, ...rest } = chunk;
  const bare = (chunk.choices ?? []).length === 0;
  if (!withUsage) return bare ? undefined : eventFrame(undefined, { ...rest, model });
  const told =
    usage === null || usage === undefined
      ? {}
      : { usage: { ...usage, ...(typeof usage.cost === 'string' ? { cost: Number(usage.cost) } : {}) } };
  return eventFrame(undefined, { ...rest, ...told, model });
}

function modelOf(id: string, catalog: Catalog): Model {
  const model = catalog.get(id);
  if (model !== undefined) return model;
  throw invalid([
    {
      in: 'body',
      field: 'model',
      message: `is not a model of this installation: ${catalog.ids.join(', ')}`,
      fix: 'take one of GET /v1/models',
    },
  ]);
}

/** More than the most is cut, since clients ask for what their model could do. */
function tokensOf(request: ChatRequest, limits: ModelServices['maxTokens']): number {
  return Math.min(request.max_completion_tokens ?? request.max_tokens ?? limits.usual, limits.most);
}

function refuseUnbounded(request: ChatRequest): void {
  const kinds = unboundedParts(request);
  if (kinds.length === 0) return;
  throw invalid([
    {
      in: 'body',
      field: 'messages',
      message: `has content of kind ${kinds.map((kind) => kind.slice(0, 40)).join(', ')}, whose cost has no bound`,
      fix: 'send text and image_url only',
    },
  ]);
}
