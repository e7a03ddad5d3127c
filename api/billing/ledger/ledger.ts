// The ledger: reserve, settle, release, pending costs, plain transactions and balances. All spending goes through here.
import type { Account } from './accounts.ts';
import { type Database, DatabaseUnavailable, type Transaction } from '../database/database.ts';
import { formatMoney, type Money } from './money.ts';
import * as statements from './statements.ts';
import type {
  Budget,
  PendingCost,
  PendOutcome,
  PostOutcome,
  ReleaseOutcome,
  ReserveAnswer,
  SettleAnswer,
} from './statements.ts';

/**
 * Where a cost comes from: in the router's answer, computed by it from its price list, or found later in its records.
 */
export type CostSource = 'billed' | 'router_computed' | 'router_record';

/** Where a settled cost comes from: a router's bill, the tariff of a tool, or list prices where no router ever said it. */
export type SettlementSource = CostSource | 'tariff' | 'estimated';

/** One line of a transaction; debits are positive, credits negative. */
export interface Line {
  readonly account: Account;
  readonly amount: Money;
}

export interface LimitedAccount {
  readonly account: Account;
  /** What the account may spend in all (a daily account: in the day). null: no limit. */
  readonly limit: Money | null;
  /** What the networks around a caller may spend in a day without a key, the widest first. */
  readonly within?: readonly NetworkLimit[];
}

export interface NetworkLimit {
  /** A salted hash. */
  readonly network: string;
  readonly limit: Money;
}

/** What was used, by whom. */
export interface Usage {
  /** What kind of use: ask, compare, v1, tool, app, visit. */
  readonly kind: string;
  /** A salted hash; never an address or a key. */
  readonly caller?: string;
  readonly app?: string;
  readonly model?: string;
  /** Name of the tool that was called, or for which a model was asked. */
  readonly tool?: string;
  readonly tokensIn?: number;
  readonly tokensOut?: number;
  readonly latencyMs?: number;
  /** The version of the price list that priced it. */
  readonly priceVersion?: string;
  /** Id of the request that made it, as its sender got it in X-Request-Id; that of several, where one asks several models. */
  readonly request?: string | undefined;
}

export interface ReserveRequest {
  /** A UUID of the call; sent again it is the same hold. */
  readonly id: string;
  /** The maximum that the call can cost. */
  readonly amount: Money;
  /** After so long the process that made it is considered dead; longer than any call may last. */
  readonly ttlMs: number;
  /** Who pays. */
  readonly debit: LimitedAccount;
  /** Who is owed. */
  readonly credit: LimitedAccount;
  /** The use that it is for: recorded even if only the reconciler finds what it cost. */
  readonly usage?: Usage | undefined;
  /**
   * Of a model call that the platform pays, when it is to be made: how many of them may be in flight. A hold that waits is
   * sent again with it.
   */
  readonly flight?: FlightLimits | undefined;
  /** The call is made later: until then, the hold is given back when it expires, and is no call in flight. */
  readonly waits?: boolean | undefined;
}

/** How many model calls may be in flight with the platform's key, on all replicas together. */
export interface FlightLimits {
  /** Of one caller or app. */
  readonly caller: number;
  readonly all: number;
}

export interface SettleRequest {
  readonly hold: string;
  readonly cost: Money;
  readonly source: SettlementSource;
  /** The use to record, with the hold's id as its own. */
  readonly usage?: Usage;
  /** More lines for the same transaction, such as a charge; they must sum to zero. */
  readonly lines?: readonly Line[];
}

export interface LedgerOptions {
  /** Statements of one kind in progress at the same time. More than one only serves to test what one row lock must withstand. */
  readonly concurrency?: number;
  /** Calls that may share a statement. */
  readonly batch?: number;
  /** For tests: the time; else the database's own clock decides, one for all replicas. */
  readonly clock?: () => Date;
}

export class Ledger {
  readonly #database: Database;
  readonly #now: () => Date | null;
  readonly #reservations: Batch<readonly ReserveRequest[], readonly ReserveAnswer[]>;
  readonly #settlements: Batch<SettleRequest, SettleAnswer>;
  readonly #releases: Batch<string, ReleaseOutcome>;

