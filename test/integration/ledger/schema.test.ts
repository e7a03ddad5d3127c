// schema.sql on PostgreSQL: it has the same text as on PGlite, and nothing that a migration creates is missing from it.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, test } from 'vitest';
import { readObjects, renderSchema, schemaFile } from '../../../api/billing/database/generate.ts';
import { migrate, readMigrations } from '../../../api/billing/database/migrate.ts';
import { type Database, migrationsFolder, openDatabase } from '../../../api/billing/database/database.ts';
import { dumpSchema, startPostgres, type Postgres } from '../../support/ledger/postgres.ts';

const migrations = readMigrations(migrationsFolder);
let postgres: Postgres;
let migratedUrl: string;
let migrated: Database;

beforeAll(async () => {
  postgres = await startPostgres({ durable: false });
  migratedUrl = await postgres.createEmptyDatabase('migrated');
  migrated = await openDatabase(migratedUrl);
  await migrate(migrated, migrations);
});

afterAll(async () => {
  await migrated.close();
  await postgres.stop();
});

test('the schema has the same text on PostgreSQL as on PGlite', async () => {
  assert.equal(await renderSchema(migrated, migrations), readFileSync(schemaFile, 'utf8'));
});

test('a database created from the objects of the schema has the same dump as a migrated one', async () => {
  // A migration left this to be checked for new rows only; in a database that is created, it is valid from the start.
  await migrated.transaction((transaction) =>
    transaction.script('alter table ledger.usage validate constraint usage_cost_source_check'),
  );
  const url = await postgres.createEmptyDatabase('created');
  const created = await openDatabase(url);
  try {
    const objects = await readObjects(migrated);
    await created.transaction((transaction) =>
      transaction.script(['set local check_function_bodies = off;', ...objects.map(({ sql }) => sql)].join('\n')),
    );
  } finally {
    await created.close();
  }
  assert.equal(dumpSchema(url), dumpSchema(migratedUrl));
});
