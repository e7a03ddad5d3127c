// The metered router: reserves the maximum cost of a model call, makes it, then settles what it cost or gives the money back.
import { setTimeout as sleep } from 'node:timers/promises';
import { Counter, Histogram, type Registry } from 'prom-client';
import type { Logger } from '../../lib/telemetry.ts';
import {
  type CallsInFlight,
  type CostSource,
  formatMoney,
  isDoubtful,
  computeMargin,
  type Money,
  toDollarNumber,
  type Payer,
  type PriceList,
  computePrice,
  type Prices,
  type PriceVersion,
  type Quota,
  type Spend,
  type SpendingItem,
  sumMoney,
  type Usage,
  type Wallet,
  zero,
} from '../billing/index.ts';
import type { CallerKeys } from './caller-keys.ts';
import { createCallProblem } from './problems.ts';
import type { RouterCall, RouterClient, StreamPart } from './router/client.ts';
import { cancelledMessage, RouterFailure } from './router/failures.ts';
import type { RouterAnswer } from './router/openrouter.ts';

/** A call of a model, from the endpoint to the router: who pays for it, what it is for, and what the router gets. */
export interface ModelCall extends RouterCall {
  readonly kind: 'ask' | 'compare' | 'v1' | 'tool';
  /** Name of the tool that makes the call. */
  readonly tool?: string | undefined;
  readonly payer: Payer;
  /** Id of the request that makes the call; its sender finds the call by this id in the usage records. */
  readonly request?: string | undefined;
  readonly model: Prices & { readonly id: string };
  /** The maximum that it can cost, which is reserved. */
  readonly maxCost: Money;
  /** Gets the id of the hold and the model before anything is reserved, for callers that keep account across a crash. */
  readonly announce?: ((hold: string, model: string) => Promise<unknown>) | undefined;
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
  readonly wallet: Wallet;
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

/** A call in progress. */
interface BegunCall {
  readonly call: ModelCall;
  readonly spend: Spend;
  readonly since: number;
}

/**
 * Failures of the router are part of a result; what a method throws was neither called nor charged. `reserved` is the money
 * of a call that `reserveAll` reserved.
 */
export class MeteredRouter {
  readonly #options: MeteredRouterOptions;

  constructor(options: MeteredRouterOptions) {
    this.#options = options;
  }

  /** A chat completion in one piece. @throws Problem (quota-exhausted, calls-stopped, calls-in-flight, ledger-unavailable) */
  async chat(call: ModelCall, reserved?: Spend): Promise<ModelCallResult> {
    const begun = await this.#begin(call, reserved);
    return this.#close(begun, await this.#options.router.chat(call).catch(toFailure));
  }

  /** Embeddings. @throws Problem as `chat` */
  async embed(call: ModelCall): Promise<ModelCallResult> {
    const begun = await this.#begin(call, undefined);
    return this.#close(begun, await this.#options.router.embed(call).catch(toFailure));
  }

  /**
   * A chat completion piece by piece; returns its result at the end. A reader may leave early: what is known of the cost
   * is settled then. @throws Problem as `chat`, before the first piece
   */
  async *stream(call: ModelCall, reserved?: Spend): AsyncGenerator<StreamPart, ModelCallResult, undefined> {
    const begun = await this.#begin(call, reserved);
    let outcome: RouterAnswer | RouterFailure = new RouterFailure('cancelled', cancelledMessage);
    let result: ModelCallResult | undefined;
    try {
      outcome = yield* this.#options.router.stream(call);
    } catch (error) {
      outcome = toFailure(error);
    } finally {
      result = await this.#close(begun, outcome);
    }
    return result;
  }

  /** The same, but only the texts that are not empty. @throws Problem as `stream` */
  async *streamTexts(call: ModelCall, reserved?: Spend): AsyncGenerator<string, ModelCallResult, undefined> {
    const parts = this.stream(call, reserved);
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

  /**
   * Reserves all of these calls, or none of them. Each has to be made, by `chat` or `stream`. @throws Problem
   * (quota-exhausted, for what they can cost together; ledger-unavailable)
   */
  async reserveAll(calls: readonly ModelCall[]): Promise<Spend[]> {
    await Promise.all(calls.map(async (call) => call.announce?.(call.id, call.model.id)));
    const version = this.#options.prices.at();
    return this.#options.wallet.reserveAll(calls.map((call) => this.#toItem(call, version)));
  }

  async #begin(call: ModelCall, reserved: Spend | undefined): Promise<BegunCall> {
    if (reserved !== undefined) {
      await reserved.begin();
      return { call, spend: reserved, since: performance.now() };
    }
    await call.announce?.(call.id, call.model.id);
    const { wallet, prices } = this.#options;
    const spend = await wallet.reserve(this.#toItem(call, prices.at()));
    return { call, spend, since: performance.now() };
  }

  #toItem(call: ModelCall, version: PriceVersion): SpendingItem {
    const { id, payer, maxCost: amount, signal } = call;
    const { callMs, inFlight, router } = this.#options;
    const on = (cost: Money): Money => computeMargin(cost, payer, version, toPriceListItem(call));
    return {
      id,
      payer,
      amount,
      // A hold outlives its call.
      ttlMs: callMs + 60_000,
      debit: payer.debit,
      credit: payer.credit,
      usage: toUsage(call, version),
      margin: { router: router.name, on },
      turn: payer.key === undefined ? { calls: inFlight, signal } : undefined,
    };
  }

