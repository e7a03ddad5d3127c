// How money is set aside and booked for a use: hold, then settle, void or leave pending. Of a model's call and of a
// tool's tariff alike.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '../../lib/log.ts';
import { Problem } from '../../lib/problem.ts';
import { isTransient } from './database/failures.ts';
import type { Line } from './accrual.ts';
import type { BookedSource, Ledger, LimitedAccount } from './ledger/ledger.ts';
import type { Money } from './ledger/money.ts';
import type { HoldAnswer, SettleAnswer } from './ledger/shapes.ts';
import type { Usage } from './ledger/usage.ts';
import type { Payer } from './payer.ts';
import { ledgerUnavailable } from './problems.ts';
import { quotaProblem, type Quota } from './quota.ts';

export interface BookingsOptions {
  readonly ledger: Ledger;
  readonly log: Logger;
  /** Told of each use that a quota did not cover. */
  readonly refused: (kind: Payer['kind'], by: 'caller' | 'everyone') => void;
}

/** What is to be set aside. */
export interface Setting {
  /** A UUID for the hold. */
  readonly id: string;
  readonly payer: Payer;
  /** The most that the use can cost. */
  readonly most: Money;
  /** Longer than the use can last. */
  readonly ttlMs: number;
  /** Who is owed, where it is not the payer's router. */
  readonly credit?: LimitedAccount;
}

/** Money that is set aside. */
export interface Held {
  readonly id: string;
  readonly most: Money;
  /** The quota after it, where there is one. */
  readonly quota: Quota | undefined;
}

export class Bookings {
  readonly #options: BookingsOptions;
  readonly #background = new Set<Promise<void>>();

  constructor(options: BookingsOptions) {
    this.#options = options;
  }

  /** Sets money aside. @throws Problem (quota-exhausted, ledger-unavailable) */
  async hold({ id, payer, most, ttlMs, credit = payer.credit }: Setting): Promise<Held> {
    const { ledger, refused } = this.#options;
    const answer = await booking(() => ledger.hold({ id, amount: most, ttlMs, debit: payer.debit, credit }));
    if (answer.outcome === 'refused') {
      refused(payer.kind, answer.refused_by === 'credit' ? 'everyone' : 'caller');
      throw quotaProblem(answer, payer, most, Date.now());
    }
    return { id, most, quota: quotaOf(answer, payer) };
  }

  /** Books the real cost, and in the same transaction what `lines` say. @returns the quota afterwards */
  async settle(
    held: Held,
    {
      cost,
      source,
      usage,
      lines = [],
    }: { readonly cost: Money; readonly source: BookedSource; readonly usage: Usage; readonly lines?: readonly Line[] },
  ): Promise<Quota | undefined> {
    const settled = await this.#surely(held, () =>
      this.#options.ledger.settle({ hold: held.id, cost, source, usage, lines }),
    );
    return afterwards(held, settled);
  }

  /** Gives the money back. @returns the quota afterwards */
  async void(held: Held): Promise<Quota | undefined> {
    await this.#surely(held, () => this.#options.ledger.void(held.id));
    return held.quota === undefined ? undefined : { ...held.quota, held: (held.quota.held - held.most) as Money };
  }

  /** Says that the cost is not known yet. */
  async pend(held: Held, details: { readonly reference: string | null; readonly usage: Usage }): Promise<void> {
    await this.#surely(held, () => this.#options.ledger.pend(held.id, details));
  }

  /** Keeps work in the background known, so that the end of the process waits for it. */
  track(work: Promise<void>): void {
    const tracked = work
      .catch((error: unknown) => {
        this.#options.log.error({ err: error }, 'work in the background failed');
      })
      .finally(() => {
        this.#background.delete(tracked);
      });
    this.#background.add(tracked);
  }

  /**
   * Waits for bookings that are still being tried, but not for long: a hold that is left expires, and its cost is
   * looked up then.
   */
  async drain(limitMs: number): Promise<void> {
    await Promise.race([Promise.allSettled([...this.#background]), sleep(limitMs, undefined, { ref: false })]);
  }

  /** Books, and goes on trying in the background when the database is away: what was done has to be in the books. */
  async #surely<Answer>(held: Held, book: () => Promise<Answer>): Promise<Answer | undefined> {
    try {
      return await book();
    } catch (error) {
      this.#options.log.error({ err: error, hold: held.id }, 'booking failed, trying again');
      this.track(this.#again(held, book));
      return undefined;
    }
  }

  async #again(held: Held, book: () => Promise<unknown>): Promise<void> {
    for (let wait = 1_000; wait <= 512_000; wait *= 2) {
      await sleep(wait, undefined, { ref: false });
      try {
        await book();
        return;
      } catch (error) {
        this.#options.log.error({ err: error, hold: held.id }, 'booking failed again');
      }
    }
  }
}

async function booking<Answer>(book: () => Promise<Answer>): Promise<Answer> {
  try {
    return await book();
  } catch (error) {
    if (!isTransient(error, 'any') && !isTimeout(error)) throw error;
    throw new Problem(ledgerUnavailable, 'the database did not answer; try again in 5 s', {
      headers: { 'retry-after': '5' },
      cause: error,
    });
  }
}

/** The pool's own words for a database that does not answer. */
function isTimeout(error: unknown): boolean {
  return error instanceof Error && /timeout|ECONNREFUSED/i.test(error.message);
}

function quotaOf(answer: HoldAnswer, payer: Payer): Quota | undefined {
  const { debit, day_ends_at: resetsAt } = answer;
  return debit === null || payer.debit.limit === null
    ? undefined
    : { limit: payer.debit.limit, used: debit.used, held: debit.held, resetsAt };
}

function afterwards({ quota }: Held, settled: SettleAnswer | undefined): Quota | undefined {
  if (quota === undefined || settled === undefined || settled.outcome === 'unknown' || settled.debit === null)
    return quota;
  return { ...quota, used: settled.debit.used, held: settled.debit.held };
}
