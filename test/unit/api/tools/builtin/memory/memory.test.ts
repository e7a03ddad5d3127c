// Memory on PGlite.
import { openLedgerDatabase } from '../../../../../../api/billing/database/open.ts';
import { memorySuite } from '../../../../../support/tools/memory-suite.ts';

memorySuite('PGlite', () => openLedgerDatabase('pglite:'));
