// Holds: money reserved for a use before it, then settled, released or left pending. For model calls and tool tariffs.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '../../lib/telemetry.ts';
import type { Problem } from '../../lib/problem.ts';
import { promotionAccount } from './ledger/accounts.ts';
import type { Journal, JournalEntry } from './journal.ts';
import { toFlightProblem } from './calls-in-flight.ts';
import type { FlightLimits, Ledger, Line, LimitedAccount, ReserveRequest, SettlementSource } from './ledger/ledger.ts';
import { type Money, sumMoney } from './ledger/money.ts';
import type { ReserveAnswer, SettleAnswer } from './ledger/shapes.ts';
import type { Usage } from './ledger/usage.ts';
import type { Payer } from './payer.ts';
import { quotaProblem, type Quota } from './quota.ts';

/** Milliseconds in which settlements that nobody waits for are gathered. */
const gatherMs = 10;

export interface HoldsOptions {
  readonly ledger: Ledger;
  readonly log: Logger;
  /** Where settlements are kept until the ledger has them; without one, each is waited for. */
  readonly journal?: Journal | undefined;
  /** Called for each use that a quota did not cover. */
  readonly refused: (kind: Payer['kind'], by: 'caller' | 'everyone') => void;
}

/** What to reserve. */
export interface Reservation {
  /** A UUID for the hold. */
  readonly id: string;
  readonly payer: Payer;
  /** The maximum that the use can cost. */
  readonly maxCost: Money;
  /** Longer than the use can last. */
  readonly ttlMs: number;
  /** Who is owed for a price of our own; without it, it is a model call, and the payer's router is owed. */
  readonly credit?: LimitedAccount;
  /** The use that it is for, as far as it is known before. */
  readonly usage?: Usage;
  /** Of a model call that the platform pays, when it is to be made: how many of them may be in flight. */
  readonly flight?: FlightLimits | undefined;
  /** The call is made later: it is reserved again, with `flight`, when its turn comes. */
  readonly waits?: boolean | undefined;
  /** Name of what is free for callers with a key: the platform bears it. */
  readonly free?: string | undefined;
}

/** Money that is reserved. */
export interface Hold {
  readonly id: string;
  readonly maxCost: Money;
  /** The quota once this is reserved, where there is one. */
  readonly quota: Quota | undefined;
}

/** What a use has really cost. */
export interface HoldSettlement {
  readonly cost: Money;
  readonly source: SettlementSource;
  readonly usage: Usage;
  readonly lines?: readonly Line[];
  /** A hold for what `lines` charge, which is given back only once they are recorded. */
  readonly frees?: Hold | undefined;
}

export class Holds {
  readonly #options: HoldsOptions;
  /** First tries of settlements that nobody waits for. */
  readonly #settling = new Set<Promise<unknown>>();
  readonly #background = new Set<Promise<void>>();
  #gathering: Promise<void> | undefined;

  constructor(options: HoldsOptions) {
    this.#options = options;
  }

  /** Reserves money. @throws Problem (quota-exhausted, calls-stopped, calls-in-flight, ledger-unavailable) */
  async reserve(reservation: Reservation): Promise<Hold> {
    const [answer] = await this.#answers([reservation]);
    if (answer === undefined) throw new Error('the ledger has no answer for a reservation');
    if (answer.outcome === 'refused') throw this.#refuse(answer, reservation, reservation.maxCost);
    if (reservation.flight !== undefined && answer.state !== 'open')
      throw new Error(`the hold ${reservation.id} ended before its call began`);
    return toHold(reservation, answer);
  }

  /**
   * Reserves all of what belongs together, or nothing. @throws Problem (quota-exhausted, for what all of it can cost;
   * ledger-unavailable)
   */
  async reserveAll(reservations: readonly Reservation[]): Promise<Hold[]> {
    const answers = await this.#answers(reservations);
    return reservations.map((reservation, index) => {
      const answer = answers[index];
      if (answer === undefined) throw new Error('the ledger has no answer for a reservation');
      if (answer.outcome !== 'refused') return toHold(reservation, answer);
      // What a caller's router bills to a key is not limited here, so it is not what was refused.
      const limited = reservations.filter((each) => Object.values(toSides(each)).some(({ limit }) => limit !== null));
      throw this.#refuse(answer, limited[0] ?? reservation, sumMoney(limited.map(({ maxCost }) => maxCost)));
    });
  }

