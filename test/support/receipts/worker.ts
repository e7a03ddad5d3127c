// A process of its own that brings the record up to date in small steps until it is killed: node worker.ts DATABASE_URL NOW
import { openLedgerDatabase } from '../../../api/billing/database/database.ts';
import { readReceiptSettings } from '../../../api/accounting/receipts/config.ts';
import { advanceLog, Signer } from '../../../api/accounting/receipts/ledger-log.ts';

const [url = '', now = ''] = process.argv.slice(2);
const { key, keys } = readReceiptSettings();
if (key === undefined) throw new Error('set MOORAGE_RECEIPT_KEY');
const signer = new Signer('https://moorage.localhost', key, keys);
const database = await openLedgerDatabase(url);
process.stdout.write('up\n');
for (;;) await advanceLog({ database, signer, batch: 7, now: () => new Date(now) });
