// The metered router: reserves the maximum cost of a call, makes it, then settles what it cost or releases the hold.
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '../../lib/telemetry.ts';
import {
  type CallsInFlight,
  type CostSource,
  type Hold,
  type Holds,
  isDoubtful,
  type Ledger,
  marginAccount,
  marginLines,
  marginOf,
  type Money,
  moneyToNumber,
  type Payer,
  type PriceList,
  priceOf,
  type Prices,
  type PriceVersion,
  type Quota,
  type Reservation,
  sumMoney,
  type Usage,
  zero,
  maxCallCost,
} from '../billing/index.ts';
import { type RouterAnswer, cancelledMessage, RouterFailure } from './router/responses.ts';
import type { RouterCall, RouterClient, StreamPart } from './router/client.ts';
import type { ModelMetrics } from './metrics.ts';
import type { Model } from './catalog.ts';
import { type Conversation, promptOfConversation } from './conversation.ts';

/** A call of a model: who pays for it, what it is for, and what the router gets. */
export interface ModelCall extends Pick<RouterCall, 'body' | 'signal'> {
  /** A UUID for its hold; a new one when left out. */
  readonly id?: string;
  readonly kind: 'ask' | 'compare' | 'v1' | 'tool';
  /** Name of the tool that makes the call. */
  readonly tool?: string | undefined;
  readonly payer: Payer;
  /** Id of the request that makes the call. */
  readonly request?: string | undefined;
  /** Id of the model, as in models.yaml. */
  readonly model: string;
  /** The maximum that it can cost, which is reserved. */
  readonly maxCost: Money;
  /** List prices of the model. */
  readonly prices: Prices;
}

/** What a call has cost. `none`: nothing was billed; `pending`: not known yet. */
export interface Settlement {
  readonly cost: Money | undefined;
  /** What we charge the caller for it; while the cost is pending, nothing yet. */
  readonly charged: Money;
  readonly source: CostSource | 'pending' | 'none';
  readonly latencyMs: number;
  readonly quota: Quota | undefined;
}

/** What a call returned, and how it was settled. */
export type ModelCallResult = { readonly settlement: Settlement } & (
  | { readonly answer: RouterAnswer; readonly failure?: undefined }
  | { readonly failure: RouterFailure; readonly answer?: undefined }
);

export interface MeteredRouterOptions {
  readonly ledger: Ledger;
  readonly holds: Holds;
  readonly router: RouterClient;
  readonly metrics: ModelMetrics;
  readonly log: Logger;
  /** Longest call; a hold outlives it. */
  readonly callMs: number;
  readonly prices: PriceList;
  /** Calls that the platform pays. */
  readonly inFlight: CallsInFlight;
  /** Waits between lookups of a cost that only a caller's own key can find; default 1, 4 and 15 s. */
  readonly lookupMs?: readonly number[];
}

/** A call with the money reserved for it: to be made by `makeChat` or `makeStream`. */
export interface ReservedCall {
  readonly call: ModelCall;
  readonly hold: Hold;
  /** What is reserved for our margin on it, against the daily limit of the key; none where there is no margin. */
  readonly marginHold: Hold | undefined;
  /** The version of the price list that was in effect when it was reserved. */
  readonly version: PriceVersion;
}

/** A call in progress. */
interface BegunCall extends ReservedCall {
  /** Lets the next call of the caller begin. */
  readonly end: () => void;
  readonly since: number;
}

/** Failures of the router are part of a result; what a method throws was neither called nor charged. */
export class MeteredRouter {
  readonly #options: MeteredRouterOptions;

  constructor(options: MeteredRouterOptions) {
    this.#options = options;
  }

  /** A chat completion in one piece. @throws Problem (quota-exhausted, calls-stopped, calls-in-flight, ledger-unavailable) */
  async chat(call: ModelCall): Promise<ModelCallResult> {
    return this.#whole(await this.#reserve(call), (routed) => this.#options.router.chat(routed));
  }

  /** The same for a call that is reserved. @throws Problem (calls-stopped, calls-in-flight); nothing stays reserved then */
  async makeChat(reserved: ReservedCall): Promise<ModelCallResult> {
    return this.#whole(await this.#begin(reserved), (routed) => this.#options.router.chat(routed));
  }

