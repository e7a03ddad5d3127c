// Jobs on PGlite: what `npm start` has.
import { afterAll, beforeAll } from 'vitest';
import { z } from 'zod';
import { migratedDatabase } from '../../../../../support/ledger/snapshot.ts';
import { type Database, openLedgerDatabase } from '../../../../../../api/billing/database/database.ts';
import { jobSuite } from '../../../../../support/tools/jobs-suite.ts';

let database: Database;
beforeAll(async () => {
  database = await openLedgerDatabase(migratedDatabase);
});
afterAll(() => database.close());

// It takes seconds to start, so all share one.
jobSuite(
  () => Promise.resolve(database),
  async () => {
    await database.query({ name: 'test-empty', text: 'delete from tools.job', row: z.unknown() }, []);
  },
);
