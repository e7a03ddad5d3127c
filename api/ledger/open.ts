// Opens the ledger's database and brings its schema up to date.
import { join } from 'node:path';
import { openDatabase, type Database } from './database.ts';
import { migrate, readMigrations } from './migrate.ts';

export const migrationsFolder = join(import.meta.dirname, 'migrations');

/** Opens a database by URL (see openDatabase) with the newest schema. @throws when it cannot be reached or a migration fails. */
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
