// What tools spend on models: booked to the caller call by call, summed exactly, and refused as ask refuses.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { toCallerAccount } from '../../../../../api/billing/ledger/accounts.ts';
import { formatMoney } from '../../../../../api/billing/ledger/money.ts';
import { Problem } from '../../../../../lib/problem.ts';
import { completion, reply } from '../../../../support/models/scripted-router.ts';
import { maxTokens, createAnswer, startModelLab, type ModelLab } from '../../../../support/tools/model-lab.ts';

let lab: ModelLab;
beforeAll(async () => {
  lab = await startModelLab({
    models: {
      'alpha-v4-flash': createAnswer('Hi', '0.0000135'),
      'beta-K3': createAnswer('Ho', '0.001'),
      'gamma5.2': reply(500, '{"error":{"message":"broke"}}'),
      'delta-5.6-luna': reply(200, completion('{"prompt_tokens":1}')),
      'zeta-fable-5': createAnswer('Premium', '0.25'),
      'epsilon-3.5-flash': reply(400, '{"error":{"message":"too long"}}'),
    },
  });
});
afterAll(() => lab.stop());

const uses = {
  name: 'test-uses',
  text: 'select id, kind, cost::text as cost, caller from ledger.usage',
  row: z.object({ id: z.string(), kind: z.string(), cost: z.string().nullable(), caller: z.string() }),
};
const slug =
  (expected: string) =>
  (error: unknown): boolean =>
    error instanceof Problem && error.type.slug === expected;

test('sums the costs of the calls exactly, as the ledger does for the caller', async () => {
  const spender = lab.spender();
  const reply = await spender.ask({ prompt: 'Hello' });
  assert.deepEqual(
    [reply.model, reply.text, reply.tokensIn, reply.tokensOut, reply.costSource],
    ['alpha-v4-flash', 'Hi', 7, 9, 'billed'],
  );
  await spender.ask({ prompt: 'Hello', model: 'beta-K3' });
  assert.equal(formatMoney(spender.spending.cost), '0.0010135');
  assert.equal(formatMoney(await lab.ledger.balance(toCallerAccount('somebody'))), '0.0010135');
  assert.deepEqual(
    (await lab.database.query(uses, [])).map(({ kind, caller }) => [kind, caller]),
    [
      ['tool', 'somebody'],
      ['tool', 'somebody'],
    ],
  );
  assert.ok(spender.spending.quota !== undefined && spender.spending.quota.used > 0n);
});

test('announces holds before they are made, under the ids that the ledger uses', async () => {
  const announced: string[] = [];
  const known: number[] = [];
  const spender = lab.spender({
    announce: async (hold) => {
      announced.push(hold);
      known.push(
        (
          await lab.database.query(
            {
              ...uses,
              name: 'test-hold',
              text: "select id::text, state as kind, null as cost, '' as caller from ledger.hold where id = $1",
            },
            [hold],
          )
        ).length,
      );
    },
  });
  await spender.ask({ prompt: 'Hello' });
  await spender.compare({ prompt: 'Hello', models: ['alpha-v4-flash', 'beta-K3'] });
  assert.deepEqual(known, [0, 0, 0]);
  const booked = new Set((await lab.database.query(uses, [])).map(({ id }) => id));
  assert.ok(announced.every((id) => booked.has(id)));
});

test('reports a failure as a problem, with a cost of nothing or pending, never an estimate', async () => {
  const spender = lab.spender();
  await assert.rejects(spender.ask({ prompt: 'Hello', model: 'epsilon-3.5-flash' }), slug('model-refused'));
  assert.deepEqual([spender.spending.cost, spender.spending.pending, spender.spending.calls], [0n, 0, 1]);
  await assert.rejects(spender.ask({ prompt: 'Hello', model: 'gamma5.2' }), slug('model-failed'));
  const late = await spender.ask({ prompt: 'Hello', model: 'delta-5.6-luna' });
  assert.deepEqual([late.cost, late.costSource], [undefined, 'pending']);
  assert.deepEqual([spender.spending.cost, spender.spending.pending], [0n, 2]);
});

test('calls premium models with the caller’s own key', async () => {
  await assert.rejects(lab.spender().ask({ prompt: 'Hello', model: 'zeta-fable-5' }), slug('key-required'));
  await assert.rejects(lab.spender().compare({ prompt: 'Hello', models: ['zeta-fable-5'] }), slug('key-required'));
  const spender = lab.spender({ payer: lab.keyed });
  assert.equal((await spender.ask({ prompt: 'Hello', model: 'zeta-fable-5' })).text, 'Premium');
  assert.equal(lab.router.asked.at(-1)?.authorization, 'Bearer sk-test-12345678');
  assert.equal(spender.spending.quota, undefined);
});

test('counts every call of a comparison, and reports the maximum cost before it starts', async () => {
  const spender = lab.spender();
  const { results, summary } = await spender.compare({
    prompt: 'Hello',
    models: ['alpha-v4-flash', 'beta-K3', 'gamma5.2'],
  });
  assert.deepEqual(
    results.map(({ model, error }) => [model, error === undefined]),
    [
      ['alpha-v4-flash', true],
      ['beta-K3', true],
      ['gamma5.2', false],
    ],
  );
  assert.deepEqual([summary?.cheapest, summary?.total_cost_usd], ['alpha-v4-flash', 0.0010135]);
  assert.deepEqual(
    [formatMoney(spender.spending.cost), spender.spending.pending, spender.spending.calls],
    ['0.0010135', 1, 3],
  );
  assert.ok(spender.maxCost({ prompt: 'Hello', maxTokens: 10 }) < spender.maxCost({ prompt: 'Hello' }));
  assert.equal(
    spender.maxCost({ prompt: 'Hello', maxTokens: 1e9 }),
    spender.maxCost({ prompt: 'Hello', maxTokens: maxTokens.max }),
  );
});
