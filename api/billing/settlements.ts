// Settlements: writes what a hold has come to into the ledger. Each is retried while the database is away, and kept in the journal
// until the ledger has it, so that a process that is killed at any line loses none.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '../../lib/telemetry.ts';
import type { Journal, JournalEntry } from './journal.ts';
import type { Ledger } from './ledger/ledger.ts';
import type { Money } from './ledger/money.ts';
import type { SettleAnswer } from './ledger/shapes.ts';
import type { Usage } from './ledger/usage.ts';
import type { Quota } from './quota.ts';

/** Milliseconds in which settlements that no caller waits for are gathered. */
const gatherMs = 10;

export interface SettlementsOptions {
  readonly ledger: Ledger;
  readonly log: Logger;
  /** Where settlements are kept until the ledger has them; without one, each is waited for. */
  readonly journal?: Journal | undefined;
}

/** Money that is reserved. */
export interface Hold {
  readonly id: string;
  readonly amount: Money;
  /** The quota once this is reserved, where there is one. */
  readonly quota: Quota | undefined;
}

/** What is known of a use whose cost is not. */
export interface PendingUse {
  /** The router's own id of the call, where known. */
  readonly reference: string | null;
  readonly usage: Usage;
  readonly estimate?: Money | undefined;
}

export class Settlements {
  readonly #options: SettlementsOptions;
  /** First tries of settlements that no caller waits for. */
  readonly #settling = new Set<Promise<unknown>>();
  readonly #background = new Set<Promise<void>>();
  #gathering: Promise<void> | undefined;

  constructor(options: SettlementsOptions) {
    this.#options = options;
  }

  /** Records the real cost, and in the same transaction the entry's lines. @returns the quota afterwards */
  async settle(hold: Hold, entry: JournalEntry): Promise<Quota | undefined> {
    return quotaAfter(hold, await this.#settle(hold, entry));
  }

  /**
   * Records the real cost where no caller waits for it: the caller can have the answer as soon as the journal has the cost.
   * @returns the quota as it will be
   */
  async settleBehind(hold: Hold, entry: JournalEntry): Promise<Quota | undefined> {
    const { journal, log } = this.#options;
    try {
      journal?.write(entry);
    } catch (error) {
      log.error({ err: error, hold: hold.id }, 'the journal cannot be written, so a settlement is waited for');
      return this.settle(hold, entry);
    }
    if (journal === undefined) return this.settle(hold, entry);
    const settling = this.#gathered()
      .then(() => this.#settle(hold, entry))
      .finally(() => {
        this.#settling.delete(settling);
      });
    this.#settling.add(settling);
    return expectedQuota(hold, entry.cost);
  }

  /** Gives the money back. @returns the quota afterwards */
  async release(hold: Hold): Promise<Quota | undefined> {
    await this.#persistently(hold, () => this.#options.ledger.release(hold.id));
    return hold.quota === undefined ? undefined : { ...hold.quota, held: (hold.quota.held - hold.amount) as Money };
  }

  /** Records that the cost is not known yet. */
  async pend(hold: Hold, use: PendingUse): Promise<void> {
    await this.#persistently(hold, () => this.#options.ledger.pend(hold.id, use));
  }

  /** Settles a cost that was found after it was pending. Not retried: the reconciler still has the hold. */
  async settleFound(entry: JournalEntry): Promise<void> {
    await this.#options.ledger.settle(entry);
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
   * Waits for settlements that no caller waits for: until then, more is reserved than has to be. @returns whether there
   * were any
   */
  async waitForSettling(): Promise<boolean> {
    if (this.#settling.size === 0) return false;
    await Promise.allSettled([...this.#settling]);
    return true;
  }

  /**
   * Waits for writes that are still being retried, but not for long: a hold that is left expires, and its cost is
   * looked up then.
   */
  async drain(limitMs: number): Promise<void> {
    const writes = [...this.#settling, ...this.#background];
    await Promise.race([Promise.allSettled(writes), sleep(limitMs, undefined, { ref: false })]);
  }

  /** Settlements that no caller waits for go together, once the answers are sent: reservations, which callers wait for, come first. */
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

/** What the settlement will make of it, as far as this call goes. */
function expectedQuota({ quota, amount }: Hold, cost: Money): Quota | undefined {
  if (quota === undefined) return undefined;
  return { ...quota, used: (quota.used + cost) as Money, held: (quota.held - amount) as Money };
}

function quotaAfter({ quota }: Hold, answer: SettleAnswer | undefined): Quota | undefined {
  if (quota === undefined || answer === undefined || answer.outcome === 'unknown' || answer.debit === null)
    return quota;
  return { ...quota, used: answer.debit.used, held: answer.debit.held };
}
