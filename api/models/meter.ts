// The one path on which money is spent: hold, call, then settle, void or leave pending.
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '../../lib/log.ts';
import { Problem } from '../../lib/problem.ts';
import { isTransient } from '../ledger/failures.ts';
import type { CostSource, Ledger } from '../ledger/ledger.ts';
import { moneyToNumber, type Money } from '../ledger/money.ts';
import type { HoldAnswer, SettleAnswer } from '../ledger/shapes.ts';
import type { Usage } from '../ledger/usage.ts';
import type { ModelMetrics } from './metrics.ts';
import type { Payer } from './payer.ts';
import { ledgerUnavailable } from './problems.ts';
import { quotaProblem, type Quota } from './quota.ts';
import type { RouterAnswer } from './router/answer.ts';
import type { RouterClient } from './router/client.ts';
import { RouterFailure } from './router/failure.ts';

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
}

/** Money that is set aside for a call. */
export interface Reservation {
  readonly id: string;
  readonly use: Use;
  readonly since: number;
  /** The quota after it, where there is one. */
  readonly quota: Quota | undefined;
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
  readonly #background = new Set<Promise<void>>();

  constructor(options: MeterOptions) {
    this.#options = options;
  }

  get router(): RouterClient {
    return this.#options.router;
  }

  /** Sets money aside. @throws Problem (quota-exhausted, ledger-unavailable) */
  async reserve(use: Use): Promise<Reservation> {
    const { ledger, metrics } = this.#options;
    const { payer, most, id = randomUUID() } = use;
    const answer = await this.#booking(() => ledger.hold({ id, amount: most, ttlMs: this.#options.callMs + 60_000, debit: payer.debit, credit: payer.credit }));
    if (answer.outcome === 'refused') {
      metrics.refused(payer.kind, answer.refused_by === 'credit' ? 'everyone' : 'caller');
      throw quotaProblem(answer, payer, most, Date.now());
    }
    return { id, use, since: performance.now(), quota: quotaOf(answer, payer) };
  }

  /** Books what became of a call. Its result is given to the caller, whatever happens to the database meanwhile. */
  async close(reservation: Reservation, result: RouterAnswer | RouterFailure): Promise<Booked> {
    const latencyMs = Math.round(performance.now() - reservation.since);
    this.#count(reservation, result, latencyMs);
    if (result instanceof RouterFailure) {
      if (!result.costsNothing) return this.#pend(reservation, result.reference, { latencyMs });
      await this.#surely(reservation, () => this.#options.ledger.void(reservation.id));
      return { cost: undefined, source: 'none', latencyMs, quota: freed(reservation) };
    }
    const { cost, reference, tokensIn, tokensOut } = result;
    const usage = { latencyMs, ...withoutUndefined({ tokensIn, tokensOut }) };
    if (cost === undefined) return this.#pend(reservation, reference, usage);
    const settled = await this.#surely(reservation, () =>
      this.#options.ledger.settle({ hold: reservation.id, cost: cost.amount, source: cost.source, usage: this.#usage(reservation, usage) }));
    return { cost: cost.amount, source: cost.source, latencyMs, quota: afterwards(reservation, settled) };
  }

  /** Waits for bookings that are still being tried, but not for long: a hold that is left expires, and its cost is looked up then. */
  async drain(limitMs: number): Promise<void> {
    await Promise.race([Promise.allSettled([...this.#background]), sleep(limitMs)]);
  }

  async #pend(reservation: Reservation, reference: string | undefined, usage: Partial<Usage> & { latencyMs: number }): Promise<Booked> {
    const { ledger, metrics, log } = this.#options;
    const { use } = reservation;
    metrics.pending(use.model);
    log.warn({ hold: reservation.id, model: use.model, reference }, 'cost not known yet');
    await this.#surely(reservation, () => ledger.pend(reservation.id, { reference: reference ?? null, usage: this.#usage(reservation, usage) }));
    if (use.payer.key !== undefined) this.#track(this.#lookSoon(reservation, reference, use.payer.key));
    return { cost: undefined, source: 'pending', latencyMs: usage.latencyMs, quota: reservation.quota };
  }

  /** Only now do we have the key that can read this record: the reconciler will not. */
  async #lookSoon(reservation: Reservation, reference: string | undefined, key: string): Promise<void> {
    const { ledger, router, lookMs = [1_000, 4_000, 15_000] } = this.#options;
    for (const wait of lookMs) {
      await sleep(wait, undefined, { ref: false });
      const found = await router.lookUp({ hold: reservation.id, reference: reference ?? null }, key).catch(() => undefined);
      if (found?.outcome !== 'found') continue;
      await ledger.settle({ hold: reservation.id, cost: found.cost, source: found.source });
      return;
    }
  }

  #usage({ use }: Reservation, measured: Partial<Usage>): Usage {
    const { payer, kind, model } = use;
    return { kind, model, ...(payer.kind === 'app' ? { app: payer.owner } : { caller: payer.owner }), ...measured };
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

  async #booking<Answer>(book: () => Promise<Answer>): Promise<Answer> {
    try {
      return await book();
    } catch (error) {
      if (!isTransient(error, 'any') && !isTimeout(error)) throw error;
      throw new Problem(ledgerUnavailable, 'the database did not answer; try again in 5 s', { headers: { 'retry-after': '5' }, cause: error });
    }
  }

  /** Books, and goes on trying in the background when the database is away: the call was made, so it has to be in the books. */
  async #surely<Answer>(reservation: Reservation, book: () => Promise<Answer>): Promise<Answer | undefined> {
    try {
      return await book();
    } catch (error) {
      this.#options.log.error({ err: error, hold: reservation.id }, 'booking failed, trying again');
      this.#track(this.#again(reservation, book));
      return undefined;
    }
  }

  async #again(reservation: Reservation, book: () => Promise<unknown>): Promise<void> {
    for (let wait = 1_000; wait <= 512_000; wait *= 2) {
      await sleep(wait, undefined, { ref: false });
      try {
        await book();
        return;
      } catch (error) {
        this.#options.log.error({ err: error, hold: reservation.id }, 'booking failed again');
      }
    }
  }

  #track(work: Promise<void>): void {
    const tracked = work.catch((error: unknown) => { this.#options.log.error({ err: error }, 'work in the background failed'); }).finally(() => { this.#background.delete(tracked); });
    this.#background.add(tracked);
  }
}

/** The pool's own words for a database that does not answer. */
function isTimeout(error: unknown): boolean {
  return error instanceof Error && /timeout|ECONNREFUSED/i.test(error.message);
}

function quotaOf(answer: HoldAnswer, payer: Payer): Quota | undefined {
  const { debit, day_ends_at: resetsAt } = answer;
  return debit === null || payer.debit.limit === null ? undefined : { limit: payer.debit.limit, used: debit.used, held: debit.held, resetsAt };
}

function afterwards({ quota }: Reservation, settled: SettleAnswer | undefined): Quota | undefined {
  if (quota === undefined || settled === undefined || settled.outcome === 'unknown' || settled.debit === null) return quota;
  return { ...quota, used: settled.debit.used, held: settled.debit.held };
}

function withoutUndefined(counts: Record<'tokensIn' | 'tokensOut', number | undefined>): { tokensIn?: number; tokensOut?: number } {
  const { tokensIn, tokensOut } = counts;
  return { ...(tokensIn === undefined ? {} : { tokensIn }), ...(tokensOut === undefined ? {} : { tokensOut }) };
}

function freed({ quota, use }: Reservation): Quota | undefined {
  return quota === undefined ? undefined : { ...quota, held: (quota.held - use.most) as Money };
}
