// The ledger: hold, settle, void, pending costs, plain transactions and balances. All spending goes through here.
import type { Account } from './accounts.ts';
import type { Line } from '../accrual.ts';
import { Batch } from '../database/batch.ts';
import type { Database } from '../database/database.ts';
import { formatMoney, type Money } from './money.ts';
import type { Budget, HoldAnswer, PendingCost, PendOutcome, PostOutcome, SettleAnswer, VoidOutcome } from './shapes.ts';
import * as statements from './statements.ts';
import { usageFields, type Usage } from './usage.ts';

/**
 * Where a cost comes from: in the router's answer, computed by it from its price list, or found later in its records.
 */
export type CostSource = 'billed' | 'router_computed' | 'router_record';

/** Of all that is booked: what a router has billed, or what a tool costs by its tariff. */
export type BookedSource = CostSource | 'tariff';

export interface LimitedAccount {
  readonly account: Account;
  /** What the account may spend in all (a daily account: in the day). null: no limit. */
  readonly limit: Money | null;
}

export interface HoldRequest {
  /** A UUID of the call; sent again it is the same hold. */
  readonly id: string;
  /** The most that the call can cost. */
  readonly amount: Money;
  /** After so long the process that made it is taken for dead; longer than any call may last. */
  readonly ttlMs: number;
  /** Who pays. */
  readonly debit: LimitedAccount;
  /** Who is owed. */
  readonly credit: LimitedAccount;
}

export interface SettleRequest {
  readonly hold: string;
  readonly cost: Money;
  readonly source: BookedSource;
  /** The use to record, with the hold's id as its own. */
  readonly usage?: Usage;
  /** More lines for the same transaction, such as a charge; they must sum to zero. */
  readonly lines?: readonly Line[];
}

export interface LedgerOptions {
  /** Statements of one kind under way at once. More than one only serves to test what one row lock must withstand. */
  readonly flights?: number;
  /** Calls that may share a statement. */
  readonly batch?: number;
  /** For tests: the time; else the database's own clock decides, one for all replicas. */
  readonly clock?: () => Date;
}

export class Ledger {
  readonly #database: Database;
  readonly #now: () => Date | null;
  readonly #holds: Batch<HoldRequest, HoldAnswer>;
  readonly #settles: Batch<SettleRequest, SettleAnswer>;
  readonly #voids: Batch<string, VoidOutcome>;

  constructor(database: Database, options: LedgerOptions = {}) {
    this.#database = database;
    this.#now = options.clock ?? (() => null);
    const batch = { size: options.batch ?? 64, flights: options.flights ?? 1 };
    this.#holds = new Batch((requests) => this.#hold(requests), batch);
    this.#settles = new Batch((requests) => this.#settle(requests), batch);
    this.#voids = new Batch((ids) => this.#void(ids), batch);
  }

  /**
   * Reserves, or says which side refused. One round trip, shared with other calls when busy.
   * `replayed`: this id holds already; `conflict`: this id was used for another hold.
   */
  hold(request: HoldRequest): Promise<HoldAnswer> {
    return this.#holds.run(request);
  }

  /**
   * Books the real cost, above or below what was held, also after the hold was voided or expired. The first cost
   * stands:
   * settling again changes nothing and answers `replayed` with that cost.
   */
  settle(request: SettleRequest): Promise<SettleAnswer> {
    return this.#settles.run(request);
  }

  /** Gives a reservation back for a call that cost nothing. A settled hold stays settled. */
  void(hold: string): Promise<VoidOutcome> {
    return this.#voids.run(hold);
  }

