// Any order of reserve, settle, release, pend, expiry, abandonment and replay, on the real ledger and on the model, side by
// side.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { test } from 'vitest';
import { z } from 'zod';
import { toCallerAccount, toPlatformAccount } from '../../../api/billing/ledger/accounts.ts';
import type { Database } from '../../../api/billing/database/database.ts';
import { Ledger, type LedgerOptions } from '../../../api/billing/ledger/ledger.ts';
import { fromPicoDollars } from '../../../api/billing/ledger/money.ts';
import { Model } from './model.ts';

const callers = ['ann', 'bob'];
const ttl = 1_000;
const limits = { caller: 20n, platform: 30n };
const id = fc.nat({ max: 7 });
const amount = fc.bigInt({ min: 0n, max: 12n });

const command = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('reserve' as const), id, caller: fc.constantFrom(...callers), amount }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('settle' as const), id, amount }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('release' as const), id }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('pend' as const), id }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('abandon' as const), id }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('expire' as const), after: fc.nat({ max: ttl }) }) },
);
type Command = typeof command extends fc.Arbitrary<infer T> ? T : never;

const abandon = {
  name: 'test-abandon',
  text: "select ledger.abandon($1, 'never found', $2)",
  row: z.unknown(),
};

/** Frees the reservation of a call whose cost is not known, as versions before estimates did. Such holds are kept. */
export async function giveUp(database: Database, hold: string, at: Date): Promise<void> {
  await database.query(abandon, [hold, at]);
}

/** A ledger with callers, a platform account, hold ids and a clock of its own. */
class World {
  readonly model = new Model(limits);
  readonly #database: Database;
  readonly #name = randomUUID();
  readonly #ids = Array.from({ length: 8 }, () => randomUUID());
  readonly #start = Date.UTC(2026, 0, 1);
  readonly ledger: Ledger;

  constructor(database: Database, options: LedgerOptions = {}) {
    this.#database = database;
    this.ledger = new Ledger(database, { ...options, clock: () => new Date(this.#start + this.model.now) });
  }

  caller(name: string) {
    return { account: toCallerAccount(`${name}-${this.#name}`), limit: fromPicoDollars(limits.caller) };
  }

  platform() {
    return { account: toPlatformAccount(this.#name), limit: fromPicoDollars(limits.platform) };
  }

  uuid(index: number): string {
    const uuid = this.#ids[index];
    assert.ok(uuid !== undefined);
    return uuid;
  }

  async real(step: Command): Promise<string | number | undefined> {
    switch (step.do) {
      case 'reserve': {
        const answer = await this.ledger.reserve({
          id: this.uuid(step.id),
          amount: fromPicoDollars(step.amount),
          ttlMs: ttl,
          debit: this.caller(step.caller),
          credit: this.platform(),
        });
        return answer.refused_by === null ? answer.outcome : `refused by ${answer.refused_by}`;
      }
      case 'settle': {
        const answer = await this.ledger.settle({
          hold: this.uuid(step.id),
          cost: fromPicoDollars(step.amount),
          source: 'billed',
          usage: { kind: 'ask' },
        });
        return answer.outcome === 'unknown' ? 'unknown' : `${answer.outcome} ${answer.cost.toString()}`;
      }
      case 'release':
        return this.ledger.release(this.uuid(step.id));
      case 'pend':
        return this.ledger.pend(this.uuid(step.id), { reference: 'gen-1', usage: { kind: 'ask' } });
      case 'abandon':
        await giveUp(this.#database, this.uuid(step.id), new Date(this.#start + this.model.now));
        return undefined;
      case 'expire':
        return this.ledger.expire();
    }
  }

  expected(step: Command): string | number | undefined {
    switch (step.do) {
      case 'reserve':
        return this.model.reserve(step.id, step.caller, step.amount, ttl);
      case 'settle':
        return this.model.settle(step.id, step.amount);
      case 'release':
        return this.model.release(step.id);
      case 'pend':
        return this.model.pend(step.id);
      case 'abandon':
        this.model.abandon(step.id);
        return undefined;
      case 'expire':
        return this.model.expire();
    }
  }

  async compare(): Promise<void> {
    for (const name of callers) {
      const budget = await this.ledger.budget(this.caller(name));
      assert.deepEqual([budget.used, budget.held], [this.model.used(name), this.model.held(name)], name);
      assert.equal(await this.ledger.balance(this.caller(name).account), this.model.used(name));
    }
    const budget = await this.ledger.budget(this.platform());
    assert.deepEqual([budget.used, budget.held], [this.model.used(), this.model.held()]);
    assert.equal(await this.ledger.balance(this.platform().account), -this.model.used());
  }

  /** Ends every hold that is still reserved, so that the next world starts clean. */
  async finish(): Promise<void> {
    for (let index = 0; index < 8; index += 1)
      await this.ledger.settle({ hold: this.uuid(index), cost: fromPicoDollars(1n), source: 'router_record' });
  }
}

/** Adds the property tests over one database. */
export function modelSuite(
  database: () => Database,
  runs: { readonly sequential: number; readonly concurrent: number },
): void {
  test('any order of reserve, settle, release, pend, expiry, abandonment and replay agrees with plain arithmetic', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(command, { minLength: 1, maxLength: 24 }), async (steps) => {
        const world = new World(database());
        try {
          for (const step of steps) {
            if (step.do === 'expire') world.model.now += step.after;
            assert.equal(
              await world.real(step),
              world.expected(step),
              JSON.stringify(step, (_key, value: unknown) => (typeof value === 'bigint' ? value.toString() : value)),
            );
          }
          await world.compare();
        } finally {
          await world.finish();
        }
      }),
      { numRuns: runs.sequential },
    );
    assert.deepEqual(await new Ledger(database()).audit(), []);
  });

  test('the same all at once keeps the ledger right and never reserves beyond a limit', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(command, { minLength: 8, maxLength: 40 }), fc.boolean(), async (steps, shared) => {
        const world = new World(database(), shared ? {} : { batch: 1, concurrency: database().connections });
        await Promise.all(
          steps.map(async (step) => {
            if (step.do === 'expire') world.model.now += step.after;
            // What a settlement records is not limited, so a reservation made before it is what must have fitted.
            if (step.do !== 'reserve') return world.real(step);
            const answer = await world.ledger.reserve({
              id: world.uuid(step.id),
              amount: fromPicoDollars(step.amount),
              ttlMs: ttl,
              debit: world.caller(step.caller),
              credit: world.platform(),
            });
            if (answer.outcome === 'reserved')
              assert.ok(answer.debit !== null && answer.debit.used + answer.debit.held <= limits.caller);
            if (answer.outcome === 'reserved')
              assert.ok(answer.credit !== null && answer.credit.used + answer.credit.held <= limits.platform);
            return undefined;
          }),
        );
        assert.deepEqual(await world.ledger.audit(), []);
        await world.finish();
        for (const name of callers) assert.equal((await world.ledger.budget(world.caller(name))).held, 0n);
        assert.equal((await world.ledger.budget(world.platform())).held, 0n);
      }),
      { numRuns: runs.concurrent },
    );
    assert.deepEqual(await new Ledger(database()).audit(), []);
  });
}
