// Memory on a real PostgreSQL.
import { afterAll, beforeAll } from 'vitest';
import { openLedgerDatabase } from '../../../api/billing/database/database.ts';
import { memorySuite } from '../../support/tools/memory-suite.ts';
import { sharePostgres, type SharedPostgres } from '../../support/ledger/postgres.ts';

let postgres: SharedPostgres;
beforeAll(async () => {
  postgres = await sharePostgres();
});
afterAll(() => postgres.stop());

memorySuite('PostgreSQL', async () => openLedgerDatabase(await postgres.createDatabase('memory')));
