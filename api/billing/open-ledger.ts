// Opens the database of the books and keeps them tidy. Works without a model router: tools book what they charge all
// the same.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Registry } from 'prom-client';
import type { Logger } from '../../lib/log.ts';
import { Problem } from '../../lib/problem.ts';
import type { Database } from './database/database.ts';
import { Ledger } from './ledger/ledger.ts';
import { openLedgerDatabase } from './database/open.ts';
import { repeat, type Chore } from './periodic-task.ts';
import { Bookings } from './holds.ts';
import { billingMetrics } from './metrics.ts';
import { ledgerUnavailable, ledgerUnconfigured } from './problems.ts';

export interface BooksOptions {
  /** undefined: there are no books here. */
  readonly databaseUrl: string | undefined;
  readonly registry: Registry;
  readonly log: Logger;
  /** Opens the database; default openLedgerDatabase. */
  readonly open?: ((url: string) => Promise<Database>) | undefined;
}

/** The books, once the database is there. */
export interface Books {
  readonly database: Database;
  readonly ledger: Ledger;
  readonly bookings: Bookings;
  /** Repeats a chore until the process ends. */
  chore(name: string, everyMs: number, run: () => Promise<number>): void;
}

export interface BooksHandle {
  /** The books, or undefined where no database is set or the process ended before it was there. */
  readonly opened: Promise<Books | undefined>;
  /** @throws Problem (ledger-unconfigured, ledger-unavailable) while there are none */
  get(): Books;
  /** Ends the chores. The database stays open until `close`. */
  end(): void;
  /** Finishes bookings and chores, closes the database. */
  close(): Promise<void>;
}

/** Starts in the background, so that all else of the API serves while the database is away. */
export function startBooks(options: BooksOptions): BooksHandle {
  const { databaseUrl, log } = options;
  const ending = new AbortController();
  const chores: Promise<void>[] = [];
  let books: Books | undefined;
  const opened = databaseUrl === undefined ? Promise.resolve(undefined) : begin(databaseUrl);
  return {
    opened,
    get: () => books ?? absent(databaseUrl),
    end() {
      ending.abort();
    },
    async close() {
      ending.abort();
      const there = await opened;
      if (there === undefined) return;
      await there.bookings.drain(2_000);
      await Promise.all(chores);
      await there.database.close();
    },
  };

  async function begin(url: string): Promise<Books | undefined> {
    const database = await openPatiently(() => (options.open ?? openLedgerDatabase)(url), log, ending.signal);
    if (database === undefined) return undefined;
    const ledger = new Ledger(database);
    const metrics = billingMetrics(options.registry, () => ledger.counts());
    const chore = (name: string, everyMs: number, run: () => Promise<number>): void => {
      const work: Chore = {
        everyMs,
        run,
        failed: (error) => {
          log.error({ err: error, chore: name }, 'chore failed');
        },
      };
      chores.push(repeat(work, ending.signal));
    };
    chore('expire', 10_000, async () => (await ledger.expire()) + (await ledger.voidToolHolds()));
    books = {
      database,
      ledger,
      chore,
      bookings: new Bookings({
        ledger,
        log,
        refused: (kind, by) => {
          metrics.refused(kind, by);
        },
      }),
    };
    return books;
  }
}

function absent(databaseUrl: string | undefined): never {
  if (databaseUrl === undefined) {
    throw new Problem(
      ledgerUnconfigured,
      'this is charged for, and there are no books to write it into: whoever runs this installation sets DATABASE_URL to a PostgreSQL server, like postgres://user:password@host/database',
    );
  }
  throw new Problem(ledgerUnavailable, 'the database is not there yet; try again in 5 s', {
    headers: { 'retry-after': '5' },
  });
}

/** Tries until the database answers. @returns undefined when the process ends before that */
async function openPatiently(
  open: () => Promise<Database>,
  log: Logger,
  signal: AbortSignal,
): Promise<Database | undefined> {
  for (let wait = 500; ; wait = Math.min(wait * 2, 5_000)) {
    try {
      return await open();
    } catch (error) {
      log.error({ err: error }, 'the database cannot be opened, trying again');
    }
    await sleep(wait, undefined, { signal }).catch(() => undefined);
    if (signal.aborted) return undefined;
  }
}
