// A call of a model and its money: hold, call, then settle, void or leave pending.
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '../../../lib/log.ts';
import type { CostSource, Ledger } from '../../billing/ledger/ledger.ts';
import { moneyToNumber, type Money } from '../../billing/ledger/money.ts';
import type { Usage } from '../../billing/ledger/usage.ts';
import type { Bookings, Held } from '../../billing/holds.ts';
import type { ModelMetrics } from './metrics.ts';
import type { Payer } from '../../billing/payer.ts';
import type { Quota } from '../../billing/quota.ts';
import type { RouterAnswer } from '../router/answer.ts';
import type { RouterClient } from '../router/client.ts';
import { RouterFailure } from '../router/failure.ts';

/** What money is spent on. */
export interface Use {
  /** A UUID for its hold; a new one when left out. */
  readonly id?: string;
  readonly kind: 'ask' | 'compare' | 'v1' | 'tool';
  readonly payer: Payer;
  /** Id of the model, as in models.yaml. */
  readonly model: string;
  /** The most that it can cost. */
  readonly most: Money;
  /** The tool that asks. */
  readonly tool?: string | undefined;
}

/** Money that is set aside for a call. */
export interface Reservation extends Held {
  readonly use: Use;
  readonly since: number;
}

/** What a call has cost. `none`: nothing was billed; `pending`: not known yet. */
export interface Booked {
  readonly cost: Money | undefined;
  readonly source: CostSource | 'pending' | 'none';
  readonly latencyMs: number;
  readonly quota: Quota | undefined;
}

export interface MeterOptions {
  readonly ledger: Ledger;
  readonly bookings: Bookings;
  readonly router: RouterClient;
  readonly metrics: ModelMetrics;
  readonly log: Logger;
  /** Longest call; a hold outlives it. */
  readonly callMs: number;
  /** Waits between looks for a cost that only a caller's own key can find; default 1, 4 and 15 s. */
  readonly lookMs?: readonly number[];
}

export class Meter {
  readonly #options: MeterOptions;

  constructor(options: MeterOptions) {
    this.#options = options;
  }

  get router(): RouterClient {
    return this.#options.router;
  }

  /** Sets money aside. @throws Problem (quota-exhausted, ledger-unavailable) */
  async reserve(use: Use): Promise<Reservation> {
    const { bookings, callMs } = this.#options;
    const { payer, most, id = randomUUID() } = use;
    const held = await bookings.hold({ id, payer, most, ttlMs: callMs + 60_000 });
    return { ...held, use, since: performance.now() };
  }

  /** Books what became of a call. Its result is given to the caller, whatever happens to the database meanwhile. */
  async close(reservation: Reservation, result: RouterAnswer | RouterFailure): Promise<Booked> {
    const latencyMs = Math.round(performance.now() - reservation.since);
    this.#count(reservation, result, latencyMs);
    if (result instanceof RouterFailure) {
      if (!result.costsNothing) return this.#pend(reservation, result.reference, { latencyMs });
      return { cost: undefined, source: 'none', latencyMs, quota: await this.#options.bookings.void(reservation) };
    }
    const { cost, reference, tokensIn, tokensOut } = result;
    const usage = { latencyMs, ...withoutUndefined({ tokensIn, tokensOut }) };
    if (cost === undefined) return this.#pend(reservation, reference, usage);
    const quota = await this.#options.bookings.settle(reservation, {
      cost: cost.amount,
      source: cost.source,
      usage: this.#usage(reservation, usage),
    });
    return { cost: cost.amount, source: cost.source, latencyMs, quota };
  }

  async #pend(
    reservation: Reservation,
    reference: string | undefined,
    usage: Partial<Usage> & { latencyMs: number },
  ): Promise<Booked> {
    const { bookings, metrics, log } = this.#options;
    const { use } = reservation;
    metrics.pending(use.model);
    log.warn({ hold: reservation.id, model: use.model, reference }, 'cost not known yet');
    await bookings.pend(reservation, { reference: reference ?? null, usage: this.#usage(reservation, usage) });
    if (use.payer.key !== undefined) bookings.track(this.#lookSoon(reservation, reference, use.payer.key));
    return { cost: undefined, source: 'pending', latencyMs: usage.latencyMs, quota: reservation.quota };
  }

  /** Only now do we have the key that can read this record: the reconciler will not. */
  async #lookSoon(reservation: Reservation, reference: string | undefined, key: string): Promise<void> {
    const { ledger, router, lookMs = [1_000, 4_000, 15_000] } = this.#options;
    for (const wait of lookMs) {
      await sleep(wait, undefined, { ref: false });
      const found = await router
        .lookUp({ hold: reservation.id, reference: reference ?? null }, key)
        .catch(() => undefined);
      if (found?.outcome !== 'found') continue;
      await ledger.settle({ hold: reservation.id, cost: found.cost, source: found.source });
      return;
    }
  }

  #usage({ use }: Reservation, measured: Partial<Usage>): Usage {
    const { payer, kind, model, tool } = use;
    return {
      kind,
      model,
      ...(tool === undefined ? {} : { tool }),
      ...(payer.kind === 'app' ? { app: payer.owner } : { caller: payer.owner }),
      ...measured,
    };
  }

  #count({ use }: Reservation, result: RouterAnswer | RouterFailure, latencyMs: number): void {
    const { metrics } = this.#options;
    const failed = result instanceof RouterFailure;
    metrics.called(use.model, use.payer.kind, failed ? result.kind : 'answered', latencyMs / 1000);
    if (failed) return;
    metrics.tokens(use.model, 'in', result.tokensIn ?? 0);
    metrics.tokens(use.model, 'out', result.tokensOut ?? 0);
    if (result.cost !== undefined) metrics.cost(use.model, use.payer.kind, moneyToNumber(result.cost.amount));
  }
}

function withoutUndefined(counts: Record<'tokensIn' | 'tokensOut', number | undefined>): {
  tokensIn?: number;
  tokensOut?: number;
} {
  const { tokensIn, tokensOut } = counts;
  return { ...(tokensIn === undefined ? {} : { tokensIn }), ...(tokensOut === undefined ? {} : { tokensOut }) };
}