  /** Settles, releases or leaves pending. The caller gets the result, whatever happens to the database meanwhile. */
  async #close(begun: BegunCall, outcome: RouterAnswer | RouterFailure): Promise<ModelCallResult> {
    const latencyMs = Math.round(performance.now() - begun.since);
    this.#count(begun.call, outcome, latencyMs);
    return outcome instanceof RouterFailure
      ? { failure: outcome, settlement: await this.#closeFailed(begun, outcome, latencyMs) }
      : { answer: outcome, settlement: await this.#closeAnswered(begun, outcome, latencyMs) };
  }

  async #closeFailed(begun: BegunCall, failure: RouterFailure, latencyMs: number): Promise<Settlement> {
    if (failure.costsNothing)
      return { cost: undefined, charged: zero, source: 'none', latencyMs, quota: await begun.spend.release() };
    // The router reported the failure itself and sent no tokens: unless its records show a cost, it has billed nothing.
    const estimate = failure.kind === 'broken' && failure.status !== undefined ? zero : undefined;
    return this.#pend(begun, failure.reference, { latencyMs }, estimate);
  }

  async #closeAnswered(begun: BegunCall, answer: RouterAnswer, latencyMs: number): Promise<Settlement> {
    const { cost, reference, tokensIn, tokensOut } = answer;
    const measured = {
      latencyMs,
      ...(tokensIn === undefined ? {} : { tokensIn }),
      ...(tokensOut === undefined ? {} : { tokensOut }),
    };
    if (cost === undefined) return this.#pend(begun, reference, measured);
    const { amount, source } = cost;
    const { spend } = begun;
    const charged = spend.marginOn(amount);
    const quota = await spend.settleBehind({ cost: amount, source, usage: { ...spend.usage, ...measured } });
    return { cost: amount, charged, source, latencyMs, quota };
  }

  async #pend(
    { call, spend }: BegunCall,
    reference: string | undefined,
    measured: Partial<Usage> & { latencyMs: number },
    estimate = estimateCost(call, measured),
  ): Promise<Settlement> {
    const { metrics, log } = this.#options;
    const { key } = call.payer;
    metrics.pending(call.model.id);
    log.warn({ hold: call.id, model: call.model.id, reference }, 'cost of a model call is pending');
    const quota = await spend.pend(
      { reference: reference ?? null, usage: { ...spend.usage, ...measured }, estimate },
      // Only now is the key here that can read this record: the reconciler will not have it.
      key === undefined ? undefined : () => this.#lookUpSoon(call, reference, key),
    );
    return { cost: undefined, charged: zero, source: 'pending', latencyMs: measured.latencyMs, quota };
  }

  async #lookUpSoon(
    { id, maxCost }: ModelCall,
    reference: string | undefined,
    key: string,
  ): Promise<{ cost: Money; source: CostSource } | undefined> {
    const { router, lookupMs = [1_000, 4_000, 15_000] } = this.#options;
    for (const wait of lookupMs) {
      await sleep(wait, undefined, { ref: false });
      const found = await router.lookUp({ hold: id, reference: reference ?? null }, key).catch(() => undefined);
      if (found?.outcome !== 'found' || isDoubtful(found, { held: maxCost })) continue;
      return { cost: found.cost, source: found.source };
    }
    return undefined;
  }

  #count({ model: { id: model }, payer }: ModelCall, outcome: RouterAnswer | RouterFailure, latencyMs: number): void {
    const { metrics, log } = this.#options;
    const failed = outcome instanceof RouterFailure;
    metrics.countCall(model, payer.kind, failed ? outcome.kind : 'answered', latencyMs / 1000);
    if (failed) {
      // Its text is shown only to the owner of the key.
      const { kind, status, said } = outcome;
      if (said !== undefined) log.warn({ model, kind, status, said }, 'the router failed during a model call');
      return;
    }
    metrics.tokens(model, 'in', outcome.tokensIn ?? 0);
    metrics.tokens(model, 'out', outcome.tokensOut ?? 0);
    if (outcome.cost !== undefined) metrics.cost(model, payer.kind, toDollarNumber(outcome.cost.amount));
  }
}

