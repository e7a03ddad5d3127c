// Pins what an app says of its operations to its release: the first description is stored, and every process reads that
// one, so that an app cannot change what agents read once it has been looked at.
import { z } from 'zod';
import { Problem } from '../../../lib/problem.ts';
import { ledgerUnconfigured, type LedgerHandle, type OpenLedger } from '../../billing/index.ts';
import { operationList, type OperationList } from './operation.ts';

/** A release of an app, by the UID of its HostedApp. */
export interface ReleaseName {
  readonly app: string;
  /** The commit, and the paths at which the app describes itself. */
  readonly release: string;
}

export interface OperationPins {
  /** What was stored for this release. @throws Problem (ledger-unavailable) */
  read(name: ReleaseName): Promise<OperationList | undefined>;
  /** Stores this, unless another process was first. @returns what is stored. @throws Problem (ledger-unavailable) */
  keep(name: ReleaseName, found: OperationList): Promise<OperationList>;
}

const stored = z.object({ operations: z.string() });
const statements = {
  read: {
    name: 'operation_pins_read',
    text: `update operation_pins set used_at = now() where app = $1 and release = $2 returning operations`,
    row: stored,
  },
  keep: {
    name: 'operation_pins_keep',
    text: `insert into operation_pins (app, release, operations) values ($1, $2, $3)
      on conflict (app, release) do update set used_at = now() returning operations`,
    row: stored,
  },
  expire: {
    name: 'operation_pins_expire',
    text: `with gone as (delete from operation_pins where used_at < now() - interval '90 days' returning 1)
      select count(*)::int as count from gone`,
    row: z.object({ count: z.int() }),
  },
} as const;

const expireEveryMs = 86_400_000;

/** Pins in the database of the ledger. Without a database, one process pins for itself: see `OperationCache`. */
export function operationPins(ledger: Pick<LedgerHandle, 'get' | 'opened'>): OperationPins {
  void ledger.opened.then((open) =>
    open?.repeat('expire operation pins', expireEveryMs, async () => {
      const [row] = await open.database.query(statements.expire, []);
      return row?.count ?? 0;
    }),
  );
  return {
    async read({ app, release }) {
      const [row] = (await database(ledger)?.query(statements.read, [app, release])) ?? [];
      return row === undefined ? undefined : parse(row.operations);
    },
    async keep({ app, release }, found) {
      const [row] = (await database(ledger)?.query(statements.keep, [app, release, JSON.stringify(found)])) ?? [];
      return row === undefined ? found : (parse(row.operations) ?? found);
    },
  };
}

/** Undefined where none is configured. */
function database(ledger: Pick<LedgerHandle, 'get'>): OpenLedger['database'] | undefined {
  try {
    return ledger.get().database;
  } catch (error) {
    if (error instanceof Problem && error.type === ledgerUnconfigured) return undefined;
    throw error;
  }
}

/** Undefined for what an earlier version stored in another form. */
function parse(text: string): OperationList | undefined {
  return operationList.safeParse(JSON.parse(text)).data;
}
