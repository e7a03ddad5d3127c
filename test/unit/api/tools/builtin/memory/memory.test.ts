// Memory on PGlite.
import { openLedgerDatabase } from '../../../api/ledger/open.ts';
import { memorySuite } from './memory-suite.ts';

memorySuite('PGlite', () => openLedgerDatabase('pglite:'));
