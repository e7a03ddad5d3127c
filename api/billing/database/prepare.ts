// Prepares a database for the API: roles, schema and rights. A process of its own, so that the one that serves requests
// never has the credentials for it: node api/billing/database/prepare.ts
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { Client } from 'pg';
import { z } from 'zod';
import { readConfig } from '../../../lib/config.ts';
import { createLog, type Logger } from '../../../lib/telemetry.ts';
import { type Database, DatabaseUnavailable, migrationsFolder, openDatabase } from './database.ts';
import { runInMigration, migrate, readMigrations } from './migrate.ts';
import { createRoles, type RoleLogin } from './roles.ts';

const address = z.string().regex(/^postgres(ql)?:\/\//, 'must begin with postgres://');

export const environment = z.object({
  DATABASE_URL: address.describe('The address that the API uses. Its role is given the rights that the API requires.'),
  MOORAGE_MIGRATOR_DATABASE_URL: address.describe(
    'The same database with the role that owns the schema, or is to own it: it may create schemas, and in the schema public.',
  ),
  MOORAGE_ADMIN_DATABASE_URL: address
    .optional()
    .describe(
      'The same database with a superuser, which creates both roles, sets their passwords, and gives the migrator what another role owns. Without it, both roles must exist.',
    ),
});

export interface Preparation {
  readonly runtimeUrl: string;
  readonly migratorUrl: string;
  readonly adminUrl?: string | undefined;
}

/**
 * Creates the roles (with `adminUrl`), applies missing migrations and gives the runtime role its rights. Running it again
 * changes nothing. @returns the names of the migrations applied. @throws DatabaseUnavailable, or Error that names the fix
 */
export async function prepareDatabase({ runtimeUrl, migratorUrl, adminUrl }: Preparation): Promise<string[]> {
  const runtime = parseLogin(runtimeUrl);
  const migrator = parseLogin(migratorUrl);
  if (runtime.name === migrator.name)
    throw new Error(
      `DATABASE_URL and MOORAGE_MIGRATOR_DATABASE_URL both name the role ${runtime.name}: give the API another one`,
    );
  if (adminUrl !== undefined)
    await runWithDatabase(adminUrl, (database) =>
      runInMigration(database, (transaction) => createRoles(transaction, { migrator, runtime })),
    );
  return runWithDatabase(migratorUrl, (database) =>
    migrate(database, readMigrations(migrationsFolder), { runtimeRole: runtime.name }),
  );
}

/** As the driver reads the address. */
function parseLogin(url: string): RoleLogin {
  const { user, password } = new Client({ connectionString: url });
  if (user === undefined)
    throw new Error('the address of a database must name a role, as postgres://role:password@host/database');
  return { name: user, password: password ?? undefined };
}

async function runWithDatabase<T>(url: string, work: (database: Database) => Promise<T>): Promise<T> {
  const database = await openDatabase(url);
  try {
    return await work(database);
  } finally {
    await database.close();
  }
}

/** `lock_timeout`: an old replica uses a table for longer. */
const lockedOut = z.object({ code: z.literal('55P03') });

/** Prepares the database as soon as it accepts connections. */
async function preparePatiently(preparation: Preparation, log: Logger): Promise<void> {
  for (let wait = 500; ; wait = Math.min(wait * 2, 5_000)) {
    try {
      const applied = await prepareDatabase(preparation);
      log.info({ applied }, 'the database is ready');
      return;
    } catch (error) {
      if (!(error instanceof DatabaseUnavailable) && !lockedOut.safeParse(error).success) throw error;
      log.warn({ err: error }, 'waiting for the database');
    }
    await sleep(wait);
  }
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const read = readConfig(environment);
  await preparePatiently(
    {
      runtimeUrl: read.DATABASE_URL,
      migratorUrl: read.MOORAGE_MIGRATOR_DATABASE_URL,
      adminUrl: read.MOORAGE_ADMIN_DATABASE_URL,
    },
    createLog('database'),
  );
}
