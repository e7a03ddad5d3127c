// Lists as arrays of PostgreSQL: what is read out of one is what was put in.
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { formatArray } from '../../../../../api/accounting/metering/usage-store.ts';
import { type Database, openDatabase } from '../../../../../api/billing/database/database.ts';
import { migratedDatabase } from '../../../../support/ledger/snapshot.ts';

let database: Database;
beforeAll(async () => {
  database = await openDatabase(migratedDatabase);
});
afterAll(() => database.close());

const echo = {
  name: 'test-echo',
  text: 'select to_json($1::text[])::text as texts, to_json($2::bigint[]::text[])::text as numbers',
  row: z.object({ texts: z.string(), numbers: z.string() }),
};
const awkward = ['', 'NULL', 'null', '{}', 'a,b', '"', '\\', '\\"', ' a ', '\n', "'", '$1', 'é', '{"a"}'];

test('texts and numbers come back as they are', async () => {
  const text = fc.oneof(
    fc.constantFrom(...awkward),
    fc.string({ unit: 'grapheme' }).filter((one) => !one.includes('\0')),
  );
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.option(text, { nil: undefined })),
      fc.array(
        fc.option(fc.oneof(fc.maxSafeInteger(), fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })), {
          nil: undefined,
        }),
      ),
      async (texts, numbers) => {
        const [row] = await database.query(echo, [formatArray(texts), formatArray(numbers)]);
        assert.deepEqual(
          JSON.parse(row?.texts ?? ''),
          texts.map((one) => one ?? null),
        );
        assert.deepEqual(
          JSON.parse(row?.numbers ?? ''),
          numbers.map((one) => one?.toString() ?? null),
        );
      },
    ),
  );
});
