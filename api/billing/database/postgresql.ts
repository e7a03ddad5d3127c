// PostgreSQL (15 or newer) as a driver of the ledger's database: a pool of connections.
import { Pool, type PoolClient, type PoolConfig } from 'pg';
import type { Connection, Driver } from './database.ts';

/** Opens a pool on a URL; it connects on first use. */
export function postgresDriver(connectionString: string, options: PoolConfig = {}): Driver {
  const max = options.max ?? 10;
  const pool = new Pool({
    connectionString,
    max,
    application_name: 'moorage',
    connectionTimeoutMillis: 5_000,
    statement_timeout: 10_000,
    ...options,
  });
  // A broken idle connection is replaced by the pool; without a listener it would end the process.
  pool.on('error', () => undefined);
  return {
    connections: max,
    ...connectionOn(pool),
    transaction: (work) => transaction(pool, work),
    close: () => pool.end(),
  };
}

function connectionOn(on: Pool | PoolClient): Connection {
  return {
    rows: async ({ name, text }, values) =>
      (await on.query<Record<string, unknown>>({ name, text, values: [...values] })).rows,
    script: async (sql) => {
      await on.query(sql);
    },
  };
}

async function transaction<T>(pool: Pool, work: (connection: Connection) => Promise<T>): Promise<T> {
  const client = await pool.connect();
  let broken = false;
  try {
    await client.query('begin');
    const result = await work(connectionOn(client));
    await client.query('commit');
    return result;
  } catch (error) {
    await client.query('rollback').catch(() => (broken = true));
    throw error;
  } finally {
    client.release(broken);
  }
}
