// The database as the ledger sees it: named statements, transactions and retries, over PostgreSQL or PGlite.
import { setTimeout as sleep } from 'node:timers/promises';
import type { z } from 'zod';
import { isTransient } from './failures.ts';

/** A statement that each connection parses and plans once, under its name. */
export interface Statement<Row> {
  readonly name: string;
  readonly text: string;
  readonly row: z.ZodType<Row>;
}

export interface Queryable {
  /** Runs a statement and checks the rows. @throws the driver's error, or ZodError when a row is not as stated. */
  query<Row>(statement: Statement<Row>, values: readonly unknown[]): Promise<Row[]>;
}

export interface Transaction extends Queryable {
  /** Runs SQL text of several statements, without parameters. */
  script(sql: string): Promise<void>;
}

/** Where statements run, in the driver's own terms. */
export interface Connection {
  rows(statement: { readonly name: string; readonly text: string }, values: readonly unknown[]): Promise<unknown[]>;
  script(sql: string): Promise<void>;
}

export interface Driver extends Connection {
  /** How many statements can run at once; 1 on PGlite. */
  readonly connections: number;
  /** Runs work between begin and commit; rolls back when it throws. */
  transaction<T>(work: (connection: Connection) => Promise<T>): Promise<T>;
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
    return parsed(statement, await this.#driver.rows(statement, values));
  }

  /**
   * Runs a statement that may be sent twice without harm, again after a serialization failure, a deadlock or a lost
   * connection. At most five times; then the last error is thrown.
   */
  async replay<Row>(statement: Statement<Row>, values: readonly unknown[]): Promise<Row[]> {
    return retrying('any', () => this.query(statement, values));
  }

  /**
   * Runs work in one transaction, the whole of it again after a serialization failure or a deadlock, at most five
   * times.
   * A lost connection is not retried: the commit may have happened.
   */
  async transaction<T>(work: (transaction: Transaction) => Promise<T>): Promise<T> {
    return retrying('rolled back', () =>
      this.#driver.transaction((connection) =>
        work({
          query: async (statement, values) => parsed(statement, await connection.rows(statement, values)),
          script: (sql) => connection.script(sql),
        }),
      ),
    );
  }

  async close(): Promise<void> {
    await this.#driver.close();
  }
}

function parsed<Row>(statement: Statement<Row>, rows: readonly unknown[]): Row[] {
  return rows.map((row) => statement.row.parse(row));
}

async function retrying<T>(harmless: 'any' | 'rolled back', work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work();
    } catch (error) {
      if (attempt === 5 || !isTransient(error, harmless)) throw error;
      await sleep(Math.random() * 5 * 4 ** attempt);
    }
  }
}
