// The wallet: reserves the maximum cost of a use before it. What it returns settles the cost, gives the money back, or leaves it
// pending. Model calls, tools and calls of apps all spend through it. Calls with the platform's key wait for their turn, in order, for
// a while.
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '../../lib/telemetry.ts';
import { Problem } from '../../lib/problem.ts';
import type { JournalEntry, Hold, PendingUse, Settlements } from './settlements.ts';
import { toMarginAccount, type Payer, selectPriceAccounts } from './ledger/accounts.ts';
import type { CostSource, Ledger, ReserveRequest, SettlementSource, FlightLimits, Usage } from './ledger/ledger.ts';
import { type Money, sumMoney, zero } from './ledger/money.ts';
import { type ReserveAnswer, isFlightReason, isStopReason } from './ledger/statements.ts';
import { toMarginLines } from './prices.ts';
import { createQuotaProblem, type Quota, callsInFlight, callsStopped } from './problems.ts';

export interface WalletOptions {
  readonly ledger: Ledger;
  readonly settlements: Settlements;
  readonly log: Logger;
  /** Called for each use that a quota did not cover. */
  readonly refused: (kind: Payer['kind'], by: 'caller' | 'everyone') => void;
}

/** What to reserve: the request as the ledger gets it, and who pays. */
export interface SpendingItem extends ReserveRequest {
  readonly payer: Payer;
  /** Our margin on a model call. It is reserved apart, against the daily limit of the key. */
  readonly margin?: Margin | undefined;
  /** Of a model call that the platform pays: it waits until one more may be in flight. */
  readonly turn?: Turn | undefined;
}

export interface Margin {
  /** Name of the router in the ledger. */
  readonly router: string;
  /** The margin on a cost, by the version of the price list that was in effect when the call was reserved. */
  readonly on: (cost: Money) => Money;
}

export interface Turn {
  readonly calls: CallsInFlight;
  /** Aborted when the caller disconnects: the call stops waiting then. */
  readonly signal: AbortSignal;
}

/** What a use has really cost. */
export interface FinalCost {
  readonly cost: Money;
  readonly source: SettlementSource;
  readonly usage: Usage;
}

/** Looks for the cost of a call. */
export type CostSearch = () => Promise<{ readonly cost: Money; readonly source: CostSource } | undefined>;

export class Wallet {
  readonly #options: WalletOptions;

  constructor(options: WalletOptions) {
    this.#options = options;
  }

  /**
   * Reserves what a use can cost. A model call that the platform pays waits for its turn. @throws Problem (quota-exhausted,
   * calls-stopped, calls-in-flight, ledger-unavailable); nothing stays reserved then
   */
  async reserve(item: SpendingItem): Promise<Spend> {
    const margin = toMarginRequest(item);
    const marginHold = margin === undefined ? undefined : await this.#reserveOne(margin);
    const spend = this.#createSpend(item, undefined, marginHold);
    await spend.begin();
    return spend;
  }

  /**
   * Reserves all of what belongs together, or nothing. Until one of them begins, what is reserved for it is no call in
   * flight. @throws Problem (quota-exhausted, for what all of it can cost; ledger-unavailable)
   */
  async reserveAll(items: readonly SpendingItem[]): Promise<Spend[]> {
    const parts = items.map((item) => ({ item, margin: toMarginRequest(item) }));
    const requests = parts.flatMap(({ item, margin }) => [
      // Calls with the caller's own key do not wait for a turn.
      { ...item, waits: item.turn !== undefined },
      ...(margin === undefined ? [] : [margin]),
    ]);
    const answers = await this.#request(requests);
    const holds = new Map(
      requests.map((request, index) => {
        const answer = answers[index];
        if (answer === undefined) throw new Error('the ledger has no answer for a reservation');
        if (answer.outcome !== 'refused') return [request.id, toHold(request, answer)];
        // What a caller's router bills to a key is not limited here, so it is not what was refused.
        const limited = requests.filter(({ debit, credit }) => debit.limit !== null || credit.limit !== null);
        throw this.#refuse(answer, limited[0] ?? request, sumMoney(limited.map(({ amount }) => amount)));
      }),
    );
    return parts.map(({ item, margin }) =>
      this.#createSpend(item, holds.get(item.id), margin === undefined ? undefined : holds.get(margin.id)),
    );
  }

