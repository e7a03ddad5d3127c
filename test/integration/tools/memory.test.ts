// Memory on a real PostgreSQL.
import { afterAll, beforeAll } from 'vitest';
import { openLedgerDatabase } from '../../../api/billing/database/open.ts';
import { memorySuite } from '../../support/tools/memory-suite.ts';
import { startPostgres, type Postgres } from '../../support/ledger/postgres.ts';

let postgres: Postgres;
beforeAll(async () => {
  postgres = await startPostgres({ durable: false });
});
afterAll(() => postgres.stop());

memorySuite('PostgreSQL', async () => openLedgerDatabase(await postgres.createDatabase('memory')));