  async #answers(reservations: readonly Reservation[]): Promise<readonly ReserveAnswer[]> {
    const requests = reservations.map((reservation): ReserveRequest => {
      const { id, maxCost: amount, ttlMs, usage, flight, waits } = reservation;
      return { id, amount, ttlMs, usage, flight, waits, ...toSides(reservation) };
    });
    const first = await this.#options.ledger.reserveAll(requests);
    const isRefused = first.some(({ outcome }) => outcome === 'refused');
    return isRefused && (await this.#settlingEnded()) ? this.#options.ledger.reserveAll(requests) : first;
  }

  #refuse(answer: ReserveAnswer, reservation: Reservation, maxCost: Money): Problem {
    const { payer, credit, usage } = reservation;
    const problem = toFlightProblem(answer, usage, Date.now());
    if (problem !== undefined) return problem;
    this.#options.refused(payer.kind, answer.refused_by === 'credit' ? 'everyone' : 'caller');
    return quotaProblem(answer, { payer, fixed: credit !== undefined, ...toSides(reservation) }, maxCost, Date.now());
  }

  /**
   * The quota as it stands, for what reserves nothing itself, such as a look at a job; undefined where there is none, or
   * where it cannot be read: a hint is not worth a failure.
   */
  async quotaOf(payer: Payer): Promise<Quota | undefined> {
    const { limit } = payer.debit;
    if (limit === null || payer.kind === 'key') return undefined;
    try {
      const { used, held } = await this.#options.ledger.budget(payer.debit);
      return { limit, used, held, resetsAt: nextDay(Date.now()) };
    } catch (error) {
      this.#options.log.warn({ err: error }, 'the quota of a caller cannot be read');
      return undefined;
    }
  }

  /** Records the real cost, and in the same transaction what `lines` add. @returns the quota afterwards */
  async settle(hold: Hold, settlement: HoldSettlement): Promise<Quota | undefined> {
    return quotaAfter(hold, await this.#settle(hold, entryOf(hold, settlement)));
  }

  /**
   * Records the real cost where nobody waits for it: the caller can have the answer as soon as the journal has the cost.
   * @returns the quota as it will be
   */
  async settleBehind(hold: Hold, settlement: HoldSettlement): Promise<Quota | undefined> {
    const { journal, log } = this.#options;
    const entry = entryOf(hold, settlement);
    try {
      journal?.write(entry);
    } catch (error) {
      log.error({ err: error, hold: hold.id }, 'the journal cannot be written, so a settlement is waited for');
      return this.settle(hold, settlement);
    }
    if (journal === undefined) return this.settle(hold, settlement);
    const settling = this.#gathered()
      .then(() => this.#settle(hold, entry))
      .finally(() => {
        this.#settling.delete(settling);
      });
    this.#settling.add(settling);
    return expectedQuota(hold, settlement.cost);
  }

  /** Settles what a process before this one has left in the journal. @returns how many calls that were not settled yet */
  async settleLeft(): Promise<number> {
    const { journal, log } = this.#options;
    let settled = 0;
    for (const left of journal?.left ?? []) {
      const answers = await Promise.all(left.entries.map((entry) => this.#record(entry)));
      settled += answers.filter(({ outcome }) => outcome === 'settled').length;
      const unknown = answers.filter(({ outcome }) => outcome === 'unknown').length;
      const found = { path: left.path, settled, broken: left.broken, unknown };
      if (unknown > 0) log.error(found, 'the journal of an earlier process has holds that the ledger does not know');
      else log.info(found, 'the journal of an earlier process is settled');
      journal?.forget(left, unknown > 0);
    }
    return settled;
  }

  /** Gives the money back. @returns the quota afterwards */
  async release(hold: Hold): Promise<Quota | undefined> {
    await this.#persistently(hold, () => this.#options.ledger.release(hold.id));
    return hold.quota === undefined ? undefined : { ...hold.quota, held: (hold.quota.held - hold.maxCost) as Money };
  }

  /** Records that the cost is not known yet. */
  async pend(
    hold: Hold,
    details: { readonly reference: string | null; readonly usage: Usage; readonly estimate?: Money | undefined },
  ): Promise<void> {
    await this.#persistently(hold, () => this.#options.ledger.pend(hold.id, details));
  }

  /** Keeps track of work in the background, so that the end of the process waits for it. */
  track(work: Promise<void>): void {
    const tracked = work
      .catch((error: unknown) => {
        this.#options.log.error({ err: error }, 'background work failed');
      })
      .finally(() => {
        this.#background.delete(tracked);
      });
    this.#background.add(tracked);
  }

  /**
   * Waits for writes that are still being retried, but not for long: a hold that is left expires, and its cost is
   * looked up then.
   */
  async drain(limitMs: number): Promise<void> {
    const writes = [...this.#settling, ...this.#background];
    await Promise.race([Promise.allSettled(writes), sleep(limitMs, undefined, { ref: false })]);
  }

  /** Waits for settlements that nobody waited for: until then, more is reserved than has to be. @returns whether there were any */
  async #settlingEnded(): Promise<boolean> {
    if (this.#settling.size === 0) return false;
    await Promise.allSettled([...this.#settling]);
    return true;
  }

  /** Settlements that nobody waits for go together, once the answers are sent: reservations, which callers wait for, come first. */
  #gathered(): Promise<void> {
    return (this.#gathering ??= sleep(gatherMs).then(() => {
      this.#gathering = undefined;
    }));
  }

  #settle(hold: Hold, entry: JournalEntry): Promise<SettleAnswer | undefined> {
    return this.#persistently(hold, async () => {
      const answer = await this.#record(entry);
      this.#options.journal?.settled(hold.id);
      return answer;
    });
  }

  async #record({ frees, ...request }: JournalEntry): Promise<SettleAnswer> {
    const { ledger } = this.#options;
    const answer = await ledger.settle(request);
    if (frees !== undefined) await ledger.release(frees);
    return answer;
  }

  /** Retries in the background while the database is away: what was spent has to reach the ledger. */
  async #persistently<Answer>(hold: Hold, write: () => Promise<Answer>): Promise<Answer | undefined> {
    try {
      return await write();
    } catch (error) {
      this.#options.log.error({ err: error, hold: hold.id }, 'ledger write failed, retrying');
      this.track(this.#retry(hold, write));
      return undefined;
    }
  }

  async #retry(hold: Hold, write: () => Promise<unknown>): Promise<void> {
    for (let wait = 1_000; wait <= 512_000; wait *= 2) {
      await sleep(wait, undefined, { ref: false });
      try {
        await write();
        return;
      } catch (error) {
        this.#options.log.error({ err: error, hold: hold.id }, 'ledger write failed again');
      }
    }
  }
}

