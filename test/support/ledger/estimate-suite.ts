// Pending costs that are never found: waits, estimates, and records of 0. Part of the suite that every engine passes.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { z } from 'zod';
import type { Database } from '../../../api/billing/database/database.ts';
import { Ledger, type ReserveRequest } from '../../../api/billing/ledger/ledger.ts';
import { parseMoney } from '../../../api/billing/ledger/money.ts';
import { reconcile, type LookupResult } from '../../../api/billing/ledger/reconciler.ts';
import { createHold } from './hold.ts';

const usd = parseMoney;
const useCost = {
  name: 'test-use-cost',
  text: 'select cost::text, cost_source from ledger.usage where id = $1',
  row: z.object({ cost: z.string().transform(parseMoney), cost_source: z.string() }),
};

async function readUse(database: Database, id: string): Promise<unknown> {
  return (await database.query(useCost, [id]))[0];
}

export function estimateSuite(database: () => Database): void {
  test('a cost that never comes is asked for with growing waits and then settled at what was reserved', async () => {
    let now = Date.parse('2026-06-02T10:00:00Z');
    const timed = new Ledger(database(), { clock: () => new Date(now) });
    const hold = createHold();
    await timed.reserve(hold);
    assert.equal(
      await timed.pend(hold.id, { reference: 'gen-7', usage: { kind: 'ask', model: 'm' }, retryMs: 1_000 }),
      'pending',
    );
    assert.equal((await timed.budget(hold.debit)).held, usd('0.01'));
    const options = {
      waitMs: 1_000,
      attempts: 2,
      leaseMs: 10_000,
      lookUp: () => Promise.reject(new Error('router is down')),
    };
    const nothing = { settled: 0, released: 0, deferred: 0, estimated: 0 };
    assert.deepEqual(await reconcile(timed, options), nothing);
    now += 1_000;
    assert.deepEqual(await reconcile(timed, options), { ...nothing, deferred: 1 });
    assert.deepEqual(await reconcile(timed, options), nothing);
    now += 1_000;
    assert.deepEqual(await reconcile(timed, options), { ...nothing, estimated: 1 });
    // Without an estimate of the call itself, at all that was reserved; nothing stays pending.
    assert.equal((await timed.budget(hold.debit)).held, 0n);
    assert.equal(await timed.balance(hold.debit.account), usd('0.01'));
    assert.deepEqual(await readUse(database(), hold.id), { cost: usd('0.01'), cost_source: 'estimated' });
    now += 3_600_000;
    assert.deepEqual(await reconcile(timed, options), nothing);
    const late = await timed.settle({ hold: hold.id, cost: usd('0.003'), source: 'router_record' });
    assert.equal(late.outcome === 'replayed' && late.cost, usd('0.01'));
  });

  test('a cost that a router can never say is settled at the estimate of the call at the first look, unless its process died', async () => {
    let now = Date.parse('2026-06-04T10:00:00Z');
    const timed = new Ledger(database(), { clock: () => new Date(now) });
    const [known, dead] = [createHold({ ttlMs: 1_000 }), createHold({ ttlMs: 1_000 })];
    await timed.reserve(known);
    await timed.reserve(dead);
    const usage = { kind: 'ask', model: 'm', tokensIn: 10, tokensOut: 2 };
    await timed.pend(known.id, { reference: null, usage, retryMs: 0, estimate: usd('0.0007') });
    const options = {
      waitMs: 1_000,
      attempts: 2,
      leaseMs: 10_000,
      lookUp: (): Promise<LookupResult> => Promise.resolve({ outcome: 'never', why: 'no records' }),
    };
    const nothing = { settled: 0, released: 0, deferred: 0, estimated: 0 };
    assert.deepEqual(await reconcile(timed, options), { ...nothing, estimated: 1 });
    assert.equal(await timed.balance(known.debit.account), usd('0.0007'));
    assert.deepEqual(await readUse(database(), known.id), { cost: usd('0.0007'), cost_source: 'estimated' });
    now += 1_000;
    assert.equal(await timed.expire(), 1);
    // The next process may find its cost in the journal.
    assert.deepEqual(await reconcile(timed, options), { ...nothing, deferred: 1 });
    now += 1_000;
    assert.deepEqual(await reconcile(timed, options), { ...nothing, estimated: 1 });
    assert.deepEqual(await timed.audit(), []);
  });

  test('a recorded cost of 0 is not believed where the call has a price and tokens', async () => {
    let now = Date.parse('2026-06-05T10:00:00Z');
    const timed = new Ledger(database(), { clock: () => new Date(now) });
    const look = (tokens: number | undefined) => ({
      waitMs: 1_000,
      attempts: 2,
      leaseMs: 10_000,
      lookUp: (): Promise<LookupResult> =>
        Promise.resolve({ outcome: 'found', cost: usd('0'), source: 'router_record', tokens }),
    });
    const nothing = { settled: 0, released: 0, deferred: 0, estimated: 0 };
    const pend = async (hold: ReserveRequest): Promise<void> => {
      await timed.reserve(hold);
      await timed.pend(hold.id, { reference: 'gen-0', usage: { kind: 'ask' }, retryMs: 0, estimate: hold.amount });
    };
    const priced = createHold();
    await pend(priced);
    assert.deepEqual(await reconcile(timed, look(30)), { ...nothing, deferred: 1 });
    now += 1_000;
    assert.deepEqual(await reconcile(timed, look(undefined)), { ...nothing, estimated: 1 });
    assert.equal(await timed.balance(priced.debit.account), usd('0.01'));
    // No tokens, or no price: 0 is what it cost.
    await pend(createHold());
    await pend(createHold({ amount: usd('0') }));
    assert.deepEqual(await reconcile(timed, look(0)), { ...nothing, settled: 2 });
  });
}