  /**
   * The current quota of a caller, for what reserves nothing itself, such as the status of a job; undefined where there is
   * none, or where it cannot be read: a hint is not worth a failure.
   */
  async readQuota(payer: Payer): Promise<Quota | undefined> {
    const { limit } = payer.debit;
    if (limit === null || payer.kind === 'key') return undefined;
    try {
      const { used, held } = await this.#options.ledger.budget(payer.debit);
      return { limit, used, held, resetsAt: findNextDay(Date.now()) };
    } catch (error) {
      this.#options.log.warn({ err: error }, 'cannot read the quota of a caller');
      return undefined;
    }
  }

  #createSpend(item: SpendingItem, hold: Hold | undefined, marginHold: Hold | undefined): Spend {
    const { settlements } = this.#options;
    return new Spend({ item, hold, marginHold, settlements, reserve: (request) => this.#reserveOne(request) });
  }

  async #reserveOne(item: SpendingItem): Promise<Hold> {
    const [answer] = await this.#request([item]);
    if (answer === undefined) throw new Error('the ledger has no answer for a reservation');
    if (answer.outcome === 'refused') throw this.#refuse(answer, item, item.amount);
    if (item.flight !== undefined && answer.state !== 'open')
      throw new Error(`the hold ${item.id} ended before its call began`);
    return toHold(item, answer);
  }

  /** A refusal counts only once settlements in the background have given back what they do not need. */
  async #request(items: readonly SpendingItem[]): Promise<readonly ReserveAnswer[]> {
    const { ledger, settlements } = this.#options;
    const first = await ledger.reserveAll(items);
    const isRefused = first.some(({ outcome }) => outcome === 'refused');
    return isRefused && (await settlements.waitForSettling()) ? ledger.reserveAll(items) : first;
  }

  #refuse(answer: ReserveAnswer, { payer, debit, credit, usage }: SpendingItem, amount: Money): Problem {
    const problem = toFlightProblem(answer, usage, Date.now());
    if (problem !== undefined) return problem;
    this.#options.refused(payer.kind, answer.refused_by === 'credit' ? 'everyone' : 'caller');
    return createQuotaProblem(answer, { payer, fixed: credit !== payer.credit, debit, credit }, amount, Date.now());
  }
}

interface SpendOptions {
  readonly item: SpendingItem;
  /** Undefined until it begins, where it was not reserved together with others. */
  readonly hold: Hold | undefined;
  readonly marginHold: Hold | undefined;
  readonly settlements: Settlements;
  readonly reserve: (item: SpendingItem) => Promise<Hold>;
}

/** Money reserved for one use. It ends with one of `settle`, `settleBehind`, `release` and `pend`. */
export class Spend {
  readonly #item: SpendingItem;
  readonly #marginHold: Hold | undefined;
  readonly #settlements: Settlements;
  readonly #reserve: SpendOptions['reserve'];
  #hold: Hold | undefined;
  /** Lets the next call of the caller begin. */
  #endTurn: () => void = () => undefined;

  constructor({ item, hold, marginHold, settlements, reserve }: SpendOptions) {
    this.#item = item;
    this.#hold = hold;
    this.#marginHold = marginHold;
    this.#settlements = settlements;
    this.#reserve = reserve;
  }

  /**
   * Begins what was reserved together with others: a call that the platform pays waits until the ledger lets one more be
   * in flight. @throws Problem (calls-stopped, calls-in-flight); nothing stays reserved then
   */
  async begin(): Promise<void> {
    const item = this.#item;
    const { turn, payer } = item;
    try {
      if (turn !== undefined) {
        const { reserved, end } = await turn.calls.begin(`${payer.kind}:${payer.owner}`, turn.signal, () =>
          this.#reserve({ ...item, flight: turn.calls.limits }),
        );
        this.#hold = reserved;
        this.#endTurn = end;
      }
      this.#hold ??= await this.#reserve(item);
    } catch (error) {
      if (this.#hold !== undefined) await this.#settlements.release(this.#hold);
      await this.#releaseMargin();
      throw error;
    }
  }

  /** The caller's quota once this is reserved, where there is one. */
  get quota(): Quota | undefined {
    return this.#hold?.quota;
  }

  /** The use that it was reserved for. @throws Error when none was named */
  get usage(): Usage {
    if (this.#item.usage === undefined) throw new Error(`no use is known of the hold ${this.#item.id}`);
    return this.#item.usage;
  }

  /** What the caller is charged on top of a cost. */
  marginOn(cost: Money): Money {
    return this.#item.margin?.on(cost) ?? zero;
  }

  /** Records the real cost. @returns the quota afterwards */
  async settle(final: FinalCost): Promise<Quota | undefined> {
    return this.#end((hold) => this.#settlements.settle(hold, this.#toEntry(hold, final)));
  }

  /**
   * Records the real cost where no caller waits for it: the answer can be sent as soon as the journal has the cost.
   * @returns the quota as it will be
   */
  async settleBehind(final: FinalCost): Promise<Quota | undefined> {
    return this.#end((hold) => this.#settlements.settleBehind(hold, this.#toEntry(hold, final)));
  }

  /** Gives the money back. @returns the quota afterwards */
  async release(): Promise<Quota | undefined> {
    return this.#end(async (hold) => {
      const quota = await this.#settlements.release(hold);
      await this.#releaseMargin();
      return quota;
    });
  }

