// The database as the ledger sees it: named statements, transactions and retries, over PostgreSQL or PGlite.
import { AsyncLocalStorage } from 'node:async_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import type { z } from 'zod';
import { DatabaseUnavailable, isTransient } from './failures.ts';

/** What a caller waits for, retries included: with the rest of a request, it is answered within five seconds. */
const callMs = 4_000;
/** What a task waits for one statement: longer than the server's own limit (`statement_timeout`), which ends it first. */
const taskStatementMs = 15_000;
/** The same where a transaction has set a longer limit of the server; a silent peer must not hold up a task for good. */
const lastingStatementMs = 3_600_000;

const tasks = new AsyncLocalStorage<true>();
const singleTries = new AsyncLocalStorage<true>();

/** Runs work that no caller waits for: its statements may take as long as the server lets them. */
export function runAsTask<T>(work: () => Promise<T>): Promise<T> {
  return tasks.run(true, work);
}

/** Runs work that is repeated soon anyway, such as what a scrape reads: its statements fail at the first failure. */
export function runWithoutRetries<T>(work: () => Promise<T>): Promise<T> {
  return singleTries.run(true, work);
}

/** A statement that each connection parses and plans once, under its name. */
export interface Statement<Row> {
  readonly name: string;
  readonly text: string;
  readonly row: z.ZodType<Row>;
}

/** Returns a function that defines statements of one room. A connection identifies a statement by its name, hence the prefix. */
export function prefixStatements(
  prefix: string,
): <Row>(name: string, text: string, row: z.ZodType<Row>) => Statement<Row> {
  return (name, text, row) => ({ name: `${prefix}-${name}`, text, row });
}

export interface Queryable {
  /** Runs a statement and checks the rows. @throws DatabaseUnavailable, the server's error, or ZodError when a row is not as stated. */
  query<Row>(statement: Statement<Row>, values: readonly unknown[]): Promise<Row[]>;
}

export interface Transaction extends Queryable {
  /** Runs SQL text of several statements, without parameters. */
  script(sql: string): Promise<void>;
}

/** Where statements run, in the driver's own terms. */
export interface Connection {
  /**
   * `limitMs`: after that the connection is given up, whatever the server does.
   * @throws DatabaseUnavailable where the database cannot be used, and otherwise the server's error
   */
  rows(
    statement: { readonly name: string; readonly text: string },
    values: readonly unknown[],
    limitMs: number,
  ): Promise<unknown[]>;
  script(sql: string, limitMs: number): Promise<void>;
}

export interface Driver extends Connection {
  /** How many statements can run at once; 1 on PGlite. */
  readonly connections: number;
  /** Runs work between begin and commit; rolls back when it throws. */
  transaction<T>(work: (connection: Connection) => Promise<T>, limitMs: number): Promise<T>;
  close(): Promise<void>;
}

/** What the ledger needs of a database. */
export class Database implements Queryable {
  readonly #driver: Driver;

  constructor(driver: Driver) {
    this.#driver = driver;
  }

  get connections(): number {
    return this.#driver.connections;
  }

  async query<Row>(statement: Statement<Row>, values: readonly unknown[]): Promise<Row[]> {
    return inTime((limitMs) => this.#query(statement, values, limitMs));
  }

  /**
   * Runs a statement that may be sent twice without harm, again after a serialization failure, a deadlock or a lost
   * connection. At most five times, and only as long as a caller waits; then the last error is thrown.
   */
  async replay<Row>(statement: Statement<Row>, values: readonly unknown[]): Promise<Row[]> {
    return inTime((limitMs) => retrying('any', limitMs, () => this.#query(statement, values, limitMs)));
  }

  /**
   * Runs work in one transaction, the whole of it again after a serialization failure or a deadlock, at most five
   * times.
   * A lost connection is not retried: the commit may have happened.
   * `lasting`: for a transaction that sets its own `statement_timeout`, since it reads or writes for long.
   */
  async transaction<T>(
    work: (transaction: Transaction) => Promise<T>,
    { lasting = false }: { readonly lasting?: boolean } = {},
  ): Promise<T> {
    const run = (limitMs: number): Promise<T> =>
      retrying('rolled back', limitMs, () =>
        this.#driver.transaction(
          (connection) =>
            work({
              query: async (statement, values) => parsed(statement, await connection.rows(statement, values, limitMs)),
              script: (sql) => connection.script(sql, limitMs),
            }),
          limitMs,
        ),
      );
    return lasting ? run(lastingStatementMs) : inTime(run);
  }

  async #query<Row>(statement: Statement<Row>, values: readonly unknown[], limitMs: number): Promise<Row[]> {
    return parsed(statement, await this.#driver.rows(statement, values, limitMs));
  }

  async close(): Promise<void> {
    await this.#driver.close();
  }
}

function parsed<Row>(statement: Statement<Row>, rows: readonly unknown[]): Row[] {
  return rows.map((row) => statement.row.parse(row));
}

/**
 * Runs work with the time that each of its statements has. A caller also gets an answer when that time is over, even if
 * it was spent on waiting for a connection or on retries; what is in progress then ends by its own limit.
 */
async function inTime<T>(work: (limitMs: number) => Promise<T>): Promise<T> {
  if (tasks.getStore() === true) return work(taskStatementMs);
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    late.reject(new DatabaseUnavailable('timeout'));
  }, callMs);
  try {
    return await Promise.race([work(callMs), late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

async function retrying<T>(harmless: 'any' | 'rolled back', limitMs: number, work: () => Promise<T>): Promise<T> {
  const since = performance.now();
  const tries = singleTries.getStore() === true ? 1 : 5;
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work();
    } catch (error) {
      const isLate = performance.now() - since > limitMs;
      if (attempt === tries || isLate || !isTransient(error, harmless)) throw error;
      await sleep(Math.random() * 5 * 4 ** attempt);
    }
  }
}
