// Makes metered calls of apps: takes a slot, reserves the price, sends the request and settles. /api/projects/{slug}/call,
// the paths below it and the tools of apps all call apps through this file.
import { randomUUID } from 'node:crypto';
import { finished } from 'node:stream/promises';
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import { z } from 'zod';
import { Problem, type ProblemType } from '../../../lib/problem.ts';
import { JsonAnswer, type RequestContext } from '../../http/index.ts';
import {
  computeCharge,
  formatQuotaHeaders,
  idempotencyInFlight,
  idempotencyMismatch,
  isFree,
  lowQuotaFields,
  toLowQuotaView,
  type Money,
  type Payer,
  type PriceList,
  type PriceVersion,
  type Quota,
  quotaExhausted,
  replayHeaders,
  type Replays,
  toRevenueAccount,
  selectPriceAccounts,
  type Spend,
  type Wallet,
  zero,
} from '../../billing/index.ts';
import { type PayerFor, payerProblems } from '../../models/index.ts';
import { type Cost, costFields, toCostFields, type Slots, toolBusy, tooManyCalls } from '../../tools/index.ts';
import type { AppClient, AppRequestContent, AppResponse } from './app-client.ts';
import type { Target } from '../directory.ts';
import { appProblems } from '../problems.ts';

export interface AppCallsOptions {
  readonly appClient: AppClient;
  readonly slots: Slots;
  /** Maximum concurrent calls of one app, of all callers together. */
  readonly slotsPerApp: number;
  /** @throws Problem (ledger-unconfigured, ledger-unavailable) while no ledger is open */
  readonly wallet: () => Wallet;
  readonly metrics: AppMetrics;
  readonly prices: PriceList;
}

/** The outcome of a call for its payer. */
export interface CallReceipt {
  readonly cost: Cost;
  readonly quota: Quota | undefined;
  readonly latencyMs: number;
}

/** The app that is called, the payer and the entry point. */
export interface AppCall {
  readonly target: Target;
  readonly payer: Payer;
  readonly via: AppEntryPoint;
  readonly id: string;
  readonly signal: AbortSignal;
}

export class AppCalls {
  readonly #options: AppCallsOptions;
  /** Calls in progress by app; idle apps have no entry. */
  readonly #inProgress = new Map<string, number>();

  constructor(options: AppCallsOptions) {
    this.#options = options;
  }

  /** The current price of a call. */
  get price(): Money {
    return this.#options.prices.at().call;
  }

  /**
   * Sends one request and returns what `take` makes of the response. Charges for it unless the app failed; by default, it
   * failed if it responded with a server error (5xx).
   * Frees the slot when the body of the response is read or destroyed.
   * @throws Problem (app-unreachable, app-timeout, quota-exhausted, too-many-calls, ...)
   */
  async send<Value>(
    call: AppCall,
    request: AppRequestContent,
    take: (response: AppResponse) => Promise<Value>,
    isDue: (response: AppResponse) => boolean = ({ status }) => status < 500,
  ): Promise<CallReceipt & { readonly value: Value }> {
    const { appClient } = this.#options;
    return this.runCharged(call, async (signal, leave) => {
      const response = await appClient.send(call.target, { ...request, id: call.id, signal });
      void finished(response.body)
        .catch(() => undefined)
        .finally(leave);
      try {
        return { value: await take(response), due: isDue(response) };
      } catch (error) {
        response.body.destroy();
        throw appClient.toProblem(error, call.target, signal);
      }
    });
  }

  /** Runs any work with an app and charges it like one call if it is `due`. The work calls `releaseSlot` when it is really over. */
  async runCharged<Value>(
    call: AppCall,
    work: (signal: AbortSignal, leave: () => void) => Promise<{ readonly value: Value; readonly due: boolean }>,
  ): Promise<CallReceipt & { readonly value: Value }> {
    const { target, payer, via } = call;
    const { slots, metrics, prices } = this.#options;
    const version = prices.at();
    const price = version.call;
    const since = performance.now();
    const measureLatency = (): number => Math.round(performance.now() - since);
    const releaseSlot = this.#enter(target, slots.take(payer.owner));
    let spend: Spend | undefined;
    try {
      spend = await this.#reserve(call, version);
      const { value, due } = await work(call.signal, releaseSlot);
      const latencyMs = measureLatency();
      const quota = due ? await this.#settle(call, spend, version, latencyMs) : await spend.release();
      metrics.countCall(via, due ? 'answered' : 'failed', latencyMs / 1000);
      return {
        value,
        quota,
        latencyMs,
        cost: due
          ? {
              known: price,
              charged: computeCharge(price, payer, version, 'call'),
              pending: 0,
              source: price === zero ? 'none' : 'tariff',
            }
          : { known: zero, charged: zero, pending: 0, source: 'none' },
      };
    } catch (error) {
      releaseSlot();
      metrics.countCall(via, toOutcome(error), measureLatency() / 1000);
      await spend?.release();
      throw error;
    }
  }

  /** Takes a slot of the app too, so that a slow app leaves slots for the others. @throws Problem (tool-busy) */
  #enter({ id, slug }: Target, leave: () => void): () => void {
    const callsInProgress = this.#inProgress.get(id) ?? 0;
    if (callsInProgress >= this.#options.slotsPerApp) {
      leave();
      throw new Problem(toolBusy, `${slug} has reached its limit of concurrent calls. Try again in 2 seconds.`, {
        headers: { 'retry-after': '2' },
      });
    }
    this.#inProgress.set(id, callsInProgress + 1);
    let inside = true;
    return () => {
      leave();
      if (!inside) return;
      inside = false;
      const left = (this.#inProgress.get(id) ?? 1) - 1;
      if (left === 0) this.#inProgress.delete(id);
      else this.#inProgress.set(id, left);
    };
  }

