// The database as the ledger sees it: named statements, transactions, retries; PostgreSQL or PGlite behind one pg pool.
import { setTimeout as sleep } from 'node:timers/promises';
import { Pool, type PoolClient, type PoolConfig } from 'pg';
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

/** What the ledger needs of a database. */
export class Database implements Queryable {
  readonly #pool: Pool;
  readonly #closing: () => Promise<void>;
  /** How many statements can run at once; 1 on PGlite. */
  readonly connections: number;

  constructor(pool: Pool, connections: number, closing: () => Promise<void> = () => Promise.resolve()) {
    this.#pool = pool;
    this.#closing = closing;
    this.connections = connections;
    // A broken idle connection is replaced by the pool; without a listener it would end the process.
    pool.on('error', () => undefined);
  }

  async query<Row>(statement: Statement<Row>, values: readonly unknown[]): Promise<Row[]> {
    return rowsOf(this.#pool, statement, values);
  }

  /**
   * Runs a statement that may be sent twice without harm, again after a serialization failure, a deadlock or a lost
   * connection. At most five times; then the last error is thrown.
   */
  async replay<Row>(statement: Statement<Row>, values: readonly unknown[]): Promise<Row[]> {
    return retrying('any', () => this.query(statement, values));
  }

  /**
   * Runs work in one transaction, the whole of it again after a serialization failure or a deadlock, at most five times.
   * A lost connection is not retried: the commit may have happened.
   */
  async transaction<T>(work: (transaction: Transaction) => Promise<T>): Promise<T> {
    return retrying('rolled back', () => this.#once(work));
  }

  async #once<T>(work: (transaction: Transaction) => Promise<T>): Promise<T> {
    const client = await this.#pool.connect();
    let broken = false;
    try {
      await client.query('begin');
      const result = await work(transactionOn(client));
      await client.query('commit');
      return result;
    } catch (error) {
      await client.query('rollback').catch(() => (broken = true));
      throw error;
    } finally {
      client.release(broken);
    }
  }

  async close(): Promise<void> {
    await this.#pool.end();
    await this.#closing();
  }
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

async function rowsOf<Row>(on: Pool | PoolClient, statement: Statement<Row>, values: readonly unknown[]): Promise<Row[]> {
  const { rows } = await on.query<Record<string, unknown>>({ name: statement.name, text: statement.text, values: [...values] });
  return rows.map((row) => statement.row.parse(row));
}

function transactionOn(client: PoolClient): Transaction {
  return {
    query: (statement, values) => rowsOf(client, statement, values),
    script: async (sql) => {
      await client.query(sql);
    },
  };
}

/** PostgreSQL (15 or newer) at a URL; the pool connects on first use. */
export function openPostgres(connectionString: string, options: PoolConfig = {}): Database {
  const max = options.max ?? 10;
  const pool = new Pool({ connectionString, max, application_name: 'moorage', connectionTimeoutMillis: 5_000, statement_timeout: 10_000, ...options });
  return new Database(pool, max);
}

/** An embedded PostgreSQL in this process, in a folder or, without one, in memory. For one process only. */
export async function openPglite(folder?: string): Promise<Database> {
  // Loaded only where it is used: it is 27 MB of WebAssembly.
  const [{ PGlite }, { createPgConfig }] = await Promise.all([import('@electric-sql/pglite'), import('@electric-sql/pglite/node-postgres')]);
  const engine = folder === undefined ? await PGlite.create() : await PGlite.create(folder);
  const pool = new Pool(Object.assign(createPgConfig(engine), { max: 1, idleTimeoutMillis: 0 }));
  return new Database(pool, 1, () => engine.close());
}

/** Opens `postgres://…` with pg; `pglite:` (in memory) or `pglite:<folder>` embedded. @throws TypeError for any other URL. */
export async function openDatabase(url: string): Promise<Database> {
  if (/^postgres(ql)?:\/\//.test(url)) return openPostgres(url);
  if (url.startsWith('pglite:')) return openPglite(url.slice('pglite:'.length) || undefined);
  throw new TypeError('the database URL must begin with postgres:// (a PostgreSQL server) or pglite: (embedded; in memory, or in the folder named after the colon)');
}
