// `node api/accounting/reconciliation/command.ts`: reconciles a day on demand, prints what it found, and keeps it.
// Ends with 1 where something is unexplained.
import { readCommandLine, UsageError } from '../../../lib/command-line.ts';
import { openLedgerDatabase } from '../../billing/index.ts';
import { readCatalog, readModelSettings, RouterClient } from '../../models/index.ts';
import { parseDay, formatDay } from './comparison.ts';
import { reconcileDay } from './start-reconciliation.ts';
import { ReconciliationStore } from './reconciliation-store.ts';
import { formatReconciliation } from './table.ts';

const usage = `usage: node api/accounting/reconciliation/command.ts [--day YYYY-MM-DD] [--explain TEXT] [--json]

  --day YYYY-MM-DD  the day, UTC (default: today, until now)
  --explain TEXT    keeps what you found out about the unexplained difference of the day, and ends its alert
  --json            prints the result as JSON

Ends with 1 where a difference is neither explained by a record nor by you. Database and router are read from the
environment, as the API reads them.`;

const now = new Date();
const chosen = readCommandLine(
  {
    usage,
    options: { day: { type: 'string' }, explain: { type: 'string' }, json: { type: 'boolean', default: false } },
  },
  ({ values: { day, explain, json } }) => {
    if (explain?.trim() === '' || (explain?.length ?? 0) > 500)
      throw new UsageError('--explain must be a text of 1 to 500 characters');
    return { day: readDay(day ?? formatDay(now)), explain: explain?.trim(), json };
  },
);
const settings = readModelSettings();
if (settings.databaseUrl === undefined) fail('set DATABASE_URL to the database of the API');

const database = await openLedgerDatabase(settings.databaseUrl);
const client = settings.router === undefined ? undefined : new RouterClient(settings.router, { callMs: 60_000 });
const store = new ReconciliationStore(database);
try {
  const made = await reconcileDay(
    {
      database,
      now,
      prices: readCatalog(settings.modelsFile),
      router: {
        name: client?.name ?? 'none',
        fetchBill: async (window) =>
          client?.fetchBill(window) ?? { outcome: 'not known', why: 'no model router is configured' },
      },
    },
    chosen.day,
  );
  const written = await store.write(made);
  const explained = chosen.explain === undefined ? undefined : await store.explain(chosen.day.day, chosen.explain);
  if (chosen.explain !== undefined && explained === undefined)
    process.stderr.write('nothing of this day is unexplained, so there is nothing to explain\n');
  const kept = explained ?? written;
  process.stdout.write(chosen.json ? `${JSON.stringify(kept, undefined, 2)}\n` : formatReconciliation(kept));
  process.exitCode = kept.unexplained.events > 0 && kept.explanation === null ? 1 : 0;
} finally {
  await client?.close();
  await database.close();
}

function readDay(text: string): ReturnType<typeof parseDay> {
  try {
    return parseDay(text, now);
  } catch (error) {
    if (error instanceof RangeError) throw new UsageError(`--day: ${error.message}`);
    throw error;
  }
}

function fail(message: string): never {
  process.stderr.write(`${message}\n`);
  process.exit(2);
}
