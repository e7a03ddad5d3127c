// Settlements: records the outcome of each hold in the ledger. Each is retried while the database is away, and kept in the journal
// until the ledger has it, so that a process that is killed at any line loses none.
import { setTimeout as sleep } from 'node:timers/promises';
import {
  closeSync,
  constants,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { z } from 'zod';
import type { Logger } from '../../lib/telemetry.ts';
import type { Ledger, SettleRequest, Usage } from './ledger/ledger.ts';
import { formatMoney, type Money, money, parseMoney } from './ledger/money.ts';
import type { SettleAnswer } from './ledger/statements.ts';
import type { Quota } from './problems.ts';

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
    return updateQuota(hold, await this.#settle(hold, entry));
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
      log.error({ err: error, hold: hold.id }, 'cannot write the journal, so the call waits for its settlement');
      return this.settle(hold, entry);
    }
    if (journal === undefined) return this.settle(hold, entry);
    const settling = this.#gathered()
      .then(() => this.#settle(hold, entry))
      .finally(() => {
        this.#settling.delete(settling);
      });
    this.#settling.add(settling);
    return predictQuota(hold, entry.cost);
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
      if (unknown > 0) log.error(found, 'the journal of an earlier process contains holds that are not in the ledger');
      else log.info(found, 'the journal of an earlier process was settled');
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
function predictQuota({ quota, amount }: Hold, cost: Money): Quota | undefined {
  if (quota === undefined) return undefined;
  return { ...quota, used: (quota.used + cost) as Money, held: (quota.held - amount) as Money };
}

function updateQuota({ quota }: Hold, answer: SettleAnswer | undefined): Quota | undefined {
  if (quota === undefined || answer === undefined || answer.outcome === 'unknown' || answer.debit === null)
    return quota;
  return { ...quota, used: answer.debit.used, held: answer.debit.held };
}

/** After so many bytes a new file is begun, and the old one is removed once all of it is settled. */
const maxBytes = 4 * 1024 * 1024;

export interface JournalEntry extends SettleRequest {
  /** Another hold, which is given back once this is settled. */
  readonly frees?: string | undefined;
}

interface JournalFile {
  readonly path: string;
  readonly descriptor: number;
  readonly unsettled: Set<string>;
  bytes: number;
}

/** Files of a process that ended before all of them was settled. */
export interface LeftEntries {
  readonly path: string;
  readonly entries: readonly JournalEntry[];
  /** Lines that cannot be read: the last one where the process ended in the middle of it, whose answer was never sent. */
  readonly broken: number;
}

/**
 * The journal: what calls cost, in a file from before their answers are sent until the ledger has it, so that a process that
 * is killed in between loses nothing. What is in a file twice, or is settled already, is harmless: the first cost stands.
 */
export class Journal {
  readonly #folder: string;
  readonly #left: Set<LeftEntries>;
  readonly #files = new Map<string, JournalFile>();
  #current: JournalFile;

  /** Opens a folder that no other process uses meanwhile. @throws Error when it cannot be written */
  constructor(folder: string) {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    this.#folder = folder;
    const names = readdirSync(folder).filter((name) => name.endsWith('.journal'));
    this.#left = new Set(names.map((name) => readEntries(join(folder, name))));
    this.#current = this.#begin();
  }

  /** What processes before this one have left, and is not settled yet. */
  get left(): readonly LeftEntries[] {
    return [...this.#left];
  }

  /** When this returns, the entry outlives the process. @throws Error when the disk is full */
  write(entry: JournalEntry): void {
    if (this.#current.bytes >= maxBytes) this.#current = this.#begin();
    const file = this.#current;
    // Each entry begins on a new line: an entry that a full disk cut off spoils no other.
    const line = Buffer.from(`\n${JSON.stringify(toFields(entry))}\n`);
    const written = writeSync(file.descriptor, line);
    file.bytes += written;
    if (written < line.length) throw new Error(`the journal took ${written} of ${line.length} bytes`);
    file.unsettled.add(entry.hold);
    this.#files.set(entry.hold, file);
  }

  /** The ledger has it. */
  settled(hold: string): void {
    const file = this.#files.get(hold);
    if (file === undefined) return;
    this.#files.delete(hold);
    file.unsettled.delete(hold);
    if (file.unsettled.size > 0) return;
    if (file !== this.#current) this.#remove(file);
    // Most of the time there is nothing unsettled, so the file stays as small as that.
    else if (file.bytes > 65_536) this.#empty(file);
  }

  /** All that a process has left is settled; where a hold of it is not known, the file is kept for people under another name. */
  forget(left: LeftEntries, keep: boolean): void {
    this.#left.delete(left);
    if (keep) renameSync(left.path, `${left.path}.unknown`);
    else unlinkSync(left.path);
  }

  /** Removes the file if nothing in it is unsettled. */
  close(): void {
    const file = this.#current;
    if (file.unsettled.size === 0) this.#remove(file);
    else closeSync(file.descriptor);
  }

  #begin(): JournalFile {
    const path = join(this.#folder, `${randomUUID()}.journal`);
    const descriptor = openSync(path, constants.O_APPEND | constants.O_CREAT | constants.O_WRONLY, 0o600);
    return { path, descriptor, unsettled: new Set(), bytes: 0 };
  }

  #empty(file: JournalFile): void {
    ftruncateSync(file.descriptor);
    file.bytes = 0;
  }

  #remove({ descriptor, path }: JournalFile): void {
    closeSync(descriptor);
    unlinkSync(path);
  }
}

function toFields({ cost, lines = [], ...rest }: JournalEntry): Record<string, unknown> {
  return {
    ...rest,
    cost: formatMoney(cost),
    lines: lines.map(({ account, amount }) => ({ account, amount: formatMoney(amount) })),
  };
}

const count = z.int().optional();
const name = z.string().optional();

const entryShape = z.object({
  hold: z.uuid(),
  frees: z.uuid().optional(),
  cost: z.string().transform((text) => parseMoney(text)),
  source: z.enum(['billed', 'router_computed', 'router_record', 'tariff', 'estimated']),
  usage: z
    .object({
      kind: z.string(),
      caller: name,
      app: name,
      model: name,
      tool: name,
      tokensIn: count,
      tokensOut: count,
      latencyMs: count,
      priceVersion: name,
      request: name,
    })
    .optional(),
  lines: z.array(
    z.object({
      account: z.object({ kind: z.string(), owner: z.string(), daily: z.boolean() }),
      amount: money,
    }),
  ),
});

function readEntries(path: string): LeftEntries {
  const lines = readFileSync(path, 'utf8').split('\n').filter(Boolean);
  const read = lines.map((line) => entryShape.safeParse(parseLine(line)));
  const entries = read.flatMap(({ data }) => (data === undefined ? [] : [data as JournalEntry]));
  return { path, entries, broken: lines.length - entries.length };
}

function parseLine(line: string): unknown {
  try {
    return JSON.parse(line) as unknown;
  } catch {
    return undefined;
  }
}