  /**
   * Says that a call was made and its cost is not known; the reservation stays until the cost is found or abandoned.
   */
  async pend(
    hold: string,
    details: { reference: string | null; usage?: Usage; retryMs?: number },
  ): Promise<PendOutcome> {
    const usage = details.usage === undefined ? null : JSON.stringify(usageFields(details.usage));
    const [row] = await this.#database.replay(statements.pend, [
      hold,
      details.reference,
      usage,
      details.retryMs ?? 5_000,
      this.#now(),
    ]);
    return one(row).answer.outcome;
  }

  /**
   * Hands holds whose time is over to the reconciler; they stay reserved until it knows what they cost. @returns how
   * many.
   */
  async expire(limit = 500): Promise<number> {
    const [row] = await this.#database.replay(statements.expire, [limit, this.#now()]);
    return one(row).count;
  }

  /**
   * Gives back what is held for tools and calls of apps whose process ended: their tariff is due for a result only, and
   * no router has a record of it. @returns how many
   */
  async voidToolHolds(): Promise<number> {
    const [row] = await this.#database.replay(statements.voidToolHolds, [this.#now()]);
    return one(row).answers.length;
  }

  /** Borrows pending costs for a while; no two reconcilers get the same one. */
  async claimPending(limit: number, leaseMs: number): Promise<PendingCost[]> {
    const [row] = await this.#database.query(statements.claimPending, [limit, leaseMs, this.#now()]);
    return one(row).answers;
  }

  async deferPending(hold: string, waitMs: number, note: string): Promise<void> {
    await this.#database.replay(statements.deferPending, [hold, waitMs, note, this.#now()]);
  }

  /**
   * Stops looking for a cost and frees its reservation; the record of it stays, and a cost that comes later is booked.
   */
  async abandonPending(hold: string, note: string): Promise<void> {
    await this.#database.replay(statements.abandon, [hold, note, this.#now()]);
  }

  /**
   * Books a plain transaction once per reference. `conflict`: the reference stands for other entries. @throws when the
   * lines do not sum to zero.
   */
  async post(reference: string, kind: string, lines: readonly Line[]): Promise<PostOutcome> {
    const [row] = await this.#database.replay(statements.post, [
      reference,
      kind,
      JSON.stringify(lines.map(lineFields)),
      this.#now(),
    ]);
    return one(row).answer.outcome;
  }

  /** Balance of an account, summed from its entries: debits less credits. */
  async balance(account: Account): Promise<Money> {
    const [row] = await this.#database.replay(statements.balance, [
      account.kind,
      account.owner,
      account.daily,
      this.#now(),
    ]);
    return one(row).balance;
  }

  /** What a limited account has used and holds; zero for one not yet used. */
  async budget({ account, limit }: LimitedAccount): Promise<Budget> {
    const [row] = await this.#database.replay(statements.budget, [
      account.kind,
      account.owner,
      account.daily,
      this.#now(),
    ]);
    return { limit, ...one(row) };
  }

  /** Counts for metrics. */
  async counts(): Promise<{ open: number; pending: number; abandoned: number }> {
    const [row] = await this.#database.replay(statements.counts, []);
    return one(row);
  }

  /**
   * Removes uses, finished holds and the totals of single days that are older than so many days; entries and balances
   * stay. @returns how much.
   */
  async purge(keepDays: number, limit = 2_000): Promise<number> {
    const [row] = await this.#database.replay(statements.purgeDetail, [this.#now(), keepDays, limit]);
    return one(row).count;
  }

  /** Every running total that differs from what it is derived from, in words. Reads the whole book. */
  async audit(): Promise<string[]> {
    return (await this.#database.replay(statements.audit, [])).map(({ fault }) => fault);
  }

  async #hold(requests: readonly HoldRequest[]): Promise<HoldAnswer[]> {
    const fields = requests.map(({ id, amount, ttlMs, debit, credit }) => ({
      id,
      amount: formatMoney(amount),
      ttl_ms: ttlMs,
      debit: sideFields(debit),
      credit: sideFields(credit),
    }));
    const [row] = await this.#database.replay(statements.hold, [JSON.stringify(fields), this.#now()]);
    return one(row).answers;
  }

  async #settle(requests: readonly SettleRequest[]): Promise<SettleAnswer[]> {
    const fields = requests.map(({ hold, cost, source, usage, lines }) => ({
      hold,
      cost: formatMoney(cost),
      source,
      usage: usage === undefined ? null : usageFields(usage),
      lines: lines === undefined || lines.length === 0 ? null : lines.map(lineFields),
    }));
    const [row] = await this.#database.replay(statements.settle, [JSON.stringify(fields), this.#now()]);
    return one(row).answers;
  }

  async #void(ids: readonly string[]): Promise<VoidOutcome[]> {
    const [row] = await this.#database.replay(statements.voidHolds, [ids, this.#now()]);
    return one(row).answers.map(({ outcome }) => outcome);
  }
}

function sideFields({ account, limit }: LimitedAccount): Record<string, unknown> {
  return { ...account, limit: limit === null ? null : formatMoney(limit) };
}

function lineFields({ account, amount }: Line): Record<string, unknown> {
  return { ...account, amount: formatMoney(amount) };
}

function one<Row>(row: Row | undefined): Row {
  if (row === undefined) throw new Error('the database answered with no row');
  return row;
}
