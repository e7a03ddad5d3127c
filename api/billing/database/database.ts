// The database as the ledger sees it: named statements, transactions, retries and batches, over PostgreSQL or PGlite; and what a failure of
// it means.
import { AsyncLocalStorage } from 'node:async_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { Problem } from '../../../lib/problem.ts';
import { ledgerUnavailable } from '../problems.ts';

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

interface Waiting<Item, Answer> {
  readonly item: Item;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

export interface BatchOptions {
  /** Maximum number of items in one statement. */
  readonly size: number;
  /** Maximum number of statements in progress at the same time. */
  readonly concurrency: number;
}

/**
 * Gathers calls that arrive while a statement is in progress, and sends them together in the next one. An idle batch sends
 * immediately, so a lone call waits for nothing; a busy one shares a round trip and a commit between
 * all that wait. Answers come in the order of the items. When a shared statement fails, its items are sent one by one,
 * so that one bad item spoils no other: `send` must allow being sent twice. When the database is gone, all fail immediately,
 * those that wait for the next statement too.
 */
export class Batch<Item, Answer> {
  readonly #send: (items: readonly Item[]) => Promise<readonly Answer[]>;
  readonly #options: BatchOptions;
  readonly #waiting: Waiting<Item, Answer>[] = [];
  #flying = 0;

  constructor(send: (items: readonly Item[]) => Promise<readonly Answer[]>, options: BatchOptions) {
    this.#send = send;
    this.#options = options;
  }

  run(item: Item): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject });
      this.#start();
    });
  }

  #start(): void {
    while (this.#flying < this.#options.concurrency && this.#waiting.length > 0) {
      this.#flying += 1;
      const group = this.#waiting.splice(0, this.#options.size);
      void this.#fly(group).finally(() => {
        this.#flying -= 1;
        this.#start();
      });
    }
  }

  async #fly(group: readonly Waiting<Item, Answer>[]): Promise<void> {
    try {
      const answers = await this.#send(group.map(({ item }) => item));
      group.forEach((waiting, index) => {
        deliver(waiting, answers[index]);
      });
    } catch (error) {
      const isGone = error instanceof DatabaseUnavailable;
      // Those that wait for their turn fail too: they have waited for this one, and would wait as long again.
      const failed = isGone ? [...group, ...this.#waiting.splice(0)] : group;
      if (group.length === 1 || isGone)
        failed.forEach(({ reject }) => {
          reject(error);
        });
      else for (const waiting of group) await this.#fly([waiting]);
    }
  }
}

function deliver<Item, Answer>(waiting: Waiting<Item, Answer>, answer: Answer | undefined): void {
  if (answer === undefined) waiting.reject(new Error('the batch has no answer for this item'));
  else waiting.resolve(answer);
}
