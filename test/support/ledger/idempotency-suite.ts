// What idempotency keys promise, as tests that run on any database.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'vitest';
import type { Database } from '../../../api/billing/database/database.ts';
import { IdempotencyKeys, type KeyClaim } from '../../../api/billing/idempotency.ts';

function begun(answer: KeyClaim): Extract<KeyClaim, { outcome: 'begun' }> {
  assert.ok(answer.outcome === 'begun', answer.outcome);
  return answer;
}

/** Adds the tests over one database. */
export function idempotencySuite(database: () => Database): void {
  test('of many requests with one key, one begins; the others wait, and later get its answer', async () => {
    const keys = new IdempotencyKeys(database(), { leaseMs: 60_000, keepMs: 3_600_000 });
    const request = { scope: `ask ${randomUUID()}`, key: 'k', body: '{"prompt":"hi"}' };
    const answers = await Promise.all(Array.from({ length: 12 }, () => keys.begin(request)));
    assert.equal(answers.filter(({ outcome }) => outcome === 'in_flight').length, 11);
    const first = begun(answers.find(({ outcome }) => outcome === 'begun') ?? { outcome: 'mismatch' });
    const answer = { status: 200, body: { model: 'm', cost_usd: 1.35e-5, answer: 'hi' } };
    await first.finish(answer);
    assert.equal(JSON.stringify(await keys.begin(request)), JSON.stringify({ outcome: 'answered', response: answer }));
    assert.deepEqual(await keys.begin({ ...request, body: '{"prompt":"ho"}' }), { outcome: 'mismatch' });
    begun(await keys.begin({ ...request, scope: `ask ${randomUUID()}` }));
  });

  test('a key whose work came to nothing is free again', async () => {
    const keys = new IdempotencyKeys(database(), { leaseMs: 60_000, keepMs: 3_600_000 });
    const request = { scope: `ask ${randomUUID()}`, key: 'k', body: '' };
    await begun(await keys.begin(request)).forget();
    begun(await keys.begin(request));
  });

  test('after the lease of a dead process another begins, and the answer of the first is not stored', async () => {
    let now = Date.parse('2026-02-01T00:00:00Z');
    const keys = new IdempotencyKeys(database(), { leaseMs: 1_000, keepMs: 10_000, clock: () => new Date(now) });
    const request = { scope: `ask ${randomUUID()}`, key: 'k', body: 'b' };
    const dead = begun(await keys.begin(request));
    assert.equal((await keys.begin(request)).outcome, 'in_flight');
    now += 1_000;
    const second = begun(await keys.begin(request));
    await dead.finish('from the first');
    await dead.forget();
    await second.finish('from the second');
    assert.deepEqual(await keys.begin(request), { outcome: 'answered', response: 'from the second' });
    now += 10_000;
    assert.equal(await keys.purge(), 1);
    begun(await keys.begin(request));
  });
}