  constructor(database: Database, options: LedgerOptions = {}) {
    this.#database = database;
    this.#now = options.clock ?? (() => null);
    const batch = { size: options.batch ?? 64, concurrency: options.concurrency ?? 1 };
    this.#reservations = new Batch((groups) => this.#reserve(groups), batch);
    this.#settlements = new Batch((requests) => this.#settle(requests), batch);
    this.#releases = new Batch((ids) => this.#release(ids), batch);
  }

  /**
   * Reserves, or reports which side refused. One round trip, shared with other calls when busy.
   * `replayed`: this id is reserved already; `conflict`: this id was used for another hold.
   */
  async reserve(request: ReserveRequest): Promise<ReserveAnswer> {
    const [answer] = await this.#reservations.run([request]);
    return takeRow(answer);
  }

  /** The same for requests that belong together: when one is refused, all are, each with the reason of the first. */
  reserveAll(requests: readonly ReserveRequest[]): Promise<readonly ReserveAnswer[]> {
    return this.#reservations.run(requests);
  }

  /**
   * Records the real cost, above or below what was reserved, also after the hold was released or expired. The first cost
   * stands:
   * settling again changes nothing and answers `replayed` with that cost.
   */
  settle(request: SettleRequest): Promise<SettleAnswer> {
    return this.#settlements.run(request);
  }

  /** Gives back what was reserved for a call that cost nothing. A settled hold stays settled. */
  release(hold: string): Promise<ReleaseOutcome> {
    return this.#releases.run(hold);
  }