/**
 * What a call costs at list prices: by the tokens that the router counted, else by the maximum, which is never below the
 * bill.
 */
function estimateCost({ model, maxCost }: ModelCall, { tokensIn, tokensOut }: Partial<Usage>): Money {
  if (tokensIn === undefined) return maxCost;
  if (model.out_per_m === undefined) return computePrice(tokensIn, model.in_per_m);
  if (tokensOut === undefined) return maxCost;
  return sumMoney([computePrice(tokensIn, model.in_per_m), computePrice(tokensOut, model.out_per_m)]);
}

/** Anything thrown in a call is a failure of it: it must be settled before it is reported. */
function toFailure(error: unknown): RouterFailure {
  return error instanceof RouterFailure
    ? error
    : new RouterFailure('malformed', 'the response could not be read', { cause: error });
}

/** As the price list names it: a call without a tool has the name of the tool that does the same. */
function toPriceListItem({ kind, tool }: ModelCall): string {
  return tool ?? { ask: 'ask_model', compare: 'compare_models', tool: 'tool', v1: 'v1' }[kind];
}

function toUsage({ payer, kind, model, tool, request }: ModelCall, { version }: PriceVersion): Usage {
  return {
    kind,
    request,
    priceVersion: version,
    model: model.id,
    ...(tool === undefined ? {} : { tool }),
    ...(payer.kind === 'app' ? { app: payer.owner } : { caller: payer.owner }),
  };
}

/**
 * The answer of a finished call. A key that the router refused is forgotten, so that it is checked again. @throws
 * Problem when the call failed
 */
export function getAnswerOrThrow(
  { keys }: { readonly keys: Pick<CallerKeys, 'forget'> },
  { model, payer }: Pick<ModelCall, 'model' | 'payer'>,
  { settlement, answer, failure }: ModelCallResult,
): RouterAnswer {
  if (failure === undefined) return answer;
  if (failure.kind === 'key' && payer.key !== undefined) keys.forget(payer.key);
  throw createCallProblem(failure, settlement, model.id, payer);
}

/** Cost, latency and tokens of a call, as ask and compare show them. */
interface Measurement {
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

/** Metrics of model calls. Labels are ids from models.yaml, kinds and outcomes from here: sets that cannot grow. */
export interface ModelMetrics {
  /** `outcome`: answered, or the kind of failure. */
  countCall(model: string, kind: Payer['kind'], outcome: string, seconds: number): void;
  tokens(model: string, direction: 'in' | 'out', count: number): void;
  cost(model: string, kind: Payer['kind'], usd: number): void;
  pending(model: string): void;
  countEstimated(count: number): void;
}

export function createModelMetrics(registry: Registry): ModelMetrics {
  const registers = [registry];
  const calls = new Counter({
    name: 'moorage_model_calls_total',
    help: 'Model calls by outcome.',
    labelNames: ['model', 'caller', 'outcome'],
    registers,
  });
  const seconds = new Histogram({
    name: 'moorage_model_call_duration_seconds',
    help: 'Time until the model router completed its response.',
    labelNames: ['model'],
    buckets: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160],
    registers,
  });
  const tokens = new Counter({
    name: 'moorage_model_tokens_total',
    help: 'Tokens as counted by the model router.',
    labelNames: ['model', 'direction'],
    registers,
  });
  const cost = new Counter({
    name: 'moorage_model_cost_usd_total',
    help: 'Cost billed by the model router, in USD. The ledger has the exact amounts.',
    labelNames: ['model', 'caller'],
    registers,
  });
  const pending = new Counter({
    name: 'moorage_model_costs_pending_total',
    help: 'Model calls whose cost was not known when they ended.',
    labelNames: ['model'],
    registers,
  });
  const estimated = new Counter({
    name: 'moorage_model_costs_estimated_total',
    help: 'Model calls that were settled at an estimate, since their cost was never found.',
    registers,
  });
  return {
    countCall(model, caller, outcome, took) {
      calls.inc({ model, caller, outcome });
      seconds.observe({ model }, took);
    },
    tokens(model, direction, count) {
      tokens.inc({ model, direction }, count);
    },
    cost(model, caller, usd) {
      cost.inc({ model, caller }, usd);
    },
    pending(model) {
      pending.inc({ model });
    },
    countEstimated(count) {
      estimated.inc(count);
    },
  };
}
