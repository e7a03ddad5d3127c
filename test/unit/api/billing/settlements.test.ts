// The journal, and settlements that nobody waits for: what it has outlives the process, and is settled once.
import assert from 'node:assert/strict';
import { appendFileSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, test } from 'vitest';
import { Settlements, Journal, type JournalEntry } from '../../../../api/billing/settlements.ts';
import { Wallet } from '../../../../api/billing/wallet.ts';
import { openLedgerDatabase } from '../../../../api/billing/database/database.ts';
import {
  toCallerAccount,
  toKeyAccount,
  toMarginAccount,
  toPlatformAccount,
  createAnonymousPayer,
} from '../../../../api/billing/ledger/accounts.ts';
import { Ledger, type SettleRequest } from '../../../../api/billing/ledger/ledger.ts';
import { negate, parseMoney } from '../../../../api/billing/ledger/money.ts';
import { silent } from '../../../support/api/sample.ts';
import { migratedDatabase } from '../../../support/ledger/snapshot.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'moorage-journal-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

const margin = parseMoney('0.000001');
const entry = (hold: string = randomUUID()): JournalEntry => ({
  hold,
  frees: randomUUID(),
  cost: parseMoney('0.000000000123'),
  source: 'billed',
  usage: { kind: 'ask', caller: 'c', model: 'm', tokensIn: 3, latencyMs: 5, priceVersion: 'v', request: 'r' },
  lines: [
    { account: toKeyAccount('c'), amount: margin },
    { account: toMarginAccount('r'), amount: negate(margin) },
  ],
});

test('what was written is read by the next process as it was, but for a line that was cut off', () => {
  const journal = new Journal(folder);
  const [one, two, three] = [entry(), { ...entry(), lines: [] }, entry()];
  journal.write(one);
  journal.write(two);
  journal.write(three);
  journal.settled(two.hold);
  const [file = ''] = readdirSync(folder);
  appendFileSync(join(folder, file), '{"hold":"0000');
  const [left, ...rest] = new Journal(folder).left;
  assert.deepEqual([left?.entries, left?.broken, rest], [[one, two, three], 1, []]);
});

test('a line that a full disk cut off spoils no other', () => {
  const journal = new Journal(folder);
  const [one, two] = [entry(), entry()];
  journal.write(one);
  const [file = ''] = readdirSync(folder);
  appendFileSync(join(folder, file), '{"hold":"0000');
  journal.write(two);
  const [left] = new Journal(folder).left;
  assert.deepEqual([left?.entries, left?.broken], [[one, two], 1]);
});

test('a file in which everything is settled does not grow, and is gone at the end', () => {
  const journal = new Journal(folder);
  for (let round = 0; round < 2_000; round += 1) {
    const one = entry();
    journal.write(one);
    journal.settled(one.hold);
  }
  const [file = ''] = readdirSync(folder);
  assert.ok(readFileSync(join(folder, file)).length < 70_000);
  journal.close();
  assert.deepEqual(readdirSync(folder), []);
});

test('one that is never empty is followed by another, and removed once all of it is settled', () => {
  const journal = new Journal(folder);
  const first = entry();
  journal.write(first);
  let last = first;
  for (let round = 0; round < 20_000; round += 1) {
    const next = entry();
    journal.write(next);
    if (last !== first) journal.settled(last.hold);
    last = next;
  }
  // The first one keeps its file; those between are gone.
  assert.equal(readdirSync(folder).length, 2);
  journal.settled(first.hold);
  assert.equal(readdirSync(folder).length, 1);
  journal.settled(last.hold);
  journal.close();
  assert.deepEqual(readdirSync(folder), []);
});