  /**
   * Records that the cost is not known yet. `search` looks for it in the background where only the caller's own key can
   * find it: the reconciler will not have the key. @returns the quota
   */
  async pend(use: PendingUse, search?: CostSearch): Promise<Quota | undefined> {
    return this.#end(async (hold) => {
      await this.#settlements.pend(hold, use);
      if (search !== undefined) this.#settlements.track(this.#settleWhenFound(hold, search));
      return hold.quota;
    });
  }

  async #settleWhenFound(hold: Hold, search: CostSearch): Promise<void> {
    try {
      const found = await search();
      if (found !== undefined) await this.#settlements.settleFound(this.#toEntry(hold, found));
    } finally {
      await this.#releaseMargin();
    }
  }

  /** The hold for the margin is given back only once the lines that charge it are recorded. */
  #toEntry(hold: Hold, final: Omit<FinalCost, 'usage'> & Partial<FinalCost>): JournalEntry {
    const { payer, margin } = this.#item;
    return {
      hold: hold.id,
      lines: margin === undefined ? [] : toMarginLines(margin.on(final.cost), payer, margin.router),
      ...final,
      ...(this.#marginHold === undefined ? {} : { frees: this.#marginHold.id }),
    };
  }

  async #end<Result>(write: (hold: Hold) => Promise<Result>): Promise<Result> {
    if (this.#hold === undefined) throw new Error(`the call of the hold ${this.#item.id} has not begun`);
    try {
      return await write(this.#hold);
    } finally {
      this.#endTurn();
    }
  }

  async #releaseMargin(): Promise<void> {
    if (this.#marginHold !== undefined) await this.#settlements.release(this.#marginHold);
  }
}

/** The router bills the cost to the key itself, without a limit here; the margin is ours, and counts toward the limit of the key. */
function toMarginRequest({ payer, amount, ttlMs, margin }: SpendingItem): SpendingItem | undefined {
  const maximum = margin?.on(amount) ?? zero;
  if (margin === undefined || maximum === zero) return undefined;
  const accounts = selectPriceAccounts(payer, toMarginAccount(margin.router));
  return { id: randomUUID(), payer, amount: maximum, ttlMs, ...accounts };
}

function toHold({ id, amount, payer }: SpendingItem, { debit, day_ends_at: resetsAt }: ReserveAnswer): Hold {
  const { limit } = payer.debit;
  // Of a caller with a key, only the refusal reports its limit.
  const hasQuota = debit !== null && payer.kind !== 'key' && limit !== null;
  return { id, amount, quota: hasQuota ? { limit, used: debit.used, held: debit.held, resetsAt } : undefined };
}

/** The next 00:00 UTC, when daily accounts start again at zero. */
function findNextDay(now: number): Date {
  const day = 86_400_000;
  return new Date((Math.floor(now / day) + 1) * day);
}

/** Calls of one caller that may wait in this process. */
const maxWaiting = 256;
/** The end of another replica's call is not reported here, so the ledger is asked again after this time. */
const lookMs = 500;

export interface CallsInFlightOptions {
  readonly limits: FlightLimits;
  /** Longest wait of a call; default 20 s. */
  readonly waitMs?: number;
}

interface Line {
  readonly queue: (() => void)[];
  taken: number;
}

/** Model calls in flight with the platform's key. The ledger decides for all replicas; this is the queue of one process. */
export class CallsInFlight {
  readonly limits: FlightLimits;
  readonly #waitMs: number;
  /** By caller; only callers with a call in progress. */
  readonly #lines = new Map<string, Line>();
  /** Those that the ledger has asked to wait. */
  #ended = Promise.withResolvers<undefined>();

  constructor({ limits, waitMs = 20_000 }: CallsInFlightOptions) {
    this.limits = limits;
    this.#waitMs = waitMs;
  }

