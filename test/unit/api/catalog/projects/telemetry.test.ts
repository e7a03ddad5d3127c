// Telemetry of an app: the windows, exact costs, and the reason for each null.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { type Database, openLedgerDatabase } from '../../../../../api/billing/database/database.ts';
import { readTelemetry, createTelemetryReader } from '../../../../../api/catalog/projects/telemetry.ts';
import { type Telemetry, telemetry as schema } from '../../../../../api/catalog/projects/views.ts';
import { Callers } from '../../../../../api/catalog/rank/retention.ts';
import { silent } from '../../../../support/api/sample.ts';
import { addUses, createCalls, type Use } from '../../../../support/catalog/uses.ts';
import { migratedDatabase } from '../../../../support/ledger/snapshot.ts';

let database: Database;
let read: Telemetry;
const modelCall = (hours: number, cost: string | null): Use => ({ kind: 'v1', app: 'chat', hours, cost });

beforeAll(async () => {
  database = await openLedgerDatabase(migratedDatabase);
  await addUses(database, [
    ...Array.from({ length: 20 }, (_, index): Use => ({
      kind: 'app',
      app: 'chat',
      caller: 'a',
      hours: 1,
      latency: (index + 1) * 10,
    })),
    ...createCalls('chat', 'b', 2, 30),
    ...createCalls('chat', 'c', 100),
    ...createCalls('chat', 'd', 600),
    ...createCalls('chat', 'e', 800),
    ...createCalls('draw', 'a', 1),
    modelCall(1, '0.000000000001'),
    modelCall(2, '0.1'),
    modelCall(3, null),
    modelCall(200, '0.2'),
    modelCall(1000, '5'),
  ]);
  await new Callers(database).update();
  read = await readTelemetry(database, 'chat');
});
afterAll(() => database.close());

test('each window has the calls, callers and model calls of its time', () => {
  const seen = (['24h', '7d', '30d'] as const).map((window) => {
    const { requests, callers, model_calls, model_costs_pending } = read[window];
    return [requests, callers, model_calls, model_costs_pending];
  });
  assert.deepEqual(seen, [
    [21, 2, 3, 1],
    [23, 3, 3, 1],
    [24, 4, 4, 1],
  ]);
});

test('costs are summed exactly; one that is pending is not in the sum', () => {
  assert.equal(read['24h'].model_cost_usd, 0.100000000001);
  assert.equal(read['30d'].model_cost_usd, 0.300000000001);
});

test('latency is that of calls of the app, as values that occurred', () => {
  assert.deepEqual(read['24h'].latency_ms, { p50: 100, p95: 190 });
});

test('without a gateway and an operator that report, traffic and compute are null, with the reason', () => {
  for (const window of ['24h', '7d', '30d'] as const) {
    const { visits, uptime, error_rate, compute, unmeasured } = read[window];
    assert.deepEqual([visits, uptime, error_rate, compute], [null, null, null, null]);
    assert.deepEqual(Object.keys(unmeasured).toSorted(), ['compute', 'error_rate', 'uptime', 'visits']);
    assert.match(unmeasured['visits'] ?? '', /access log/);
    assert.match(unmeasured['uptime'] ?? '', /Nothing asks the app/);
  }
  assert.deepEqual(schema.parse(read), read);
});

test('an app that nobody called has counts of zero and no latency', async () => {
  const { requests, callers, model_calls, model_cost_usd, latency_ms, unmeasured } = (
    await readTelemetry(database, 'idle')
  )['30d'];
  assert.deepEqual([requests, callers, model_calls, model_cost_usd], [0, 0, 0, 0]);
  assert.deepEqual(latency_ms, { p50: null, p95: null });
  assert.equal(unmeasured['latency_ms'], 'The app was not called in this time.');
});

test('without a ledger, or with a database that does not answer, all of it is null and says so', async () => {
  const absent = (): never => {
    throw new Error('not open');
  };
  for (const [ledger, says] of [
    [{ opened: Promise.resolve(undefined), get: absent }, /DATABASE_URL/],
    [{ opened: new Promise<undefined>(() => undefined), get: absent }, /did not answer/],
  ] as const) {
    const reader = createTelemetryReader({ ledger, log: silent });
    await Promise.resolve();
    const { '7d': week } = schema.parse(await reader('chat'));
    assert.deepEqual([week.requests, week.callers, week.model_calls, week.model_cost_usd], [null, null, null, null]);
    assert.match(week.unmeasured['requests'] ?? '', says);
    assert.match(week.unmeasured['model_cost_usd'] ?? '', says);
  }
});
