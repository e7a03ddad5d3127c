// The ledger's promises on PGlite.
import { openLedgerDatabase } from '../../../api/billing/database/database.ts';
import { ledgerSuite } from '../../support/ledger/suite.ts';

ledgerSuite('PGlite', () => openLedgerDatabase('pglite:'), { sequential: 25, concurrent: 8 });