  #reserve({ target, payer }: AppCall, version: PriceVersion): Promise<Spend> {
    const { wallet, appClient } = this.#options;
    return wallet().reserve({
      id: randomUUID(),
      payer,
      amount: version.call,
      ttlMs: appClient.limitMs + 60_000,
      ...selectPriceAccounts(payer, toRevenueAccount(target.id), isFree(version, 'call') ? 'call' : undefined),
    });
  }

  /** The author's share is posted once a day, by api/accounting/revenue. */
  #settle(
    { target, payer, id }: AppCall,
    spend: Spend,
    version: PriceVersion,
    latencyMs: number,
  ): Promise<Quota | undefined> {
    return spend.settle({
      cost: version.call,
      source: 'tariff',
      usage: {
        kind: 'app',
        caller: payer.owner,
        app: target.id,
        latencyMs,
        priceVersion: version.version,
        request: id,
      },
    });
  }
}

/** The cost of a call, as every entry point reports it. */
export const receiptFields = {
  ...costFields,
  latency_ms: z.int().describe('Milliseconds until the app responded.'),
  quota: lowQuotaFields.optional(),
  hint: z.string().optional().describe('How to continue; included when the quota runs low.'),
  request_id: z.string().describe('Id of this request in the log; sent to the app as X-Request-Id.'),
};
type ReceiptView = z.output<z.ZodObject<typeof receiptFields>>;

export function toReceiptView({ cost, latencyMs, quota }: CallReceipt, requestId: string): ReceiptView {
  return {
    ...toCostFields(cost),
    latency_ms: latencyMs,
    ...toLowQuotaView(quota),
    request_id: requestId,
  };
}

/** The problems of every endpoint that makes a metered call. */
export const callProblems: readonly ProblemType[] = [
  ...appProblems,
  quotaExhausted,
  ...payerProblems,
  tooManyCalls,
  toolBusy,
  idempotencyInFlight,
  idempotencyMismatch,
];

/** An answer as it is stored for an Idempotency-Key. */
interface StoredView<View> {
  readonly view: View;
  readonly headers: Readonly<Record<string, string>>;
}

/** The schema of an answer as it is stored. Create it once: it is costly for a request. */
export function createStoredViewSchema<View>(view: z.ZodType<View>): z.ZodType<StoredView<View>> {
  return z.object({ view, headers: z.record(z.string(), z.string()) });
}

export interface KeyedCall<View> {
  /** What the request asks for: the same key with another one is refused. Only a hash of it is stored. */
  readonly body: unknown;
  readonly stored: z.ZodType<StoredView<View>>;
  /** Whether the view is stored. One of a failed call is not: the call was free, so that trying again is worthwhile. */
  readonly isStored: (view: View) => boolean;
  readonly run: (
    payer: Payer,
    signal: AbortSignal,
  ) => Promise<{ readonly view: View; readonly quota: Quota | undefined }>;
}

/**
 * Answers a call with JSON and the headers of its payer's quota. Runs it once for each Idempotency-Key, or every time
 * without one. @throws Problem (idempotency-in-flight, idempotency-mismatch, invalid-request, key-refused) and what `run`
 * throws
 */
export async function answerOnce<View>(
  { payerFor, replays }: { readonly payerFor: PayerFor; readonly replays: Replays },
  context: RequestContext,
  { body, stored, isStored, run }: KeyedCall<View>,
): Promise<JsonAnswer<View>> {
  const payer = await payerFor(context);
  const { value, replayed } = await replays.once(context, {
    payer,
    body,
    answer: stored,
    isStored: ({ view }) => isStored(view),
    async run(signal) {
      const { view, quota } = await run(payer, signal);
      return {
        view,
        headers: formatQuotaHeaders(quota, payer, Date.now()),
      };
    },
  });
  return new JsonAnswer(value.view, { ...value.headers, ...replayHeaders(replayed) });
}

/** The entry point of a call. */
export type AppEntryPoint = 'path' | 'json' | 'mcp';

/** Labels are entry points and problem slugs: sets that cannot grow with apps or callers. */
export interface AppMetrics {
  /** `outcome`: answered, failed (the app responded with 5xx), the slug of the problem, or fault. */
  countCall(via: AppEntryPoint, outcome: string, seconds: number): void;
}

export interface AppGauges {
  readonly calls: number;
  readonly operations: number;
}

export function createAppMetrics(registry: Registry, gauges: () => AppGauges): AppMetrics {
  const registers = [registry];
  const calls = new Counter({
    name: 'moorage_app_calls_total',
    help: 'Calls of hosted apps by outcome.',
    labelNames: ['via', 'outcome'],
    registers,
  });
  const seconds = new Histogram({
    name: 'moorage_app_call_duration_seconds',
    help: 'Seconds until an app began to respond.',
    labelNames: ['via'],
    buckets: [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120],
    registers,
  });
  new Gauge({
    name: 'moorage_app_calls_running',
    help: 'Calls of hosted apps in progress.',
    registers,
    collect() {
      this.set(gauges().calls);
    },
  });
  new Gauge({
    name: 'moorage_app_operations',
    help: 'Operations of hosted apps offered as tools.',
    registers,
    collect() {
      this.set(gauges().operations);
    },
  });
  return {
    countCall(via, outcome, took) {
      calls.inc({ via, outcome });
      seconds.observe({ via }, took);
    },
  };
}

export function toOutcome(error: unknown): string {
  return error instanceof Problem ? error.type.slug : 'fault';
}
