// Opens the ledger's database on PostgreSQL or, embedded, on PGlite, and brings its schema up to date.
import { join } from 'node:path';
import { openAsBlob } from 'node:fs';
import { Client, Pool, type PoolClient, type PoolConfig } from 'pg';
import type { PGlite, Transaction as Engine } from '@electric-sql/pglite';
import { Database, type Connection, type Driver, DatabaseUnavailable, toDatabaseFailure } from './database.ts';
import { migrate, readMigrations } from './migrate.ts';

export const migrationsFolder = join(import.meta.dirname, 'migrations');

/**
 * Opens `postgres://…`, or an embedded one: `pglite:` in memory, `pglite:<file>.tar` in memory from a snapshot,
 * `pglite:<folder>` on disk. @throws TypeError for any other URL.
 */
export async function openDatabase(url: string): Promise<Database> {
  if (/^postgres(ql)?:\/\//.test(url)) return new Database(openPostgres(url));
  if (!url.startsWith('pglite:'))
    throw new TypeError(
      'the database URL must begin with postgres:// (a PostgreSQL server) or pglite: (embedded; in memory, or in the folder named after the colon)',
    );
  return new Database(await openPglite(url.slice('pglite:'.length) || undefined));
}

/**
 * Opens a database by URL (see openDatabase) with the newest schema. @throws when it cannot be reached or a migration
 * fails.
 */
export async function openLedgerDatabase(url: string): Promise<Database> {
  const database = await openDatabase(url);
  try {
    await migrate(database, readMigrations(migrationsFolder));
    return database;
  } catch (error) {
    await database.close();
    throw error;
  }
}

/** How many calls may wait for a connection. More than that cannot be served in time, and would only fill the memory. */
const maxWaiting = 1_000;

/** No connection stays for longer: addresses and certificates of a server change. */
const lifetimeSeconds = 1_800;

/**
 * PostgreSQL (15 or newer) as a driver: opens a pool on a URL; it connects on first use. TLS is as the URL says (`sslmode`). If it says nothing or `prefer`,
 * connections are encrypted where the server offers it, without checking its certificate.
 */
export function openPostgres(url: string, options: PoolConfig = {}): Driver {
  const max = options.max ?? 10;
  const { connectionString, prefersTls } = readTls(url);
  const openPool = (ssl?: PoolConfig['ssl']): Pool => {
    const pool = new Pool({
      connectionString,
      ...(ssl === undefined ? {} : { ssl }),
      max,
      application_name: 'moorage',
      connectionTimeoutMillis: 5_000,
      statement_timeout: 10_000,
      // Compiling a statement is worth it for minutes of work. Each of ours takes milliseconds, and the planner's estimates for
      // tables of many days are high enough that it would be compiled for a second, each time.
      options: '-c jit=off',
      idleTimeoutMillis: 30_000,
      maxLifetimeSeconds: lifetimeSeconds,
      // A peer that has gone silent is noticed even where no statement has a time limit.
      keepAlive: true,
      keepAliveInitialDelayMillis: 10_000,
      ...options,
    });
    // A broken idle connection is replaced by the pool; without a listener it would end the process.
    pool.on('error', () => undefined);
    return pool;
  };
  const pool = openPool(prefersTls ? { rejectUnauthorized: false } : undefined);
  let plainPool: Pool | undefined;
  /** A server without TLS is asked for it again after a while. */
  let plainUntil = 0;
  const connect = async (): Promise<PoolClient> => {
    const chosen = plainPool !== undefined && performance.now() < plainUntil ? plainPool : pool;
    if (chosen.waitingCount >= maxWaiting) throw new DatabaseUnavailable('refused');
    try {
      return await chosen.connect();
    } catch (error) {
      if (!prefersTls || !isTlsUnsupported(error)) throw error;
      plainPool ??= openPool(false);
      plainUntil = performance.now() + lifetimeSeconds * 1_000;
      return plainPool.connect();
    }
  };
  return {
    connections: max,
    rows: (statement, values, limitMs) =>
      runWithClient(connect, (client) => toPostgresConnection(client).rows(statement, values, limitMs)),
    script: (sql, limitMs) => runWithClient(connect, (client) => toPostgresConnection(client).script(sql, limitMs)),
    transaction: (work, limitMs) =>
      runWithClient(connect, async (client) => {
        const connection = toPostgresConnection(client);
        await connection.script('begin', limitMs);
        try {
          const result = await work(connection);
          await connection.script('commit', limitMs);
          return result;
        } catch (error) {
          // On a connection that does not answer, a rollback would wait as long again.
          if (!(error instanceof DatabaseUnavailable)) await connection.script('rollback', limitMs);
          throw error;
        }
      }),
    close: async () => {
      await Promise.all([pool.end(), plainPool?.end()]);
    },
  };
}

/** Leaves TLS to the server unless the URL says something else. A socket of this machine has none. */
function readTls(url: string): { readonly connectionString: string; readonly prefersTls: boolean } {
  const settings = [...new URLSearchParams(url.split('?')[1])].filter(([name]) => name.startsWith('ssl'));
  if (settings.some(([name, value]) => name !== 'sslmode' || value !== 'prefer'))
    return { connectionString: url, prefersTls: false };
  // The driver knows no mode that may go without.
  const connectionString = url.replaceAll(/sslmode=prefer&?/g, '');
  return { connectionString, prefersTls: !new Client({ connectionString }).host.startsWith('/') };
}

/** In the words of the driver, which reports it without a code. */
function isTlsUnsupported(error: unknown): boolean {
  return error instanceof Error && error.message === 'The server does not support SSL connections';
}

/** Runs work on a connection of the pool, and closes it where the connection itself has failed. */
async function runWithClient<T>(
  connect: () => Promise<PoolClient>,
  work: (client: PoolClient) => Promise<T>,
): Promise<T> {
  const client = await connect().catch((error: unknown) => {
    throw toDatabaseFailure(error);
  });
  let isBroken = false;
  // Between two statements there is no other listener, and an error without a listener would end the process.
  const listener = (): void => {
    isBroken = true;
  };
  client.on('error', listener);
  try {
    return await work(client);
  } catch (error) {
    isBroken ||= error instanceof DatabaseUnavailable;
    throw error;
  } finally {
    client.off('error', listener);
    client.release(isBroken);
  }
}

function toPostgresConnection(client: PoolClient): Connection {
  const send = async (query: TimedQuery): Promise<unknown[]> => {
    try {
      return (await client.query<Record<string, unknown>>(query)).rows;
    } catch (error) {
      throw toDatabaseFailure(error);
    }
  };
  return {
    rows: ({ name, text }, values, limitMs) => send({ name, text, values: [...values], query_timeout: limitMs }),
    script: async (sql, limitMs) => {
      await send({ text: sql, query_timeout: limitMs });
    },
  };
}

interface TimedQuery {
  readonly name?: string;
  readonly text: string;
  readonly values?: unknown[];
  /** Read by pg for each query; its types know it only for a whole connection. */
  readonly query_timeout: number;
}

/**
 * PGlite as a driver, a PostgreSQL inside this process on one connection: opens the data in a folder or, without one, in memory: empty, or as a snapshot (a file `*.tar` that `dumpDataDir`
 * made) has it. Only one process may have a folder open.
 */
export async function openPglite(path?: string): Promise<Driver> {
  // Loaded only where it is used: it is 27 MB of WebAssembly.
  const { PGlite } = await import('@electric-sql/pglite');
  if (path?.endsWith('.tar') === true)
    return createPgliteDriver(await PGlite.create({ loadDataDir: await openAsBlob(path) }));
  return createPgliteDriver(path === undefined ? await PGlite.create() : await PGlite.create(path));
}

export function createPgliteDriver(engine: PGlite): Driver {
  return {
    connections: 1,
    ...toPgliteConnection(engine),
    transaction: (work) => engine.transaction((transaction) => work(toPgliteConnection(transaction))),
    close: () => engine.close(),
  };
}

function toPgliteConnection(on: PGlite | Engine): Connection {
  const mapped = (error: unknown): never => {
    throw toDatabaseFailure(error);
  };
  // In this process there is no peer that could be silent, so nothing has a time limit.
  return {
    // PGlite has no named statements here; it parses in process, each time.
    rows: async ({ text }, values) => (await on.query(text, [...values]).catch(mapped)).rows,
    script: async (sql) => {
      await on.exec(sql).catch(mapped);
    },
  };
}
