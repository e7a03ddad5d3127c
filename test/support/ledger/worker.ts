// A process of its own that spends through the ledger, to be raced against another or killed in the middle.
import { appendFileSync } from 'node:fs';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { toCallerAccount, toPlatformAccount } from '../../../api/billing/ledger/accounts.ts';
import { Ledger } from '../../../api/billing/ledger/ledger.ts';
import { formatMoney, parseMoney, fromPicoDollars } from '../../../api/billing/ledger/money.ts';
import { openLedgerDatabase } from '../../../api/billing/database/database.ts';

const [mode, url = '', caller = '', routerLog = ''] = process.argv.slice(2);
const debit = (limit: string) => ({ account: toCallerAccount(caller), limit: parseMoney(limit) });
const credit = { account: toPlatformAccount('router'), limit: parseMoney('1000') };
const amount = parseMoney('0.01');

process.stdout.write('up\n');
await once(process.stdin, 'data');
const database = await openLedgerDatabase(url);

/** A hundred holds at once, each in a statement of its own, on a quota with room for 7. */
async function race(): Promise<void> {
  const ledger = new Ledger(database, { batch: 1, concurrency: database.connections });
  const answers = await Promise.all(
    Array.from({ length: 100 }, () =>
      ledger.reserve({ id: randomUUID(), amount, ttlMs: 60_000, debit: debit('0.0799'), credit }),
    ),
  );
  process.stdout.write(`held ${answers.filter(({ outcome }) => outcome === 'reserved').length}\n`);
}

/** One call after another until killed. The router bills into its own log, as a real one would, before we can settle. */
async function spend(ledger: Ledger): Promise<void> {
  for (let call = 1; ; call += 1) {
    const id = randomUUID();
    const held = await ledger.reserve({ id, amount, ttlMs: 5_000, debit: debit('100'), credit });
    if (held.outcome !== 'reserved') throw new Error(held.outcome);
    const cost = fromPicoDollars(BigInt(1 + Math.floor(Math.random() * 1e9)));
    appendFileSync(routerLog, `${id} ${formatMoney(cost)}\n`);
    await ledger.settle({ hold: id, cost, source: 'billed', usage: { kind: 'ask' } });
    process.stdout.write(`${call}\n`);
  }
}

if (mode === 'race') {
  await race();
  await database.close();
  process.stdin.destroy();
} else {
  const ledger = new Ledger(database);
  await Promise.all(Array.from({ length: 8 }, () => spend(ledger)));
}