  /**
   * Waits for the turn of a call, then reserves. @returns what was reserved, and a function to call when the call has ended.
   * @throws Problem (calls-in-flight) after a while, and what `reserve` throws
   */
  async begin<Reserved>(
    owner: string,
    signal: AbortSignal,
    reserve: () => Promise<Reserved>,
  ): Promise<{ reserved: Reserved; end: () => void }> {
    const until = performance.now() + this.#waitMs;
    const leave = await this.#enter(owner, AbortSignal.any([signal, AbortSignal.timeout(this.#waitMs)]));
    try {
      return { reserved: await this.#reserve(reserve, until, signal), end: leave };
    } catch (error) {
      leave();
      throw error;
    }
  }

  async #reserve<Reserved>(reserve: () => Promise<Reserved>, until: number, signal: AbortSignal): Promise<Reserved> {
    for (;;) {
      const { promise: ended } = this.#ended;
      try {
        return await reserve();
      } catch (error) {
        const isFull = error instanceof Problem && error.type === callsInFlight;
        if (!isFull || signal.aborted || performance.now() >= until) throw error;
      }
      await Promise.race([ended, sleep(lookMs, undefined, { ref: false })]);
      // Calls that end together let others begin together.
      await sleep(10);
    }
  }

  /** Takes one of the calls that a caller may have in this process. */
  async #enter(owner: string, signal: AbortSignal): Promise<() => void> {
    const line = this.#lines.get(owner) ?? { queue: [], taken: 0 };
    this.#lines.set(owner, line);
    if (line.taken < this.limits.caller) line.taken += 1;
    else if (line.queue.length >= maxWaiting) throw createInFlightProblem('in_flight_caller');
    else await waitInQueue(line.queue, signal);
    let isTaken = true;
    return () => {
      if (!isTaken) return;
      isTaken = false;
      this.#leave(owner, line);
    };
  }

  #leave(owner: string, line: Line): void {
    // The turn is handed on, so that no other call comes in between.
    const next = line.queue.shift();
    if (next !== undefined) next();
    else if ((line.taken -= 1) === 0) this.#lines.delete(owner);
    this.#ended.resolve(undefined);
    this.#ended = Promise.withResolvers();
  }
}

async function waitInQueue(queue: (() => void)[], signal: AbortSignal): Promise<void> {
  const turn = Promise.withResolvers<undefined>();
  const take = (): void => {
    turn.resolve(undefined);
  };
  const give = (): void => {
    const at = queue.indexOf(take);
    if (at === -1) return;
    queue.splice(at, 1);
    turn.reject(createInFlightProblem('in_flight_caller'));
  };
  queue.push(take);
  signal.addEventListener('abort', give, { once: true });
  try {
    await turn.promise;
  } finally {
    signal.removeEventListener('abort', give);
  }
}

/** The refusal of a call that is stopped, or has to wait; undefined for any other one. */
function toFlightProblem(
  { refused_by: reason, day_ends_at: until }: ReserveAnswer,
  usage: Pick<Usage, 'model'> | undefined,
  now: number,
): Problem | undefined {
  if (isFlightReason(reason)) return createInFlightProblem(reason);
  if (!isStopReason(reason)) return undefined;
  const isCaller = reason === 'stopped_caller';
  const model = usage?.model ?? 'This model';
  return new Problem(
    callsStopped,
    `${isCaller ? 'One of your calls' : `A call of ${model}`} cost more than was reserved for it, so ${isCaller ? 'your calls on the free quota are' : 'this model is'} stopped until ${until.toISOString().slice(11, 16)} UTC. To continue now, ${isCaller ? '' : 'choose another model, or '}send your own API key for the model router: Authorization: Bearer sk-…`,
    {
      headers: { 'retry-after': String(Math.max(1, Math.ceil((until.getTime() - now) / 1000))) },
      members: { stopped: isCaller ? 'caller' : 'model', until: until.toISOString() },
    },
  );
}

function createInFlightProblem(reason: 'in_flight_caller' | 'in_flight_all' | 'in_flight_model'): Problem {
  const whose = {
    in_flight_caller: 'You have too many model calls in progress on the key of this installation.',
    in_flight_all: 'This installation has too many model calls in progress.',
    in_flight_model: 'The first call of this model on this day is in progress, and others wait for it.',
  }[reason];
  return new Problem(callsInFlight, `${whose} Try again in 2 seconds.`, {
    headers: { 'retry-after': '2' },
    members: { scope: reason === 'in_flight_caller' ? 'caller' : 'everyone' },
  });
}
