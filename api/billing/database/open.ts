// Opens the ledger's database and brings its schema up to date.
import { join } from 'node:path';
import { Database } from './database.ts';
import { migrate, readMigrations } from './migrate.ts';
import { postgresDriver } from './postgresql.ts';

export const migrationsFolder = join(import.meta.dirname, 'migrations');

/**
 * Opens `postgres://…`, or an embedded one: `pglite:` in memory, `pglite:<file>.tar` in memory from a snapshot,
 * `pglite:<folder>` on disk. @throws TypeError for any other URL.
 */
export async function openDatabase(url: string): Promise<Database> {
  if (/^postgres(ql)?:\/\//.test(url)) return new Database(postgresDriver(url));
  if (!url.startsWith('pglite:'))
    throw new TypeError(
      'the database URL must begin with postgres:// (a PostgreSQL server) or pglite: (embedded; in memory, or in the folder named after the colon)',
    );
  // Loaded only where it is used: it is 27 MB of WebAssembly.
  const { pgliteDriver } = await import('./pglite.ts');
  return new Database(await pgliteDriver(url.slice('pglite:'.length) || undefined));
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
