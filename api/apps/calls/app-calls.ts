// Metered calls of apps: a slot, the charge, the request. The one way for /api/projects/{slug}/call, the paths below it,
// and operations on /mcp.
import { randomUUID } from 'node:crypto';
import { finished } from 'node:stream/promises';
import { Problem } from '../../../lib/problem.ts';
import {
  chargedOf,
  isFree,
  type Money,
  type Payer,
  type PriceList,
  type PriceVersion,
  type Quota,
  revenueAccount,
  selectPriceAccounts,
  type Spend,
  type Wallet,
  zero,
} from '../../billing/index.ts';
import { type Cost, type Slots, toolBusy } from '../../tools/index.ts';
import type { AppClient, AppRequestContent, AppResponse } from './app-client.ts';
import type { Target } from '../directory.ts';
import { outcomeOf, type AppMetrics, type AppVia } from '../metrics.ts';

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

export interface CallReceipt {
  readonly cost: Cost;
  readonly quota: Quota | undefined;
  readonly latencyMs: number;
}

/** Which app is called, by whom and how. */
export interface AppCall {
  readonly target: Target;
  readonly payer: Payer;
  readonly via: AppVia;
  readonly id: string;
  readonly signal: AbortSignal;
}

export class AppCalls {
  readonly #options: AppCallsOptions;
  /** Calls in progress, by app; an app without any is not in it. */
  readonly #inProgress = new Map<string, number>();

  constructor(options: AppCallsOptions) {
    this.#options = options;
  }

  /** What a call costs now. */
  get price(): Money {
    return this.#options.prices.at().call;
  }

  /**
   * One request, and what `take` makes of its response. Charged then, unless the app failed: by default, unless it
   * responded with a server error (5xx).
   * The slot that it takes is freed when the body of the response is read or destroyed.
   * @throws Problem (app-unreachable, app-timeout, quota-exhausted, too-many-calls, ...)
   */
  async send<Value>(
    call: AppCall,
    request: AppRequestContent,
    take: (response: AppResponse) => Promise<Value>,
    isDue: (response: AppResponse) => boolean = ({ status }) => status < 500,
  ): Promise<CallReceipt & { readonly value: Value }> {
    const { appClient } = this.#options;
    return this.charged(call, async (signal, leave) => {
      const response = await appClient.send(call.target, { ...request, id: call.id, signal });
      void finished(response.body)
        .catch(() => undefined)
        .finally(leave);
      try {
        return { value: await take(response), due: isDue(response) };
      } catch (error) {
        response.body.destroy();
        throw appClient.failure(error, call.target, signal);
      }
    });
  }

  /**
   * Any work with an app, charged like one call when it is `due`. `leave` is to be called when the work is really over.
   */
  async charged<Value>(
    call: AppCall,
    work: (signal: AbortSignal, leave: () => void) => Promise<{ readonly value: Value; readonly due: boolean }>,
  ): Promise<CallReceipt & { readonly value: Value }> {
    const { target, payer, via } = call;
    const { slots, metrics, prices } = this.#options;
    const version = prices.at();
    const price = version.call;
    const since = performance.now();
    const latency = (): number => Math.round(performance.now() - since);
    const leave = this.#enter(target, slots.take(payer.owner));
    let spend: Spend | undefined;
    try {
      spend = await this.#reserve(call, version);
      const { value, due } = await work(call.signal, leave);
      const latencyMs = latency();
      const quota = due ? await this.#settle(call, spend, version, latencyMs) : await spend.release();
      metrics.called(via, due ? 'answered' : 'failed', latencyMs / 1000);
      return {
        value,
        quota,
        latencyMs,
        cost: due
          ? {
              known: price,
              charged: chargedOf(price, payer, version, 'call'),
              pending: 0,
              source: price === zero ? 'none' : 'tariff',
            }
          : { known: zero, charged: zero, pending: 0, source: 'none' },
      };
    } catch (error) {
      leave();
      metrics.called(via, outcomeOf(error), latency() / 1000);
      await spend?.release();
      throw error;
    }
  }

  /**
   * Takes a slot of the app as well, so that a slow app leaves some to the others. @throws Problem (tool-busy)
   */
  #enter({ slug }: Target, leave: () => void): () => void {
    const own = this.#inProgress.get(slug) ?? 0;
    if (own >= this.#options.slotsPerApp) {
      leave();
      throw new Problem(toolBusy, `${slug} has reached its limit of concurrent calls. Try again in 2 seconds.`, {
        headers: { 'retry-after': '2' },
      });
    }
    this.#inProgress.set(slug, own + 1);
    let inside = true;
    return () => {
      leave();
      if (!inside) return;
      inside = false;
      const left = (this.#inProgress.get(slug) ?? 1) - 1;
      if (left === 0) this.#inProgress.delete(slug);
      else this.#inProgress.set(slug, left);
    };
  }

  #reserve({ target: { slug }, payer }: AppCall, version: PriceVersion): Promise<Spend> {
    const { wallet, appClient } = this.#options;
    return wallet().reserve({
      id: randomUUID(),
      payer,
      amount: version.call,
      ttlMs: appClient.limitMs + 60_000,
      ...selectPriceAccounts(payer, revenueAccount(slug), isFree(version, 'call') ? 'call' : undefined),
    });
  }

  /** The share of its author is posted a day at a time, by the room `revenue`. */
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
        app: target.slug,
        latencyMs,
        priceVersion: version.version,
        request: id,
      },
    });
  }
}