  /** Embeddings. @throws Problem (quota-exhausted, ledger-unavailable) */
  async embed(call: ModelCall): Promise<ModelCallResult> {
    return this.#whole(await this.#reserve(call), (routed) => this.#options.router.embed(routed));
  }

  /**
   * A chat completion piece by piece; returns its result at the end. A reader may leave early: what is known of the cost
   * is settled then. @throws Problem (quota-exhausted, ledger-unavailable) before the first piece
   */
  async *stream(call: ModelCall): AsyncGenerator<StreamPart, ModelCallResult, undefined> {
    return yield* this.#streamed(await this.#reserve(call));
  }

  /** The same for a call that is reserved; it has to be read. @throws Problem as `makeChat`, before the first piece */
  async *makeStream(reserved: ReservedCall): AsyncGenerator<StreamPart, ModelCallResult, undefined> {
    return yield* this.#streamed(await this.#begin(reserved));
  }

  async *#streamed(reserved: BegunCall): AsyncGenerator<StreamPart, ModelCallResult, undefined> {
    let outcome: RouterAnswer | RouterFailure = new RouterFailure('cancelled', cancelledMessage);
    let result: ModelCallResult | undefined;
    try {
      outcome = yield* this.#options.router.stream(routerCall(reserved));
    } catch (error) {
      outcome = asFailure(error);
    } finally {
      result = await this.#close(reserved, outcome);
    }
    return result;
  }

  /**
   * Reserves all of these calls, or none of them. Until one is made, what is reserved for it is no call in flight. @throws
   * Problem (quota-exhausted, for what they can cost together; ledger-unavailable)
   */
  async reserveAll(calls: readonly ModelCall[]): Promise<ReservedCall[]> {
    const version = this.#options.prices.at();
    const parts = calls.map((call) => ({
      call,
      version,
      // Calls with the caller's own key do not wait for a turn.
      own: { ...this.#toReservation(call, version), waits: call.payer.key === undefined },
      margin: this.#toMargin(call, version),
    }));
    const holds = await this.#options.holds.reserveAll(parts.flatMap(({ own, margin }) => [own, ...margin]));
    const byId = new Map(holds.map((hold) => [hold.id, hold]));
    return parts.flatMap(({ call, own, margin: [margin] }) => {
      const hold = byId.get(own.id);
      return hold === undefined
        ? []
        : [{ call, version, hold, marginHold: margin === undefined ? undefined : byId.get(margin.id) }];
    });
  }

  async #whole(reserved: BegunCall, make: (routed: RouterCall) => Promise<RouterAnswer>): Promise<ModelCallResult> {
    return this.#close(reserved, await make(routerCall(reserved)).catch(asFailure));
  }

  /** Reserves a call that begins now. */
  async #reserve(call: ModelCall): Promise<BegunCall> {
    const { holds, prices } = this.#options;
    const version = prices.at();
    const [margin] = this.#toMargin(call, version);
    const marginHold = margin === undefined ? undefined : await holds.reserve(margin);
    try {
      return { call, marginHold, version, ...(await this.#takeTurn(call, this.#toReservation(call, version))) };
    } catch (error) {
      if (marginHold !== undefined) await holds.release(marginHold);
      throw error;
    }
  }

  /** Begins a call that is reserved, when its turn comes. */
  async #begin(reserved: ReservedCall): Promise<BegunCall> {
    const { call, hold, version } = reserved;
    if (call.payer.key !== undefined) return { ...reserved, end: () => undefined, since: performance.now() };
    try {
      return { ...reserved, ...(await this.#takeTurn(call, { ...this.#toReservation(call, version), id: hold.id })) };
    } catch (error) {
      await this.#options.holds.release(hold);
      await this.#releaseMargin(reserved);
      throw error;
    }
  }

  /** Calls that the platform pays wait until the ledger lets one more of them be in flight. */
  async #takeTurn(
    { payer, signal }: ModelCall,
    reservation: Reservation,
  ): Promise<Pick<BegunCall, 'hold' | 'end' | 'since'>> {
    const { holds, inFlight } = this.#options;
    const { reserved: hold, end } =
      payer.key === undefined
        ? await inFlight.begin(`${payer.kind}:${payer.owner}`, signal, () =>
            holds.reserve({ ...reservation, flight: inFlight.limits }),
          )
        : { reserved: await holds.reserve(reservation), end: () => undefined };
    return { hold, end, since: performance.now() };
  }

  #toReservation(call: ModelCall, version: PriceVersion): Reservation {
    const { payer, maxCost, id = randomUUID() } = call;
    return { id, payer, maxCost, ttlMs: this.#ttlMs, usage: usageOf({ call, version }, {}) };
  }

  /** The router bills the cost to the key itself, without a limit here; the margin is ours, and counts to that of the key. */
  #toMargin(call: ModelCall, version: PriceVersion): Reservation[] {
    const { payer } = call;
    const maxCost = marginOf(call.maxCost, payer, version, itemOf(call));
    const credit = { account: marginAccount(this.#options.router.name), limit: null };
    return maxCost === zero ? [] : [{ id: randomUUID(), payer, maxCost, ttlMs: this.#ttlMs, credit }];
  }

  /** A hold outlives its call. */
  get #ttlMs(): number {
    return this.#options.callMs + 60_000;
  }

  async #releaseMargin({ marginHold }: Pick<ReservedCall, 'marginHold'>): Promise<void> {
    if (marginHold !== undefined) await this.#options.holds.release(marginHold);
  }

  /** Settles, releases or leaves pending. The caller gets the result, whatever happens to the database meanwhile. */
  async #close(reserved: BegunCall, outcome: RouterAnswer | RouterFailure): Promise<ModelCallResult> {
    const latencyMs = Math.round(performance.now() - reserved.since);
    this.#count(reserved.call, outcome, latencyMs);
    try {
      return outcome instanceof RouterFailure
        ? { failure: outcome, settlement: await this.#closeFailed(reserved, outcome, latencyMs) }
        : { answer: outcome, settlement: await this.#closeAnswered(reserved, outcome, latencyMs) };
    } finally {
      reserved.end();
    }
  }

  async #closeFailed(reserved: ReservedCall, failure: RouterFailure, latencyMs: number): Promise<Settlement> {
    if (!failure.costsNothing) {
      // The router reported the failure itself and sent no tokens: without a record of its own, it has billed nothing.
      const estimate = failure.kind === 'broken' && failure.status !== undefined ? zero : undefined;
      return this.#pend(reserved, failure.reference, { latencyMs }, estimate);
    }
    const quota = await this.#options.holds.release(reserved.hold);
    await this.#releaseMargin(reserved);
    return { cost: undefined, charged: zero, source: 'none', latencyMs, quota };
  }

  async #closeAnswered(reserved: ReservedCall, answer: RouterAnswer, latencyMs: number): Promise<Settlement> {
    const { cost, reference, tokensIn, tokensOut } = answer;
    const measured = {
      latencyMs,
      ...(tokensIn === undefined ? {} : { tokensIn }),
      ...(tokensOut === undefined ? {} : { tokensOut }),
    };
    if (cost === undefined) return this.#pend(reserved, reference, measured);
    const { holds, router } = this.#options;
    const charged = marginFor(reserved, cost.amount);
    const quota = await holds.settleBehind(reserved.hold, {
      cost: cost.amount,
      source: cost.source,
      usage: usageOf(reserved, measured),
      lines: marginLines(charged, reserved.call.payer, router.name),
      frees: reserved.marginHold,
    });
    return { cost: cost.amount, charged, source: cost.source, latencyMs, quota };
  }

  async #pend(
    reserved: ReservedCall,
    reference: string | undefined,
    measured: Partial<Usage> & { latencyMs: number },
    estimate = estimateCost(reserved.call, measured),
  ): Promise<Settlement> {
    const { holds, metrics, log } = this.#options;
    const { call, hold } = reserved;
    metrics.pending(call.model);
    log.warn({ hold: hold.id, model: call.model, reference }, 'cost of a model call is pending');
    await holds.pend(hold, {
      reference: reference ?? null,
      usage: usageOf(reserved, measured),
      estimate,
    });
    if (call.payer.key !== undefined) holds.track(this.#lookUpSoon(reserved, reference, call.payer.key));
    return { cost: undefined, charged: zero, source: 'pending', latencyMs: measured.latencyMs, quota: hold.quota };
  }

  /** Only now is the key here that can read this record: the reconciler will not have it. */
  async #lookUpSoon(reserved: ReservedCall, reference: string | undefined, key: string): Promise<void> {
    const { ledger, router, lookupMs = [1_000, 4_000, 15_000] } = this.#options;
    const { hold, call } = reserved;
    try {
      for (const wait of lookupMs) {
        await sleep(wait, undefined, { ref: false });
        const found = await router.lookUp({ hold: hold.id, reference: reference ?? null }, key).catch(() => undefined);
        if (found?.outcome !== 'found' || isDoubtful(found, { held: hold.maxCost })) continue;
        const { cost, source } = found;
        const lines = marginLines(marginFor(reserved, cost), call.payer, router.name);
        await ledger.settle({ hold: hold.id, cost, source, lines });
        return;
      }
    } finally {
      await this.#releaseMargin(reserved);
    }
  }

  #count({ model, payer }: ModelCall, outcome: RouterAnswer | RouterFailure, latencyMs: number): void {
    const { metrics, log } = this.#options;
    const failed = outcome instanceof RouterFailure;
    metrics.called(model, payer.kind, failed ? outcome.kind : 'answered', latencyMs / 1000);
    if (failed) {
      // Its text is shown to nobody but the owner of the key.
      const { kind, status, said } = outcome;
      if (said !== undefined) log.warn({ model, kind, status, said }, 'the router failed a model call');
      return;
    }
    metrics.tokens(model, 'in', outcome.tokensIn ?? 0);
    metrics.tokens(model, 'out', outcome.tokensOut ?? 0);
    if (outcome.cost !== undefined) metrics.cost(model, payer.kind, moneyToNumber(outcome.cost.amount));
  }
}

