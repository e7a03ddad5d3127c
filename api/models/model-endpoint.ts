// What endpoints of models have in common: their services, and how a call is answered: whole or streamed, once for each
// Idempotency-Key, with what it cost.
import { z } from 'zod';
import { Problem, buildProblemBody } from '../../lib/problem.ts';
import {
  formatMoney,
  type IdempotencyKeys,
  runOnce,
  toDollarNumber,
  type NoteCall,
  type Payer,
  replayHeaders,
} from '../billing/index.ts';
import {
  createBufferedResponse,
  formatEvent,
  eventStreamType,
  createEventStreamResponse,
  JsonAnswer,
  type RequestContext,
  readIdempotencyKey,
} from '../http/index.ts';
import type { CallerKeys } from './caller-keys.ts';
import type { Catalog } from './catalog.ts';
import type { MeteredRouter, ModelCall, ModelCallResult, Settlement } from './metered-router.ts';
import type { PayerRules } from './payers.ts';
import { createCallProblem } from './problems.ts';
import type { RouterAnswer } from './router/responses.ts';
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

/** An answer, and the headers that go with it: what is stored for an Idempotency-Key. */
export interface PreparedAnswer<Answer> {
  readonly answer: Answer;
  readonly headers: Readonly<Record<string, string>>;
}

export interface AnswerEvent {
  readonly event: string;
  readonly data: unknown;
}

/** The schema of an answer as it is stored for an Idempotency-Key. Create it once: it is costly for a request. */
export function createStoredAnswerSchema<Answer>(answer: z.ZodType<Answer>): z.ZodType<PreparedAnswer<Answer>> {
  return z.object({ answer, headers: z.record(z.string(), z.string()) });
}

export interface ModelRequest<Answer extends object> {
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
export async function answerModelRequest<Answer extends object>(
  services: Pick<ModelServices, 'idempotency' | 'baseUrl'>,
  context: RequestContext,
  request: ModelRequest<Answer>,
): Promise<JsonAnswer<Answer> | Response> {
  const { name, payer, body, stored, whole } = request;
  const isStreamed = body.stream ?? context.mediaType === eventStreamType;
  if (isStreamed && readIdempotencyKey(context.headers) === undefined)
    return streamAnswer(services.baseUrl, context, request);
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

/** A response as it was sent; of a stream, all of its events. */
const storedResponse = z.object({ text: z.string(), headers: z.record(z.string(), z.string()) });

/**
 * Makes a response of /v1 once for each Idempotency-Key, or every time without one. `note` is given only with a key.
 * @throws Problem
 */
export async function respondOnce(
  { idempotency }: Pick<ModelServices, 'idempotency'>,
  context: RequestContext,
  { name, payer, body }: { readonly name: string; readonly payer: Payer; readonly body: unknown },
  respond: (signal: AbortSignal, note: NoteCall | undefined) => Promise<Response>,
): Promise<Response> {
  if (readIdempotencyKey(context.headers) === undefined) return respond(context.signal, undefined);
  const { value, replayed } = await runOnce(idempotency, context, {
    name,
    payer,
    body,
    answer: storedResponse,
    run: async (signal, note) => {
      const response = await respond(signal, note);
      return { text: await response.text(), headers: Object.fromEntries(response.headers) };
    },
  });
  return createBufferedResponse(value.text, { headers: { ...value.headers, ...replayHeaders(replayed) } });
}

/**
 * The answer of a finished call. A key that the router refused is forgotten, so that it is checked again. @throws
 * Problem when the call failed
 */
export function getAnswerOrThrow(
  { keys }: Pick<ModelServices, 'keys'>,
  { model, payer }: Pick<ModelCall, 'model' | 'payer'>,
  { settlement, answer, failure }: ModelCallResult,
): RouterAnswer {
  if (failure === undefined) return answer;
  if (failure.kind === 'key' && payer.key !== undefined) keys.forget(payer.key);
  throw createCallProblem(failure, settlement, model.id, payer);
}

/** Cost, latency and tokens of a call, as ask and compare show them. */
export interface Measurement {
  cost_usd?: number;
  charged_usd: number;
  latency_ms: number;
  tokens_in?: number;
  tokens_out?: number;
}

/** Fields that are not known are left out; a cost of 0 is shown only where nothing was billed. */
export function toMeasurement({ settlement, answer }: ModelCallResult): Measurement {
  const { cost, charged, source, latencyMs } = settlement;
  const nothing = source === 'none' ? 0 : undefined;
  const cost_usd = cost === undefined ? nothing : toDollarNumber(cost);
  return {
    ...(cost_usd === undefined ? {} : { cost_usd }),
    charged_usd: toDollarNumber(charged),
    latency_ms: latencyMs,
    ...(answer?.tokensIn === undefined ? {} : { tokens_in: answer.tokensIn }),
    ...(answer?.tokensOut === undefined ? {} : { tokens_out: answer.tokensOut }),
  };
}

/** The same in headers, in exact digits, for clients that read no other field than their own. */
export function formatCostHeaders({ cost, charged, source }: Settlement): Record<string, string> {
  return {
    'x-cost-source': source,
    'x-charged-usd': formatMoney(charged),
    ...(cost === undefined ? {} : { 'x-cost-usd': formatMoney(cost) }),
  };
}
