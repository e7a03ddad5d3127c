// Opens the ledger and runs its periodic tasks. Needs no model router: tools charge their own prices.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Registry } from 'prom-client';
import type { Logger } from '../../lib/telemetry.ts';
import { Problem } from '../../lib/problem.ts';
import { type Database, runAsTask, openLedgerDatabase } from './database/database.ts';
import { Ledger } from './ledger/ledger.ts';
import { toDollarNumber } from './ledger/money.ts';
import { findOwningRole } from './database/roles.ts';
import { Journal, Settlements } from './settlements.ts';
import { createBillingMetrics, createDatabaseMetrics, type BillingMetrics } from './metrics.ts';
import { ledgerUnavailable, ledgerUnconfigured } from './problems.ts';
import { Wallet } from './wallet.ts';

export interface OpenLedgerOptions {
  /** undefined: no ledger is configured. */
  readonly databaseUrl: string | undefined;
  readonly registry: Registry;
  readonly log: Logger;
  /** Folder of this process's own journal; without it, a call waits until its settlement is written. */
  readonly journal?: string | undefined;
  /** How often the whole ledger is audited; default: hourly. */
  readonly auditMs?: number | undefined;
  /** Opens the database; default openLedgerDatabase. */
  readonly open?: ((url: string) => Promise<Database>) | undefined;
}

/** The ledger, once its database is open. */
export interface OpenLedger {
  readonly database: Database;
  readonly ledger: Ledger;
  readonly wallet: Wallet;
  /** Runs a task periodically until the process ends. */
  repeat(name: string, everyMs: number, run: () => Promise<number>): void;
}

export interface LedgerHandle {
  /** The ledger, or undefined where no database is configured or the process ended before it was open. */
  readonly opened: Promise<OpenLedger | undefined>;
  /** @throws Problem (ledger-unconfigured, ledger-unavailable) while it is not open */
  get(): OpenLedger;
  /** Ends the periodic tasks. The database stays open until `close`. */
  end(): void;
  /** Finishes writes and periodic tasks, closes the database. */
  close(): Promise<void>;
}

/** Faults logged per audit: the first ones of a broken ledger show what is wrong. */
const loggedFaults = 20;

/** Starts in the background, so that the rest of the API serves while the database is unavailable. */
export function openLedger(options: OpenLedgerOptions): LedgerHandle {
  const { databaseUrl, log } = options;
  const ending = new AbortController();
  const tasks: Promise<void>[] = [];
  let open: OpenLedger | undefined;
  let settlements: Settlements | undefined;
  const journal = options.journal === undefined ? undefined : new Journal(options.journal);
  if (databaseUrl !== undefined)
    createDatabaseMetrics(options.registry, async () => {
      if (open === undefined) throw new Error('the database is not open yet');
      await open.ledger.ping();
    });
  const opened = databaseUrl === undefined ? Promise.resolve(undefined) : begin(databaseUrl);
  return {
    opened,
    get: () => open ?? throwUnavailable(databaseUrl),
    end() {
      ending.abort();
    },
    async close() {
      ending.abort();
      const ledger = await opened;
      if (ledger === undefined) return;
      await settlements?.drain(2_000);
      await Promise.all(tasks);
      journal?.close();
      await ledger.database.close();
    },
  };

  async function begin(url: string): Promise<OpenLedger | undefined> {
    const database = await openPatiently(() => (options.open ?? openLedgerDatabase)(url), log, ending.signal);
    if (database === undefined) return undefined;
    if (/^postgres/.test(url)) await warnOfOwnership(database, log);
    const ledger = new Ledger(database);
    const metrics = createBillingMetrics(options.registry, {
      holds: () => ledger.counts(),
      oldestPendingSeconds: () => ledger.oldestPending(),
    });
    const start = (name: string, everyMs: number, run: () => Promise<number>): void => {
      const task: PeriodicTask = {
        everyMs,
        run,
        onError: (error) => {
          log.error({ err: error, task: name }, 'periodic task failed');
        },
      };
      tasks.push(repeat(task, ending.signal));
    };
    start('expire', 10_000, async () => (await ledger.expire()) + (await ledger.releaseToolHolds()));
    start('audit', options.auditMs ?? 3_600_000, () => auditLedger(ledger, metrics, log));
    start('make days', 3_600_000, () => ledger.makeDays());
    const writes = new Settlements({ ledger, log, journal });
    settlements = writes;
    const wallet = new Wallet({
      ledger,
      settlements: writes,
      log,
      refused: (kind, by) => {
        metrics.refused(kind, by);
      },
    });
    start('settle the journal', 10_000, () => writes.settleLeft());
    open = { database, ledger, repeat: start, wallet };
    return open;
  }
}

/** The triggers that protect the ledger hold only against a role that does not own its tables. */
async function warnOfOwnership(database: Database, log: Logger): Promise<void> {
  const role = await findOwningRole(database).catch(() => undefined);
  if (role !== undefined)
    log.warn(
      { role },
      'the database role of DATABASE_URL owns the ledger, so anyone who takes over the API could change recorded transactions: give the API its own role (docs/how-to/set-up-the-database.md)',
    );
}

/** @returns 0: there is nothing to do until the next audit */
async function auditLedger(ledger: Ledger, metrics: BillingMetrics, log: Logger): Promise<0> {
  const { faults, imbalance } = await ledger.auditAtLength();
  metrics.reportAudit(faults.length, toDollarNumber(imbalance));
  for (const fault of faults.slice(0, loggedFaults)) log.error({ fault, faults: faults.length }, 'ledger audit');
  return 0;
}

function throwUnavailable(databaseUrl: string | undefined): never {
  if (databaseUrl === undefined) {
    throw new Problem(
      ledgerUnconfigured,
      'This call is charged, and no ledger is configured. The operator of this installation can set DATABASE_URL to a PostgreSQL server, such as postgres://user:password@host/database.',
    );
  }
  throw createNotOpenProblem();
}

/** The problem of a call that arrives before the database has opened. */
export function createNotOpenProblem(): Problem {
  return new Problem(ledgerUnavailable, 'The database is not available yet. Try again in 5 seconds.', {
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
      log.error({ err: error }, 'cannot open the database, retrying');
    }
    await sleep(wait, undefined, { signal }).catch(() => undefined);
    if (signal.aborted) return undefined;
  }
}

export interface PeriodicTask {
  readonly everyMs: number;
  /** @returns the number of items it processed; unless 0, it runs again immediately. */
  readonly run: () => Promise<number>;
  readonly onError: (error: unknown) => void;
}

/**
 * Repeats a task, such as expiring holds, purging keys or reconciling, with jitter so that replicas spread out. Stops soon
 * after the signal, never in the middle of a run.
 */
export async function repeat(task: PeriodicTask, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const processed = await runAsTask(task.run).catch((error: unknown) => {
      task.onError(error);
      return 0;
    });
    if (processed === 0)
      await sleep(task.everyMs * (0.75 + Math.random() / 2), undefined, { signal, ref: false }).catch(() => undefined);
  }
}
