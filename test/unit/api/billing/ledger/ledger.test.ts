// The ledger's promises on PGlite.
import { openLedgerDatabase } from '../../../api/ledger/open.ts';
import { ledgerSuite } from './suite.ts';

ledgerSuite('PGlite', () => openLedgerDatabase('pglite:'), { sequential: 25, concurrent: 8 });