const payer = createAnonymousPayer('caller', {
  router: 'r',
  freeQuota: parseMoney('0.001'),
  dailyCap: parseMoney('1'),
  keyLimit: parseMoney('1'),
});
const item = {
  payer,
  amount: parseMoney('0.0008'),
  ttlMs: 60_000,
  debit: payer.debit,
  credit: payer.credit,
};
const settlement = { cost: parseMoney('0.0001'), source: 'billed' as const, usage: { kind: 'ask', caller: 'caller' } };

/** A ledger whose settlements can be held back, or lost with the process. */
class SlowLedger extends Ledger {
  #gate = Promise.resolve();

  holdBack(): () => void {
    const { promise, resolve } = Promise.withResolvers<undefined>();
    this.#gate = promise.then(() => undefined);
    return () => {
      resolve(undefined);
    };
  }

  override async settle(request: SettleRequest): ReturnType<Ledger['settle']> {
    await this.#gate;
    return super.settle(request);
  }
}

test('the answer waits for no settlement, and is refused no quota because of one', async () => {
  const database = await openLedgerDatabase(migratedDatabase);
  const ledger = new SlowLedger(database);
  const refused: string[] = [];
  const settlements = new Settlements({ ledger, log: silent, journal: new Journal(folder) });
  const wallet = new Wallet({ ledger, settlements, log: silent, refused: (kind) => refused.push(kind) });
  const first = await wallet.reserve({ id: randomUUID(), ...item });
  const go = ledger.holdBack();
  const quota = await first.settleBehind(settlement);
  assert.deepEqual([quota?.used, quota?.held], [parseMoney('0.0001'), parseMoney('0')]);
  assert.equal(await ledger.balance(toCallerAccount('caller')), parseMoney('0'));
  // 0.0008 is still reserved, so another 0.0008 fits only once the first is settled.
  const second = wallet.reserve({ id: randomUUID(), ...item });
  setTimeout(go, 50);
  assert.equal((await second).quota?.used, parseMoney('0.0001'));
  assert.deepEqual(refused, []);
  await assert.rejects(wallet.reserve({ id: randomUUID(), ...item }), /daily quota left/);
  await settlements.drain(1_000);
  assert.deepEqual(await ledger.audit(), []);
  await database.close();
});

test('a process that is killed before its settlements leaves them to the next, to the digit and once', async () => {
  const database = await openLedgerDatabase(migratedDatabase);
  const ledger = new SlowLedger(database);
  const killed = new Wallet({
    ledger,
    settlements: new Settlements({ ledger, log: silent, journal: new Journal(folder) }),
    log: silent,
    refused: () => undefined,
  });
  const ids = Array.from({ length: 20 }, () => randomUUID());
  const wide = { ...item, amount: parseMoney('0.00001') };
  ledger.holdBack();
  for (const id of ids) {
    const spend = await killed.reserve({ id, ...wide });
    await spend.settleBehind({ ...settlement, cost: parseMoney('0.000001') });
  }
  // One that did reach the ledger, and one of a hold that it does not have.
  const reached = new Ledger(database);
  await reached.settle({ hold: ids[0] ?? '', cost: parseMoney('0.000001'), source: 'billed' });
  const next = new Settlements({ ledger: reached, log: silent, journal: new Journal(folder) });
  assert.equal(await next.settleLeft(), 19);
  assert.equal(await next.settleLeft(), 0);
  assert.equal(await reached.balance(toPlatformAccount('r')), negate(parseMoney('0.00002')));
  assert.deepEqual(await reached.counts(), { open: 0, pending: 0, abandoned: 0 });
  assert.deepEqual(await reached.audit(), []);
  await database.close();
});

test('entries of holds that the ledger does not know are kept for people', async () => {
  const database = await openLedgerDatabase(migratedDatabase);
  new Journal(folder).write(entry());
  const settlements = new Settlements({ ledger: new Ledger(database), log: silent, journal: new Journal(folder) });
  assert.equal(await settlements.settleLeft(), 0);
  assert.equal(readdirSync(folder).filter((name) => name.endsWith('.unknown')).length, 1);
  await database.close();
});