  /**
   * Records that a call was made and its cost is not known; the reservation stays until the cost is found, or settled at
   * the estimate (without one: at what is reserved).
   */
  async pend(
    hold: string,
    details: { reference: string | null; usage?: Usage; retryMs?: number; estimate?: Money | undefined },
  ): Promise<PendOutcome> {
    const usage = details.usage === undefined ? null : JSON.stringify(toUsageFields(details.usage));
    const [row] = await this.#database.replay(statements.pend, [
      hold,
      details.reference,
      usage,
      details.retryMs ?? 5_000,
      this.#now(),
      details.estimate === undefined ? null : formatMoney(details.estimate),
    ]);
    return takeRow(row).answer.outcome;
  }

  /**
   * Hands holds whose time is over to the reconciler; they stay reserved until it knows what they cost. @returns how
   * many.
   */
  async expire(limit = 500): Promise<number> {
    const [row] = await this.#database.replay(statements.expire, [limit, this.#now()]);
    return takeRow(row).count;
  }

  /**
   * Gives back what is reserved for tools, calls of apps and margins whose process ended: their tariff is due for a result
   * only, and no router has a record of it. @returns how many
   */
  async releaseToolHolds(): Promise<number> {
    const [row] = await this.#database.replay(statements.releaseToolHolds, [this.#now()]);
    return takeRow(row).answers.length;
  }

  /** Borrows pending costs for a while; no two reconcilers get the same one. */
  async claimPending(limit: number, leaseMs: number): Promise<PendingCost[]> {
    const [row] = await this.#database.query(statements.claimPending, [limit, leaseMs, this.#now()]);
    return takeRow(row).answers;
  }

  async deferPending(hold: string, waitMs: number, note: string): Promise<void> {
    await this.#database.replay(statements.deferPending, [hold, waitMs, note, this.#now()]);
  }

  /**
   * Records a plain transaction once per reference. `conflict`: the reference was used for other entries. @throws when the
   * lines do not sum to zero.
   */
  async post(reference: string, kind: string, lines: readonly Line[]): Promise<PostOutcome> {
    const [row] = await this.#database.replay(statements.post, [
      reference,
      kind,
      JSON.stringify(lines.map(toLineFields)),
      this.#now(),
    ]);
    return takeRow(row).answer.outcome;
  }

  /** Balance of an account, summed from its entries: debits less credits. */
  async balance(account: Account): Promise<Money> {
    const [row] = await this.#database.replay(statements.balance, [
      account.kind,
      account.owner,
      account.daily,
      this.#now(),
    ]);
    return takeRow(row).balance;
  }

  /** What a limited account has used and holds; zero for one not yet used. */
  async budget({ account, limit }: LimitedAccount): Promise<Budget> {
    const [row] = await this.#database.replay(statements.budget, [
      account.kind,
      account.owner,
      account.daily,
      this.#now(),
    ]);
    return { limit, ...takeRow(row) };
  }

  /** What hosted apps have used of their budgets, today and on the day before. */
  async listAppBudgets(): Promise<{ app: string; day: string; used: Money }[]> {
    return this.#database.replay(statements.appBudgets, [this.#now()]);
  }

  /** Model calls of today that cost the platform more than was reserved, and stop who and what caused it. */
  async overruns(): Promise<{ calls: number; excess: Money }> {
    const [row] = await this.#database.replay(statements.overruns, [this.#now()]);
    return takeRow(row);
  }

  /** Counts for metrics. */
  async counts(): Promise<{ open: number; pending: number; abandoned: number }> {
    const [row] = await this.#database.replay(statements.counts, []);
    return takeRow(row);
  }

  /**
   * Removes uses, finished holds and the totals of single days that are older than so many days; entries, balances and
   * the sums of uses stay. @returns how much.
   */
  async purge(keepDays: number, limit = 2_000): Promise<number> {
    await runPatiently(this.#database, (transaction) =>
      transaction.query(statements.dropDays, [this.#now(), keepDays]),
    );
    const [row] = await this.#database.replay(statements.purgeDetail, [this.#now(), keepDays, limit]);
    return takeRow(row).count;
  }

  /** Seconds since the oldest cost is looked up; 0 where none is. */
  async oldestPending(): Promise<number> {
    const [row] = await this.#database.replay(statements.oldestPending, [this.#now()]);
    return takeRow(row).seconds;
  }

  /** Resolves once the database has answered. @throws Error when it does not */
  async ping(): Promise<void> {
    await this.#database.query(statements.ping, []);
  }

  /** Makes the tables of the days to come, each before its first use. @returns how many */
  async makeDays(ahead = 7): Promise<number> {
    const [row] = await runPatiently(this.#database, (transaction) =>
      transaction.query(statements.makeDays, [ahead, this.#now()]),
    );
    return takeRow(row).count;
  }

  /** Every running total that differs from what it is derived from, in words. Reads the whole ledger. */
  async audit(): Promise<string[]> {
    return (await this.#database.replay(statements.audit, [])).map(({ fault }) => fault);
  }

  /**
   * The audit, and the sum of all entries, however long that takes: a large ledger is read for longer than other
   * statements may last.
   */
  async auditAtLength(): Promise<{ faults: string[]; imbalance: Money }> {
    return this.#database.transaction(
      async (transaction) => {
        await transaction.script("set local statement_timeout = '15min'");
        const faults = (await transaction.query(statements.audit, [])).map(({ fault }) => fault);
        const [row] = await transaction.query(statements.imbalance, []);
        return { faults, imbalance: takeRow(row).total };
      },
      { lasting: true },
    );
  }

  async #reserve(groups: readonly (readonly ReserveRequest[])[]): Promise<(readonly ReserveAnswer[])[]> {
    const requests = groups.flatMap((group, index) =>
      group.map((request) => ({ ...request, group: group.length > 1 ? String(index) : undefined })),
    );
    const fields = requests.map(({ id, amount, ttlMs, debit, credit, usage, flight, group, waits }) => ({
      id,
      amount: formatMoney(amount),
      ttl_ms: ttlMs,
      debit: toSideFields(debit),
      credit: toSideFields(credit),
      ...(usage === undefined ? {} : { usage: toUsageFields(usage) }),
      ...(flight === undefined ? {} : { flight }),
      ...(group === undefined ? {} : { group }),
      ...(waits === true ? { waits } : {}),
    }));
    const [row] = await this.#database.replay(selectReserve(requests), [JSON.stringify(fields), this.#now()]);
    const { answers } = takeRow(row);
    let next = 0;
    return groups.map(({ length }) => answers.slice(next, (next += length)));
  }

  async #settle(requests: readonly SettleRequest[]): Promise<SettleAnswer[]> {
    const fields = requests.map(({ hold, cost, source, usage, lines }) => ({
      hold,
      cost: formatMoney(cost),
      source,
      usage: usage === undefined ? null : toUsageFields(usage),
      lines: lines === undefined || lines.length === 0 ? null : lines.map(toLineFields),
    }));
    const [row] = await this.#database.replay(statements.settle, [JSON.stringify(fields), this.#now()]);
    return takeRow(row).answers;
  }

  async #release(ids: readonly string[]): Promise<ReleaseOutcome[]> {
    const [row] = await this.#database.replay(statements.release, [ids, this.#now()]);
    return takeRow(row).answers.map(({ outcome }) => outcome);
  }
}

