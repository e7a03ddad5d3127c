// A process of its own that works on jobs, spending a little every few milliseconds, to be killed in the middle.
import { randomUUID } from 'node:crypto';
import { appendFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { Ledger } from '../../../api/billing/ledger/ledger.ts';
import { fromPicoDollars, parseMoney } from '../../../api/billing/ledger/money.ts';
import { openLedgerDatabase } from '../../../api/billing/database/database.ts';
import { shortJobs } from './jobs-suite.ts';

const [url = '', log = ''] = process.argv.slice(2);
const database = await openLedgerDatabase(url);
const ledger = new Ledger(database);

const jobs = shortJobs(database, async ({ id, payer, announce, report }) => {
  for (let call = 1; call <= 4; call += 1) {
    const hold = randomUUID();
    await announce(hold);
    await ledger.reserve({
      id: hold,
      amount: parseMoney('0.01'),
      ttlMs: 60_000,
      debit: payer.debit,
      credit: payer.credit,
    });
    const cost = 1 + Math.floor(Math.random() * 1e6);
    await ledger.settle({ hold, cost: fromPicoDollars(BigInt(cost)), source: 'billed' });
    appendFileSync(log, `${id} ${cost}\n`);
    report({ done: call / 5, message: `call ${call}` });
    await sleep(40);
  }
  return { result: { done: true } };
});
jobs.start();
// Nothing of the jobs keeps a process.
const alive = setInterval(() => undefined, 1_000);
process.once('SIGTERM', () => {
  clearInterval(alive);
  void jobs.stop().then(() => database.close());
});
process.stdout.write('up\n');
