// One metered question to one model: whole or streamed.
import { randomUUID } from 'node:crypto';
import type { Money } from '../../billing/ledger/money.ts';
import type { Model } from '../catalog.ts';
import type { Booked, Meter, Reservation, Use } from './metered-router.ts';
import type { Payer } from '../../billing/payer.ts';
import { mostItCosts } from '../../billing/price.ts';
import type { RouterAnswer } from '../router/answer.ts';
import type { RouterCall, StreamPart } from '../router/client.ts';
import { RouterFailure } from '../router/failure.ts';

export interface Question {
  readonly kind: Use['kind'];
  /** The tool that asks. */
  readonly tool?: string;
  readonly payer: Payer;
  readonly model: Model;
  readonly prompt: string;
  readonly system: string | undefined;
  readonly maxTokens: number;
  /** Aborted when the caller goes away. */
  readonly signal: AbortSignal;
  /**
   * Hears the id of the hold before it is made, and so before anything is spent; for who keeps account across a crash.
   */
  readonly announce?: (hold: string) => Promise<void>;
}

/** What became of a call, and of its money. */
export type Called = { readonly booked: Booked } & (
  | { readonly answer: RouterAnswer; readonly failure?: undefined }
  | { readonly failure: RouterFailure; readonly answer?: undefined }
);

/**
 * Asks and books. Failures of the router are part of the result. @throws Problem (quota-exhausted, ledger-unavailable)
 */
export async function ask(meter: Meter, question: Question): Promise<Called> {
  const reservation = await reserve(meter, question);
  return finish(meter, reservation, meter.router.chat(callOf(question, reservation)));
}

/**
 * The same, piece by piece: yields texts, returns what became of it. Ending it early books what can be known. @throws
 * Problem as `ask`
 */
export async function* askStreaming(meter: Meter, question: Question): AsyncGenerator<string, Called, undefined> {
  const reservation = await reserve(meter, question);
  const parts = textsOf(meter.router.stream(callOf(question, reservation)));
  return yield* bookedStream(meter, reservation, parts);
}

/** Sees to it that a stream is booked, however it ends. */
export async function* bookedStream<Part>(
  meter: Meter,
  reservation: Reservation,
  parts: AsyncGenerator<Part, RouterAnswer, undefined>,
): AsyncGenerator<Part, Called, undefined> {
  let result: RouterAnswer | RouterFailure | undefined;
  let booked: Booked | undefined;
  try {
    result = yield* parts;
  } catch (error) {
    result = asFailure(error);
  } finally {
    // Without a result the reader went away in the middle.
    booked = await meter.close(reservation, result ?? new RouterFailure('cancelled', 'the caller went away'));
  }
  return result instanceof RouterFailure ? { booked, failure: result } : { booked, answer: result };
}

/** Waits for a call and books it. */
export async function finish(meter: Meter, reservation: Reservation, call: Promise<RouterAnswer>): Promise<Called> {
  const result = await call.catch(asFailure);
  const booked = await meter.close(reservation, result);
  return result instanceof RouterFailure ? { booked, failure: result } : { booked, answer: result };
}

/** Anything thrown in a call is a failure of it: it must be booked before it is told. */
function asFailure(error: unknown): RouterFailure {
  return error instanceof RouterFailure
    ? error
    : new RouterFailure('malformed', 'the answer could not be read', { cause: error });
}

async function* textsOf(
  parts: AsyncGenerator<StreamPart, RouterAnswer, undefined>,
): AsyncGenerator<string, RouterAnswer, undefined> {
  try {
    for (;;) {
      const next = await parts.next();
      if (next.done === true) return next.value;
      if (next.value.text !== '') yield next.value.text;
    }
  } finally {
    await parts.return(undefined as never);
  }
}

async function reserve(meter: Meter, question: Question): Promise<Reservation> {
  const { kind, tool, payer, model, announce } = question;
  const id = randomUUID();
  await announce?.(id);
  return meter.reserve({ id, kind, tool, payer, model: model.id, most: mostOf(question) });
}

/** The most that a question can cost: what is reserved for it. */
export function mostOf({
  model,
  prompt,
  system,
  maxTokens,
}: Pick<Question, 'model' | 'prompt' | 'system' | 'maxTokens'>): Money {
  return mostItCosts(model, { texts: system === undefined ? [prompt] : [system, prompt] }, maxTokens);
}

function callOf({ model, prompt, system, maxTokens, payer, signal }: Question, { id }: Reservation): RouterCall {
  const messages = [
    ...(system === undefined ? [] : [{ role: 'system', content: system }]),
    { role: 'user', content: prompt },
  ];
  return {
    hold: id,
    key: payer.key,
    signal,
    priced: model.in_per_m > 0n || model.out_per_m > 0n,
    body: { model: model.upstream, messages, max_tokens: maxTokens },
  };
}
