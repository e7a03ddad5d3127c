// A metered call of an app: a place, the money, the errand. The one way for /api/projects/{slug}/call, its paths, and
// operations on /mcp.
import { randomUUID } from 'node:crypto';
import { finished } from 'node:stream/promises';
import { Problem } from '../../lib/problem.ts';
import { appLines } from '../billing/accrual.ts';
import { revenueAccount } from '../billing/ledger/accounts.ts';
import { zero, type Money } from '../billing/ledger/money.ts';
import type { Bookings, Held } from '../billing/holds.ts';
import type { Payer } from '../billing/payer.ts';
import type { Quota } from '../billing/quota.ts';
import type { Cost } from '../tools/engine/cost.ts';
import type { Slots } from '../tools/engine/slots.ts';
import { toolBusy } from '../tools/problems.ts';
import type { Brought, Courier, Errand } from './app-client.ts';
import type { Target } from './directory.ts';
import { outcomeOf, type AppMetrics, type AppVia } from './metrics.ts';

export interface AppCallsOptions {
  readonly courier: Courier;
  readonly slots: Slots;
  /** Calls of one app at once, of all callers together. */
  readonly placesPerApp: number;
  /** @throws Problem (ledger-unconfigured, ledger-unavailable) while there are no books */
  readonly bookings: () => Bookings;
  readonly metrics: AppMetrics;
  /** What a call is charged. */
  readonly price: Money;
}

export interface Paid {
  readonly cost: Cost;
  readonly quota: Quota | undefined;
  readonly latencyMs: number;
}

/** What a caller of an app wants, and who he is. */
export interface AppCall {
  readonly target: Target;
  readonly payer: Payer;
  readonly via: AppVia;
  readonly id: string;
  readonly signal: AbortSignal;
}

export class AppCalls {
  readonly #options: AppCallsOptions;
  /** Calls under way, by app; which has none is not in it. */
  readonly #underWay = new Map<string, number>();

  constructor(options: AppCallsOptions) {
    this.#options = options;
  }

  /** What a call is charged. */
  get price(): Money {
    return this.#options.price;
  }

  /**
   * One request, and what `take` makes of its answer. Charged then, unless the app answered with a fault of its own
   * (5xx).
   * The place that it takes is given back when the answer's body is read or destroyed.
   * @throws Problem (app-unreachable, app-timeout, quota-exhausted, too-many-calls, ...)
   */
  async send<Value>(
    call: AppCall,
    errand: Pick<Errand, 'method' | 'path' | 'headers' | 'body'>,
    take: (brought: Brought) => Promise<Value>,
  ): Promise<Paid & { readonly value: Value }> {
    const { courier } = this.#options;
    return this.charged(call, async (signal, leave) => {
      const brought = await courier.carry(call.target, { ...errand, id: call.id, signal });
      void finished(brought.body)
        .catch(() => undefined)
        .finally(leave);
      try {
        return { value: await take(brought), due: brought.status < 500 };
      } catch (error) {
        brought.body.destroy();
        throw courier.failure(error, call.target, signal);
      }
    });
  }

  /**
   * Any work with an app, charged like one call when it is `due`. `leave` is to be called when the work is really over.
   */
  async charged<Value>(
    call: AppCall,
    work: (signal: AbortSignal, leave: () => void) => Promise<{ readonly value: Value; readonly due: boolean }>,
  ): Promise<Paid & { readonly value: Value }> {
    const { target, payer, via } = call;
    const { slots, metrics, price } = this.#options;
    const since = performance.now();
    const latency = (): number => Math.round(performance.now() - since);
    const leave = this.#enter(target, slots.take(payer.owner));
    let held: Held | undefined;
    try {
      held = await this.#hold(call);
      const { value, due } = await work(call.signal, leave);
      const latencyMs = latency();
      const quota = due
        ? await this.#settle(target, payer, held, latencyMs)
        : await this.#options.bookings().void(held);
      metrics.called(via, due ? 'answered' : 'failed', latencyMs / 1000);
      return {
        value,
        quota,
        latencyMs,
        cost: due
          ? { known: price, pending: 0, source: price === zero ? 'none' : 'tariff' }
          : { known: zero, pending: 0, source: 'none' },
      };
    } catch (error) {
      leave();
      metrics.called(via, outcomeOf(error), latency() / 1000);
      if (held !== undefined) await this.#options.bookings().void(held);
      throw error;
    }
  }

  /**
   * Takes a place at the app as well, so that one that is slow leaves some to the others. @throws Problem (tool-busy)
   */
  #enter({ slug }: Target, leave: () => void): () => void {
    const own = this.#underWay.get(slug) ?? 0;
    if (own >= this.#options.placesPerApp) {
      leave();
      throw new Problem(toolBusy, `as many calls of ${slug} are under way as one app may have here; try again in 2 s`, {
        headers: { 'retry-after': '2' },
      });
    }
    this.#underWay.set(slug, own + 1);
    let inside = true;
    return () => {
      leave();
      if (!inside) return;
      inside = false;
      const left = (this.#underWay.get(slug) ?? 1) - 1;
      if (left === 0) this.#underWay.delete(slug);
      else this.#underWay.set(slug, left);
    };
  }

  #hold({ target: { slug }, payer }: AppCall): Promise<Held> {
    const { bookings, price, courier } = this.#options;
    return bookings().hold({
      id: randomUUID(),
      payer,
      most: price,
      ttlMs: courier.limitMs + 60_000,
      credit: { account: revenueAccount(slug), limit: null },
    });
  }

  #settle(
    { slug, author, authorShare }: Target,
    payer: Payer,
    held: Held,
    latencyMs: number,
  ): Promise<Quota | undefined> {
    const { bookings, price } = this.#options;
    return bookings().settle(held, {
      cost: price,
      source: 'tariff',
      usage: { kind: 'app', caller: payer.owner, app: slug, latencyMs },
      lines: appLines({ app: slug, author, price, authorShare }),
    });
  }
}
