// Memory on a real PostgreSQL.
import { after, before } from 'node:test';
import { openLedgerDatabase } from '../../../api/billing/database/open.ts';
import { memorySuite } from '../../support/tools/memory-suite.ts';
import { startPostgres, type Postgres } from '../../support/ledger/postgres.ts';

let postgres: Postgres;
before(async () => {
  postgres = await startPostgres({ durable: false });
});
after(() => postgres.stop());

memorySuite('PostgreSQL', async () => openLedgerDatabase(await postgres.createDatabase('memory')));
