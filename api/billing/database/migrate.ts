// Brings the schema up to date: numbered SQL files, each applied once, checksummed, one replica at a time.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import type { Database, Queryable, Statement, Transaction } from './database.ts';
import { grantRuntimeRights } from './roles.ts';

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
const begun: Statement<{ begun: boolean }> = {
  name: 'migrate-begun',
  text: "select to_regclass('moorage_migration') is not null as begun",
  row: z.object({ begun: z.boolean() }),
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

export interface MigrateOptions {
  /** A role to be given the rights that the API requires, when the migrations are applied (see roles.ts). */
  readonly runtimeRole?: string;
}

/**
 * Applies what is missing, all of it in one transaction under an advisory lock, so that replicas may start together.
 * Migrations that the database has and this version does not know are left alone: an older replica may still run.
 * @returns the names of those applied now. @throws Error when an applied file was changed, one would be applied out of
 * order, or something is missing and this role may not add it.
 */
export async function migrate(
  database: Database,
  migrations: readonly Migration[],
  { runtimeRole }: MigrateOptions = {},
): Promise<string[]> {
  // The runtime role may only look. Where nothing is missing, that is enough.
  if (runtimeRole === undefined && selectMissing(migrations, await readApplied(database)).length === 0) return [];
  try {
    return await runInMigration(database, async (transaction) => {
      await transaction.script(
        'create table if not exists moorage_migration (name text primary key, checksum text not null, applied_at timestamptz not null default now())',
      );
      const missing = selectMissing(migrations, await readApplied(transaction));
      for (const migration of missing) await apply(transaction, migration);
      if (runtimeRole !== undefined) await grantRuntimeRights(transaction, runtimeRole);
      return missing.map((migration) => migration.name);
    });
  } catch (error) {
    if (!lacksRight.safeParse(error).success) throw error;
    throw new Error(
      runtimeRole === undefined
        ? 'the schema is older than this version, and this role may not change it: run api/billing/database/prepare.ts with MOORAGE_MIGRATOR_DATABASE_URL first'
        : 'the role of MOORAGE_MIGRATOR_DATABASE_URL may not change the schema: use the role that owns it, or for an empty database one that owns the database',
      { cause: error },
    );
  }
}

const lacksRight = z.object({ code: z.literal('42501') });

/** Runs work in one transaction, while no other process migrates this database. */
export async function runInMigration<T>(
  database: Database,
  work: (transaction: Transaction) => Promise<T>,
): Promise<T> {
  return database.transaction(
    async (transaction) => {
      await transaction.query(lock, [lockKey]);
      return work(transaction);
    },
    { lasting: true },
  );
}

/** Names and checksums of what the database has. */
async function readApplied(database: Queryable): Promise<Map<string, string>> {
  if ((await database.query(begun, []))[0]?.begun !== true) return new Map();
  return new Map((await database.query(applied, [])).map((row) => [row.name, row.checksum]));
}

function selectMissing(migrations: readonly Migration[], known: ReadonlyMap<string, string>): Migration[] {
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
