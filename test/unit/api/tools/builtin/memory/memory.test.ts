// Memory on PGlite.
import { migratedDatabase } from '../../../../../support/ledger/snapshot.ts';
import { openLedgerDatabase } from '../../../../../../api/billing/database/database.ts';
import { memorySuite } from '../../../../../support/tools/memory-suite.ts';

memorySuite('PGlite', () => openLedgerDatabase(migratedDatabase));
