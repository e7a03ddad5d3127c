// One question to one model through the metered router: whole or streamed.
import { randomUUID } from 'node:crypto';
import { maxCallCost, type Money, type Payer } from '../../billing/index.ts';
import type { Model } from '../catalog.ts';
import { type Conversation, promptOfConversation } from '../conversation/conversation.ts';
import type { StreamPart } from '../router/client.ts';
import type { MeteredRouter, ModelCall, ModelCallResult, ReservedCall } from './metered-router.ts';

export interface Question extends Conversation {
  readonly kind: ModelCall['kind'];
  /** Name of the tool that asks. */
  readonly tool?: string;
  readonly payer: Payer;
  readonly model: Model;
  readonly maxTokens: number;
  /** Id of the request that asks, by which its sender finds it in the record of uses. */
  readonly request?: string;
  /** Aborted when the caller disconnects. */
  readonly signal: AbortSignal;
  /** Gets the id of the hold and the model before anything is reserved, for callers that keep account across a crash. */
  readonly announce?: ((hold: string, model: string) => Promise<unknown>) | undefined;
}

/** Asks for one whole answer. @throws Problem (quota-exhausted, ledger-unavailable) */
export async function ask(router: MeteredRouter, question: Question): Promise<ModelCallResult> {
  return router.chat(await callFor(question));
}

/** The same, piece by piece: yields texts, returns the result. @throws Problem as `ask` */
export async function* askStreaming(
  router: MeteredRouter,
  question: Question,
): AsyncGenerator<string, ModelCallResult, undefined> {
  return yield* readTexts(router.stream(await callFor(question)));
}

/** The same for a call that is reserved. @throws Problem (calls-stopped, calls-in-flight) */
export function askReserved(
  router: MeteredRouter,
  reserved: ReservedCall,
): AsyncGenerator<string, ModelCallResult, undefined> {
  return readTexts(router.makeStream(reserved));
}

/** Reserves all of several questions, or none of them. @throws Problem (quota-exhausted, ledger-unavailable) */
export async function reserveQuestions(
  router: MeteredRouter,
  questions: readonly Question[],
): Promise<readonly ReservedCall[]> {
  return router.reserveAll(await Promise.all(questions.map(callFor)));
}

async function* readTexts(
  parts: AsyncGenerator<StreamPart, ModelCallResult, undefined>,
): AsyncGenerator<string, ModelCallResult, undefined> {
  try {
    for (;;) {
      const next = await parts.next();
      if (next.done === true) return next.value;
      if (next.value.text !== '') yield next.value.text;
    }
  } finally {
    // A reader who leaves early ends the call as well, which settles it.
    await parts.return(undefined as never);
  }
}

/** The maximum cost of a question, which is reserved for it. */
export function maxCost(question: Pick<Question, 'model' | 'messages' | 'options' | 'maxTokens'>): Money {
  return maxCallCost(question.model, promptOfConversation(question), question.maxTokens);
}

async function callFor(question: Question): Promise<ModelCall> {
  const { kind, tool, payer, model, messages, options, maxTokens, request, signal, announce } = question;
  const id = randomUUID();
  await announce?.(id, model.id);
  return {
    id,
    kind,
    tool,
    payer,
    request,
    model: model.id,
    maxCost: maxCost(question),
    prices: model,
    signal,
    // Options that are undefined are left out of JSON.
    body: { ...options, model: model.upstream, messages, max_tokens: maxTokens },
  };
}
