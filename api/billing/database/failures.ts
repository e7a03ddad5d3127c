// What a failure of the database means: the one place where errors of the drivers become answers.
import { z } from 'zod';
import { Problem } from '../../../lib/problem.ts';
import { ledgerUnavailable } from '../problems.ts';

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
 * What a driver's error means to a caller: DatabaseUnavailable where the database cannot be used, and otherwise the error
 * itself. Whatever the server did not report is a failure to reach it, be it DNS, TLS, a socket or the pool; only wrong
 * use of the driver (TypeError, RangeError) is a fault of ours.
 */
export function toDatabaseFailure(error: unknown): unknown {
  if (error instanceof Problem || !(error instanceof Error)) return error;
  const { data: reported } = reportedByServer.safeParse(error);
  const reason = reported === undefined ? connectionFailure(error) : stateOfServer(reported.code);
  return reason === undefined ? error : new DatabaseUnavailable(reason, error);
}

function stateOfServer(code: string): UnavailableReason | undefined {
  return serverStates.find(([codes]) => codes.test(code))?.[1];
}

function connectionFailure(error: Error): UnavailableReason | undefined {
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
