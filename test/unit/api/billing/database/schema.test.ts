// schema.sql is what the migrations lead to.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'vitest';
import { renderSchema, schemaFile } from '../../../../../api/billing/database/generate.ts';
import { readMigrations } from '../../../../../api/billing/database/migrate.ts';
import { migrationsFolder, openDatabase } from '../../../../../api/billing/database/database.ts';
import { migratedDatabase } from '../../../../support/ledger/snapshot.ts';

test('api/billing/database/schema.sql is what npm run generate writes', async () => {
  const database = await openDatabase(migratedDatabase);
  try {
    const text = await renderSchema(database, readMigrations(migrationsFolder));
    assert.equal(readFileSync(schemaFile, 'utf8'), text, 'stale: run `npm run generate` and commit what it writes');
  } finally {
    await database.close();
  }
});
