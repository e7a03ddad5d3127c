// Traffic and compute of an app out of the sums: equal to what the uses themselves say, wherever a window begins.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { type Database, openLedgerDatabase } from '../../../../../api/billing/database/database.ts';
import {
  recordBatch,
  recordUses,
  rollUp,
  type UsageEvent,
} from '../../../../../api/accounting/metering/usage-store.ts';
import { readTelemetry } from '../../../../../api/catalog/projects/telemetry.ts';
import { telemetry as schema } from '../../../../../api/catalog/projects/views.ts';
import { readStabilities, Stabilities } from '../../../../../api/catalog/rank/stability.ts';
import { addSamples } from '../../../../../api/accounting/metering/compute-receiver.ts';
import { migratedDatabase } from '../../../../support/ledger/snapshot.ts';

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
const now = Date.now();
const windows = { '24h': 24, '7d': 168, '30d': 720 } as const;

let database: Database;
const events: UsageEvent[] = Array.from({ length: 3_000 }, (_, index) => ({
  id: `e-${index}`,
  at: new Date(now - (index / 3_000) * 40 * dayMs),
  app: index % 5 === 0 ? 'other' : 'web',
  ...(index % 7 === 0
    ? { kind: 'app' }
    : {
        kind: 'visit',
        class: ['use', 'asset', 'failed', 'failed', 'call', 'call', 'own', 'use'][index % 8] ?? 'use',
        status: [200, 200, 502, 0, 503, 200, 200, 404][index % 8] ?? 0,
      }),
}));

beforeAll(async () => {
  database = await openLedgerDatabase(migratedDatabase);
  await recordUses(database, events);
  await database.query(rollUp, []);
});
afterAll(() => database.close());

const isVisit = ({ kind, class: name }: UsageEvent): boolean => kind === 'visit' && name === 'use';
const isFailed = ({ class: name = '', status = 0 }: UsageEvent): boolean =>
  ['failed', 'call'].includes(name) && status >= 500;

/** From the events alone: those of an app since the hour in which a window begins. */
function counted(hours: number, at: number): { visits: number; error_rate: number } {
  const since = Math.floor((at - hours * hourMs) / hourMs) * hourMs;
  const own = events.filter((event) => event.app === 'web' && new Date(event.at).getTime() >= since);
  const well = own.filter((event) => isVisit(event) || event.kind === 'app').length;
  const failed = own.filter(isFailed).length;
  return { visits: own.filter(isVisit).length, error_rate: failed / (well + failed) };
}

test('a gateway makes visits and the error rate known', async () => {
  const entry = { counter: 1n, startNs: BigInt(now) * 1_000_000n, endNs: BigInt(now) * 1_000_000n, isLost: true };
  await recordBatch(database, 'gateway', [{ ...entry, event: undefined }]);
  const read = schema.parse(await readTelemetry(database, 'web', new Date(now)));
  for (const [window, hours] of Object.entries(windows)) {
    const { visits, error_rate, unmeasured } = read[window as keyof typeof windows];
    assert.deepEqual({ visits, error_rate }, counted(hours, now));
    assert.deepEqual(Object.keys(unmeasured).toSorted(), ['compute', 'latency_ms', 'uptime'], window);
  }
  const { visits, error_rate, unmeasured } = (await readTelemetry(database, 'nobody', new Date(now)))['7d'];
  assert.deepEqual([visits, error_rate], [0, null]);
  assert.equal(unmeasured['error_rate'], 'Nobody used the app in this time.');
});

test('windows are right whenever they begin: at each hour of two days, and on the hour', async () => {
  const midnight = Math.floor(now / dayMs) * dayMs;
  const times = Array.from({ length: 25 }, (_, index) => midnight - dayMs + index * hourMs);
  for (const at of [...times, ...times.map((each) => each + 1_234_567)].filter((each) => each < now)) {
    const read = await readTelemetry(database, 'web', new Date(at));
    for (const [window, hours] of Object.entries(windows)) {
      const since = Math.floor((at - hours * hourMs) / hourMs) * hourMs;
      const until = (Math.floor(at / hourMs) + 1) * hourMs;
      const own = events.filter(({ app, at: when }) => {
        const time = new Date(when).getTime();
        return app === 'web' && time >= since && time < until;
      });
      assert.equal(
        read[window as keyof typeof windows].visits,
        own.filter(isVisit).length,
        `${window} before ${new Date(at).toISOString()}`,
      );
    }
  }
});

test('compute is that of the window; an app that slept has 0', async () => {
  const sample = (container: string, at: number, cpu: number) => ({
    container,
    app: 'web',
    started_at: new Date(now - 300 * hourMs).toISOString(),
    at: new Date(at).toISOString(),
    cpu_us: cpu * 1_000_000,
    memory_bytes: 2 ** 30,
  });
  await addSamples(database, [sample('a', now - 200 * hourMs, 0), sample('a', now - 200 * hourMs + 300_000, 60)]);
  const { '24h': day, '30d': month } = schema.parse(await readTelemetry(database, 'web', new Date(now)));
  assert.deepEqual(day.compute, { cpu_seconds: 0, memory_gib_hours: 0 });
  assert.equal(month.compute?.cpu_seconds, 60);
  // Five minutes at 1 GiB, and the line up to it in the five minutes before the first look.
  assert.ok(Math.abs(month.compute.memory_gib_hours - 7.5 / 60) < 1e-6);
});

test('stability is made of the same requests, on whole days', async () => {
  const stabilities = new Stabilities();
  await readStabilities(database, stabilities);
  const [until, from] = [Math.floor(now / dayMs) * dayMs, Math.floor(now / dayMs) * dayMs - 30 * dayMs];
  const own = events.filter(
    ({ app, at }) => app === 'web' && new Date(at).getTime() >= from && new Date(at).getTime() < until,
  );
  const failed = own.filter(isFailed).length;
  const answered = own.filter((event) => isVisit(event) || event.kind === 'app').length + failed;
  const stability = stabilities.getStability('web');
  assert.ok('estimate' in stability);
  assert.equal(stability.estimate.value, (answered - failed) / answered);
  assert.equal(stability.estimate.n, answered);
});

test('without a gateway stability is not known', async () => {
  const empty = await openLedgerDatabase(migratedDatabase);
  const stabilities = new Stabilities();
  await readStabilities(empty, stabilities);
  assert.deepEqual(
    z.object({ reason: z.string() }).parse(stabilities.getStability('web')).reason,
    'No gateway has sent its access log yet.',
  );
  await empty.close();
});