/** The accounts of a reservation. */
function toSides({ payer, credit, free }: Reservation): Pick<ReserveRequest, 'debit' | 'credit'> {
  return credit === undefined
    ? { debit: payer.debit, credit: payer.credit }
    : { debit: chargedOf(payer, free), credit };
}

function toHold({ id, maxCost, payer }: Reservation, answer: ReserveAnswer): Hold {
  return { id, maxCost, quota: quotaOf(answer, payer) };
}

/** The free quota limits also what is free, so that nobody takes it all. */
function chargedOf({ kind, charge }: Payer, free: string | undefined): LimitedAccount {
  return kind === 'key' && free !== undefined ? { account: promotionAccount(free), limit: null } : charge;
}

function quotaOf(answer: ReserveAnswer, payer: Payer): Quota | undefined {
  const { debit, day_ends_at: resetsAt } = answer;
  // Of a caller with a key, only the refusal reports its limit.
  return debit === null || payer.kind === 'key' || payer.debit.limit === null
    ? undefined
    : { limit: payer.debit.limit, used: debit.used, held: debit.held, resetsAt };
}

/** The next 00:00 UTC, when daily accounts begin anew. */
function nextDay(now: number): Date {
  const day = 86_400_000;
  return new Date((Math.floor(now / day) + 1) * day);
}

function entryOf({ id: hold }: Hold, { frees, lines = [], ...rest }: HoldSettlement): JournalEntry {
  return { hold, lines, ...rest, ...(frees === undefined ? {} : { frees: frees.id }) };
}

/** What the settlement will make of it, as far as this call goes. */
function expectedQuota({ quota, maxCost }: Hold, cost: Money): Quota | undefined {
  if (quota === undefined) return undefined;
  return { ...quota, used: (quota.used + cost) as Money, held: (quota.held - maxCost) as Money };
}

function quotaAfter({ quota }: Hold, answer: SettleAnswer | undefined): Quota | undefined {
  if (quota === undefined || answer === undefined || answer.outcome === 'unknown' || answer.debit === null)
    return quota;
  return { ...quota, used: answer.debit.used, held: answer.debit.held };
}
