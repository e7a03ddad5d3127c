// Brings the schema up to date: numbered SQL files, each applied once, checksummed, one replica at a time.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import type { Database, Statement, Transaction } from './database.ts';

export interface Migration {
  readonly name: string;
  readonly sql: string;
  readonly checksum: string;
}

/** Any fixed number that no other program is likely to lock. */
const lockKey = 7_201_133_509;
const none = z.unknown();
const lock: Statement<unknown> = { name: 'migrate-lock', text: 'select pg_advisory_xact_lock($1)', row: none };
const applied: Statement<{ name: string; checksum: string }> = {
  name: 'migrate-applied',
  text: 'select name, checksum from moorage_migration order by name',
  row: z.object({ name: z.string(), checksum: z.string() }),
};
const record: Statement<unknown> = {
  name: 'migrate-record',
  text: 'insert into moorage_migration (name, checksum) values ($1, $2)',
  row: none,
};

/**
 * The migrations in a folder, in order. @throws Error for a file not named like 001-name.sql, or a number used twice.
 */
export function readMigrations(folder: string): Migration[] {
  const names = readdirSync(folder).sort();
  const numbers = names.map((name) => /^(\d{3})-[a-z0-9-]+\.sql$/.exec(name)?.[1]);
  names.forEach((name, index) => {
    if (numbers[index] === undefined) throw new Error(`${join(folder, name)}: name it like 001-what-it-adds.sql`);
    if (numbers.indexOf(numbers[index]) !== index)
      throw new Error(`${join(folder, name)}: the number ${numbers[index]} is taken: use a number above the last one`);
  });
  return names.map((name) => {
    const sql = readFileSync(join(folder, name), 'utf8');
    return { name, sql, checksum: createHash('sha256').update(sql).digest('hex') };
  });
}

/**
 * Applies what is missing, all of it in one transaction under an advisory lock, so that replicas may start together.
 * Migrations that the database has and this version does not know are left alone: an older replica may still run.
 * @returns the names of those applied now. @throws Error when an applied file was changed, or one would be applied out
 * of order.
 */
export async function migrate(database: Database, migrations: readonly Migration[]): Promise<string[]> {
  return database.transaction(
    async (transaction) => {
      await transaction.query(lock, [lockKey]);
      await transaction.script(
        'create table if not exists moorage_migration (name text primary key, checksum text not null, applied_at timestamptz not null default now())',
      );
      const known = new Map((await transaction.query(applied, [])).map((row) => [row.name, row.checksum]));
      const missing = missingOf(migrations, known);
      for (const migration of missing) await apply(transaction, migration);
      return missing.map((migration) => migration.name);
    },
    { lasting: true },
  );
}

function missingOf(migrations: readonly Migration[], known: ReadonlyMap<string, string>): Migration[] {
  const newest = [...known.keys()].sort().at(-1) ?? '';
  for (const { name, checksum } of migrations) {
    const before = known.get(name);
    if (before !== undefined && before !== checksum)
      throw new Error(
        `migration ${name} was changed after it was applied: restore the file and put the change into a new one`,
      );
    if (before === undefined && name < newest)
      throw new Error(`migration ${name} comes before ${newest}, which is applied already: give it a higher number`);
  }
  return migrations.filter(({ name }) => !known.has(name));
}

async function apply(transaction: Transaction, migration: Migration): Promise<void> {
  try {
    await transaction.script(migration.sql);
  } catch (error) {
    throw new Error(`migration ${migration.name} failed, nothing was applied`, { cause: error });
  }
  await transaction.query(record, [migration.name, migration.checksum]);
}
