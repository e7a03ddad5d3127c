// A ledger with calls of a day, and a router whose bill a test writes.
import { randomUUID } from 'node:crypto';
import type { Client } from 'pg';
import type { Database } from '../../../api/billing/database/database.ts';
import {
  toCallerAccount,
  toOwnKeyAccount,
  toOwnKeyRouterAccount,
  toPlatformAccount,
  toRevenueAccount,
  toToolAccount,
} from '../../../api/billing/ledger/accounts.ts';
import { Ledger } from '../../../api/billing/ledger/ledger.ts';
import { parseMoney } from '../../../api/billing/ledger/money.ts';
import type { BilledCall, RouterBill } from '../../../api/billing/ledger/reconciler.ts';
import type { RouterRecords } from '../../../api/accounting/reconciliation/compare/router.ts';

/** What a call is for, and who is owed for it. */
const credits = {
  ask: toPlatformAccount('litellm'),
  own: toOwnKeyRouterAccount('litellm'),
  tool: toToolAccount('render_diagram'),
  app: toRevenueAccount('chat-ui-1'),
};
type CallKind = keyof typeof credits;

/** Calls that are made when the test says, and what the router has of them. */
export class DayRecords {
  readonly ledger: Ledger;
  #records = 0;
  readonly bill: BilledCall[] = [];
  /** Instead of the bill. */
  answer: RouterBill | undefined;
  now = new Date('2026-03-02T12:00:00Z');

  constructor(database: Database) {
    this.ledger = new Ledger(database, { clock: () => this.now });
  }

  readonly router: RouterRecords = {
    name: 'litellm',
    fetchBill: ({ from, to }) =>
      Promise.resolve(this.answer ?? { outcome: 'calls', calls: this.bill.filter(({ at }) => at >= from && at < to) }),
  };

  async reserve(kind: CallKind): Promise<string> {
    const id = randomUUID();
    const debit = kind === 'own' ? toOwnKeyAccount('somebody') : toCallerAccount('somebody');
    await this.ledger.reserve({
      id,
      amount: parseMoney('0.01'),
      ttlMs: 60_000,
      debit: { account: debit, limit: null },
      credit: { account: credits[kind], limit: null },
    });
    return id;
  }

  /** A call that is settled; model calls are in the bill as well. */
  async call(kind: CallKind, cost = '0.0025'): Promise<string> {
    const id = await this.reserve(kind);
    await this.ledger.settle({
      hold: id,
      cost: parseMoney(cost),
      source: kind === 'ask' || kind === 'own' ? 'billed' : 'tariff',
      usage: { kind: kind === 'own' ? 'ask' : kind },
    });
    if (kind === 'ask' || kind === 'own') this.billed(id, cost, kind === 'ask');
    return id;
  }

  billed(hold: string | undefined, amount: string, isPlatform = true): string {
    const reference = `chatcmpl-${(this.#records += 1)}`;
    this.bill.push({ hold, reference, at: new Date(this.now.getTime() + 40), amount: parseMoney(amount), isPlatform });
    return reference;
  }
}

/** What an administrator can do: with the triggers off. */
export async function tamper(client: Client, sql: string, values: readonly unknown[] = []): Promise<void> {
  await client.query('set session_replication_role = replica');
  const { rowCount } = await client.query(sql, [...values]);
  await client.query('set session_replication_role = origin');
  if (rowCount === 0) throw new Error(`nothing was changed: ${sql}`);
}