function routerCall({ call: { body, prices, signal, payer }, hold }: ReservedCall): RouterCall {
  const priced = prices.in_per_m > zero || (prices.out_per_m ?? zero) > zero;
  return { hold: hold.id, key: payer.key, body, priced, signal };
}

/**
 * What a call costs at list prices: by the tokens that the router counted, else by the maximum, which is never below the
 * bill.
 */
function estimateCost({ prices, maxCost }: ModelCall, { tokensIn, tokensOut }: Partial<Usage>): Money {
  if (tokensIn === undefined) return maxCost;
  if (prices.out_per_m === undefined) return priceOf(tokensIn, prices.in_per_m);
  if (tokensOut === undefined) return maxCost;
  return sumMoney([priceOf(tokensIn, prices.in_per_m), priceOf(tokensOut, prices.out_per_m)]);
}

/** Anything thrown in a call is a failure of it: it must be settled before it is reported. */
function asFailure(error: unknown): RouterFailure {
  return error instanceof RouterFailure
    ? error
    : new RouterFailure('malformed', 'the response could not be read', { cause: error });
}

function marginFor({ call, version }: ReservedCall, cost: Money): Money {
  return marginOf(cost, call.payer, version, itemOf(call));
}

/** As the price list names it: what is asked without a tool has the name of the tool that does the same. */
function itemOf({ kind, tool }: ModelCall): string {
  return tool ?? { ask: 'ask_model', compare: 'compare_models', tool: 'tool', v1: 'v1' }[kind];
}

function usageOf({ call, version }: Pick<ReservedCall, 'call' | 'version'>, measured: Partial<Usage>): Usage {
  const { payer, kind, model, tool, request } = call;
  return {
    kind,
    request,
    priceVersion: version.version,
    model,
    ...(tool === undefined ? {} : { tool }),
    ...(payer.kind === 'app' ? { app: payer.owner } : { caller: payer.owner }),
    ...measured,
  };
}

/** One question to one model. */
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
