// What is reserved together, as for a comparison: wholly or not at all, and in flight only once it is called.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'vitest';
import type { Database } from '../../../api/billing/database/database.ts';
import { toCallerAccount } from '../../../api/billing/ledger/accounts.ts';
import { Ledger, type ReserveRequest } from '../../../api/billing/ledger/ledger.ts';
import { type Money, parseMoney } from '../../../api/billing/ledger/money.ts';
import { createHold } from './hold.ts';

const usd = parseMoney;

export function groupSuite(database: () => Database): void {
  test('what belongs together is reserved wholly or not at all, and is refused without what it had reserved itself', async () => {
    const ledger = new Ledger(database());
    const [caller, router] = [randomUUID(), randomUUID()];
    const hold = (): ReserveRequest => createHold({ caller, router, quota: usd('0.025') });
    const first = [hold(), hold(), hold()];
    for (const { outcome, refused_by: by, debit, credit } of await ledger.reserveAll(first)) {
      assert.deepEqual([outcome, by], ['refused', 'debit']);
      assert.deepEqual([debit?.held, credit?.held], [0n, 0n]);
    }
    assert.equal((await ledger.budget(hold().debit)).held, 0n);
    // Two of two, of which many others are refused in the same statement.
    const groups = Array.from({ length: 20 }, () => [hold(), hold()]);
    const answers = await Promise.all(groups.map((group) => ledger.reserveAll(group)));
    const outcomes = answers.map((group) => group.map(({ outcome }) => outcome).join(' '));
    assert.deepEqual(outcomes.toSorted(), [...Array<string>(19).fill('refused refused'), 'reserved reserved']);
    assert.equal((await ledger.budget(hold().debit)).held, usd('0.02'));
    // Sent again, it is the same.
    const made = groups[outcomes.indexOf('reserved reserved')] ?? [];
    assert.deepEqual(
      (await ledger.reserveAll(made)).map(({ outcome }) => outcome),
      ['replayed', 'replayed'],
    );
  });

  test('a hold that waits is money and no call in flight, until it is reserved again for its call', async () => {
    const ledger = new Ledger(database());
    const [caller, router, request] = [randomUUID(), randomUUID(), randomUUID()];
    const flight = { caller: 2, all: 10 };
    const waiting = ['a', 'b', 'c', 'd'].map((name): ReserveRequest => ({
      ...createHold({ caller, router }),
      usage: { kind: 'compare', caller, request, model: `${name} ${request}`, priceVersion: '1' },
      waits: true,
    }));
    const [a, b, c, d] = waiting;
    assert.ok(a && b && c && d);
    for (const { outcome } of await ledger.reserveAll(waiting)) assert.equal(outcome, 'reserved');
    assert.equal((await ledger.budget(a.debit)).held, usd('0.04'));
    const begin = async (hold: ReserveRequest): Promise<string> => {
      const { outcome, refused_by: by, state } = await ledger.reserve({ ...hold, waits: undefined, flight });
      return by ?? `${outcome} ${state ?? ''}`;
    };
    assert.deepEqual(await Promise.all([begin(a), begin(b), begin(c)]), [
      'replayed open',
      'replayed open',
      'in_flight_caller',
    ]);
    assert.equal((await ledger.budget(a.debit)).held, usd('0.04'), 'it waits for another try');
    // Another request of the caller waits for a first cost of theirs, and is not kept.
    const other = { ...createHold({ caller, router }), usage: { ...a.usage, request: randomUUID() }, flight };
    assert.equal((await ledger.reserve(other as ReserveRequest)).refused_by, 'in_flight_caller');
    assert.equal((await ledger.budget(a.debit)).held, usd('0.04'));
    await ledger.settle({ hold: a.id, cost: usd('0.001'), source: 'billed' });
    assert.equal(await begin(c), 'replayed open');
    // The process ends: what was called is looked up, what waits is given back.
    const later = new Ledger(database(), { clock: () => new Date(Date.now() + 120_000) });
    assert.equal(await later.expire(), 3);
    assert.equal((await ledger.budget(a.debit)).held, usd('0.02'));
    assert.equal(await begin(d), 'replayed voided');
  });

  test('what belongs together takes nothing of a network that has no room for all of it', async () => {
    const ledger = new Ledger(database());
    const [site, router] = [randomUUID(), randomUUID()];
    const from = (subnet: string, amount: Money): ReserveRequest => ({
      ...createHold({ router, amount }),
      debit: {
        account: toCallerAccount(`${site} ${subnet}`),
        limit: usd('0.05'),
        within: [{ network: site, limit: usd('0.2') }],
      },
    });
    for (const name of ['a', 'b', 'c', 'd'])
      assert.equal((await ledger.reserve(from(name, usd('0.0475')))).outcome, 'reserved');
    const answers = await ledger.reserveAll([from('e', usd('0.01')), from('e', usd('0.01'))]);
    assert.deepEqual(
      answers.map(({ refused_by: by }) => by),
      ['network', 'network'],
    );
    assert.equal((await ledger.reserve(from('e', usd('0.01')))).outcome, 'reserved');
  });
}
