// One question to one model through the metered router: whole or streamed.
import { randomUUID } from 'node:crypto';
import { maxCallCost, type Money, type Payer } from '../../billing/index.ts';
import type { Model } from '../catalog.ts';
import type { MeteredRouter, ModelCall, ModelCallResult } from './metered-router.ts';

export interface Question {
  readonly kind: ModelCall['kind'];
  /** Name of the tool that asks. */
  readonly tool?: string;
  readonly payer: Payer;
  readonly model: Model;
  readonly prompt: string;
  readonly system: string | undefined;
  readonly maxTokens: number;
  /** Aborted when the caller disconnects. */
  readonly signal: AbortSignal;
  /** Gets the id of the hold before anything is reserved, for callers that keep account across a crash. */
  readonly announce?: (hold: string) => Promise<void>;
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
  const parts = router.stream(await callFor(question));
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
export function maxCost({
  model,
  prompt,
  system,
  maxTokens,
}: Pick<Question, 'model' | 'prompt' | 'system' | 'maxTokens'>): Money {
  return maxCallCost(model, { texts: system === undefined ? [prompt] : [system, prompt] }, maxTokens);
}

async function callFor(question: Question): Promise<ModelCall> {
  const { kind, tool, payer, model, prompt, system, maxTokens, signal, announce } = question;
  const id = randomUUID();
  await announce?.(id);
  const messages = [
    ...(system === undefined ? [] : [{ role: 'system', content: system }]),
    { role: 'user', content: prompt },
  ];
  return {
    id,
    kind,
    tool,
    payer,
    model: model.id,
    maxCost: maxCost(question),
    priced: model.in_per_m > 0n || model.out_per_m > 0n,
    signal,
    body: { model: model.upstream, messages, max_tokens: maxTokens },
  };
}