/** The function for what these requests are limited by. */
function selectReserve(
  requests: readonly (ReserveRequest & { readonly group: string | undefined })[],
): typeof statements.reserve {
  if (requests.some(({ flight, group, waits }) => flight !== undefined || group !== undefined || waits === true))
    return statements.reserveCalls;
  return requests.some(({ debit }) => debit.within !== undefined) ? statements.reserveInNetworks : statements.reserve;
}

/** Work that may take longer than a statement may otherwise, and that gives way to calls: it waits for no lock for long. */
function runPatiently<T>(database: Database, work: (transaction: Transaction) => Promise<T>): Promise<T> {
  return database.transaction(
    async (transaction) => {
      await transaction.script("set local statement_timeout = 0; set local lock_timeout = '2s'");
      return work(transaction);
    },
    { lasting: true },
  );
}

function toSideFields({ account, limit, within = [] }: LimitedAccount): Record<string, unknown> {
  const networks = within.map((one) => ({ network: one.network, limit: formatMoney(one.limit) }));
  return {
    ...account,
    limit: limit === null ? null : formatMoney(limit),
    ...(networks.length === 0 ? {} : { within: networks }),
  };
}

/** A usage as the SQL functions read it. */
function toUsageFields(usage: Usage): Record<string, unknown> {
  const { kind, caller, app, model, tool, tokensIn, tokensOut, latencyMs, priceVersion, request } = usage;
  return {
    kind,
    caller,
    app,
    model,
    tool,
    tokens_in: tokensIn,
    tokens_out: tokensOut,
    latency_ms: latencyMs,
    price_version: priceVersion,
    request,
  };
}

function toLineFields({ account, amount }: Line): Record<string, unknown> {
  return { ...account, amount: formatMoney(amount) };
}

function takeRow<Row>(row: Row | undefined): Row {
  if (row === undefined) throw new Error('the database returned no row');
  return row;
}

interface Waiting<Item, Answer> {
  readonly item: Item;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

export interface BatchOptions {
  /** Maximum number of items in one statement. */
  readonly size: number;
  /** Maximum number of statements in progress at the same time. */
  readonly concurrency: number;
}

/**
 * Gathers calls that arrive while a statement is in progress, and sends them together in the next one. An idle batch sends
 * immediately, so a lone call waits for nothing; a busy one shares a round trip and a commit between
 * all that wait. Answers come in the order of the items. When a shared statement fails, its items are sent one by one,
 * so that one bad item spoils no other: `send` must allow being sent twice. When the database is gone, all fail immediately,
 * those that wait for the next statement too.
 */
export class Batch<Item, Answer> {
  readonly #send: (items: readonly Item[]) => Promise<readonly Answer[]>;
  readonly #options: BatchOptions;
  readonly #waiting: Waiting<Item, Answer>[] = [];
  #flying = 0;

  constructor(send: (items: readonly Item[]) => Promise<readonly Answer[]>, options: BatchOptions) {
    this.#send = send;
    this.#options = options;
  }

  run(item: Item): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject });
      this.#start();
    });
  }

  #start(): void {
    while (this.#flying < this.#options.concurrency && this.#waiting.length > 0) {
      this.#flying += 1;
      const group = this.#waiting.splice(0, this.#options.size);
      void this.#fly(group).finally(() => {
        this.#flying -= 1;
        this.#start();
      });
    }
  }

  async #fly(group: readonly Waiting<Item, Answer>[]): Promise<void> {
    try {
      const answers = await this.#send(group.map(({ item }) => item));
      group.forEach((waiting, index) => {
        deliver(waiting, answers[index]);
      });
    } catch (error) {
      const isGone = error instanceof DatabaseUnavailable;
      // Those that wait for their turn fail too: they have waited for this one, and would wait as long again.
      const failed = isGone ? [...group, ...this.#waiting.splice(0)] : group;
      if (group.length === 1 || isGone)
        failed.forEach(({ reject }) => {
          reject(error);
        });
      else for (const waiting of group) await this.#fly([waiting]);
    }
  }
}

function deliver<Item, Answer>(waiting: Waiting<Item, Answer>, answer: Answer | undefined): void {
  if (answer === undefined) waiting.reject(new Error('the batch has no answer for this item'));
  else waiting.resolve(answer);
}
