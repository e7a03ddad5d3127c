// The database as the ledger sees it: named statements, transactions and retries, over PostgreSQL or, embedded, PGlite; and what
// a failure of it means.
import { AsyncLocalStorage } from 'node:async_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { join } from 'node:path';
import { openAsBlob } from 'node:fs';
import { z } from 'zod';
import { Client, Pool, type PoolClient, type PoolConfig } from 'pg';
import type { PGlite, Transaction as Engine } from '@electric-sql/pglite';
import { Problem } from '../../../lib/problem.ts';
import { ledgerUnavailable } from '../problems.ts';
import { migrate, readMigrations } from './migrate.ts';

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
  /** How many statements can run at the same time; 1 on PGlite. */
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
    return runInTime((limitMs) => this.#query(statement, values, limitMs));
  }

  /**
   * Runs a statement that may be sent twice without harm, again after a serialization failure, a deadlock or a lost
   * connection. At most five times, and only as long as a caller waits; then the last error is thrown.
   */
  async replay<Row>(statement: Statement<Row>, values: readonly unknown[]): Promise<Row[]> {
    return runInTime((limitMs) => runWithRetries('any', limitMs, () => this.#query(statement, values, limitMs)));
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
      runWithRetries('rolled back', limitMs, () =>
        this.#driver.transaction(
          (connection) =>
            work({
              query: async (statement, values) =>
                parseRows(statement, await connection.rows(statement, values, limitMs)),
              script: (sql) => connection.script(sql, limitMs),
            }),
          limitMs,
        ),
      );
    return lasting ? run(lastingStatementMs) : runInTime(run);
  }

  async #query<Row>(statement: Statement<Row>, values: readonly unknown[], limitMs: number): Promise<Row[]> {
    return parseRows(statement, await this.#driver.rows(statement, values, limitMs));
  }

  async close(): Promise<void> {
    await this.#driver.close();
  }
}

function parseRows<Row>(statement: Statement<Row>, rows: readonly unknown[]): Row[] {
  return rows.map((row) => statement.row.parse(row));
}

/**
 * Runs work with the time that each of its statements has. A caller also gets an answer when that time is over, even if
 * it was spent on waiting for a connection or on retries; what is in progress then ends by its own limit.
 */
async function runInTime<T>(work: (limitMs: number) => Promise<T>): Promise<T> {
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

async function runWithRetries<T>(harmless: 'any' | 'rolled back', limitMs: number, work: () => Promise<T>): Promise<T> {
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

/**
 * - `lost`: the connection ended under the statement; whether it ran is unknown.
 * - `refused`: there is no connection, or the server takes no writes.
 * - `timeout`: no answer in time. Another try would only take as long again.
 */
export type UnavailableReason = 'lost' | 'refused' | 'timeout';

/** Seconds after which a caller should try again. */
const retrySeconds = 5;

/** The database cannot be used at the moment: 503 with Retry-After, wherever the request came in. */
export class DatabaseUnavailable extends Problem {
  readonly reason: UnavailableReason;

  constructor(reason: UnavailableReason, cause?: unknown) {
    super(ledgerUnavailable, `The database ${sentences[reason]}. Try again in ${retrySeconds} seconds.`, {
      headers: { 'retry-after': String(retrySeconds) },
      cause,
    });
    this.reason = reason;
  }
}

const sentences: Readonly<Record<UnavailableReason, string>> = {
  lost: 'closed the connection',
  refused: 'does not accept requests at the moment',
  timeout: 'did not respond in time',
};

/** The server reports its errors with a severity; libraries and the system do not. */
const reportedByServer = z.object({ code: z.string().length(5), severity: z.string() });
const coded = z.object({ code: z.string() });

/** Serialization failure, deadlock: the server has rolled back, nothing happened. */
const rolledBack = new Set(['40001', '40P01']);

/**
 * Classes and codes of SQLSTATE that report the state of the server itself. All other codes are faults of a statement.
 * 08 connection, 25006 read-only, 25P03 idle in a transaction, 28 authentication, 3D000 no such database, 53 resources
 * (connections, memory, disk), 57014 canceled by statement_timeout, 57P start and end of the server, 58 files and disks.
 */
const serverStates: readonly (readonly [RegExp, UnavailableReason])[] = [
  [/^57014$/, 'timeout'],
  [/^(08|57P0[124]|57P05|25P03)/, 'lost'],
  [/^(25006|28|3D000|53|57P|58)/, 'refused'],
];

/** Errors of the system for a connection that existed; without one, nothing was sent. */
const lostCodes = new Set(['ECONNRESET', 'EPIPE', 'ECONNABORTED']);
const timeoutWords = /timeout|timed out/i;
const lostWords = /^(Connection terminated|Client has encountered a connection error|Client was closed)/;

/**
 * What a driver's error means to a caller, in the one place where errors of the drivers become answers: DatabaseUnavailable where the database cannot be used, and otherwise the error
 * itself. Whatever the server did not report is a failure to reach it, be it DNS, TLS, a socket or the pool; only wrong
 * use of the driver (TypeError, RangeError) is a fault of ours.
 */
export function toDatabaseFailure(error: unknown): unknown {
  if (error instanceof Problem || !(error instanceof Error)) return error;
  const { data: reported } = reportedByServer.safeParse(error);
  const reason = reported === undefined ? findConnectionFailure(error) : toServerState(reported.code);
  return reason === undefined ? error : new DatabaseUnavailable(reason, error);
}

function toServerState(code: string): UnavailableReason | undefined {
  return serverStates.find(([codes]) => codes.test(code))?.[1];
}

function findConnectionFailure(error: Error): UnavailableReason | undefined {
  const code = readCode(error);
  const isMisuse = error instanceof TypeError || error instanceof RangeError;
  if (code === undefined && isMisuse) return undefined;
  if (timeoutWords.test(error.message)) return 'timeout';
  return lostCodes.has(code ?? '') || lostWords.test(error.message) ? 'lost' : 'refused';
}

/** Whether to try again. `rolled back` counts only failures after which nothing can have happened. */
export function isTransient(error: unknown, harmless: 'any' | 'rolled back'): boolean {
  if (rolledBack.has(readCode(error) ?? '')) return true;
  return harmless === 'any' && error instanceof DatabaseUnavailable && error.reason !== 'timeout';
}

function readCode(error: unknown): string | undefined {
  return coded.safeParse(error).data?.code;
}

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
