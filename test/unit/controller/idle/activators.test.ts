// What several activators say of an app, put together.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from 'vitest';
import { createActivityRecord, createActivityTask } from '../../../../controller/idle/activators.ts';
import type { Activators } from '../../../../controller/steps/deploy/rest.ts';
import type { AppReport } from '../../../../crds/reports.ts';
import { createLog } from '../../../../lib/telemetry.ts';

const report = (app: Partial<AppReport> = {}): { apps: Record<string, AppReport> } => ({
  apps: { hello: { inFlight: 0, wakes: [], ...app } },
});
const start = 1_800_000_000_000;

test('treats an app as in use if any activator does, and uses the latest time of last use', () => {
  const record = createActivityRecord(15_000);
  record.take([report({ inFlight: 2 }), report({ idleMs: 90_000 })], start);
  assert.deepEqual(record.find('hello', start), { inFlight: 2, lastUsedAt: start, gaps: [], wakes: [] });
  record.take([report({ idleMs: 4_000 }), report({ idleMs: 95_000 })], start + 5_000);
  assert.equal(record.find('hello', start + 5_000)?.lastUsedAt, start + 1_000);
});

test('reports nothing about any app unless all activators responded recently', () => {
  const record = createActivityRecord(15_000);
  record.take([report(), undefined], start);
  assert.equal(record.find('hello', start), undefined);
  assert.equal(record.getActivatorState(start), 'present');
  record.take([report(), report()], start + 5_000);
  assert.equal(record.find('hello', start + 5_000)?.inFlight, 0);
  assert.equal(record.find('hello', start + 21_000), undefined);
});

test('assumes only after a while that there is no activator', () => {
  const record = createActivityRecord(15_000);
  assert.equal(record.getActivatorState(start), 'unknown');
  record.take([], start);
  assert.equal(record.getActivatorState(start + 10_000), 'unknown');
  record.take([], start + 31_000);
  assert.equal(record.getActivatorState(start + 31_000), 'absent');
  record.take([report()], start + 40_000);
  assert.equal(record.getActivatorState(start + 40_000), 'present');
});

test('records an unused period that ended as a gap unless it was short, and reports a new wake', () => {
  const record = createActivityRecord(15_000);
  assert.deepEqual(record.take([report({ idleMs: 0 })], start), []);
  assert.deepEqual(record.take([report({ idleMs: 0 })], start + 20_000), []);
  const woken = [report({ idleMs: 500, wakes: [{ number: 1, ms: 800 }] })];
  assert.deepEqual(record.take(woken, start + 80_500), ['hello']);
  assert.deepEqual(record.find('hello', start + 80_500)?.gaps, [{ at: start + 80_000, seconds: 60 }]);
  assert.deepEqual(record.take([report({ idleMs: 5_500, wakes: [{ number: 1, ms: 800 }] })], start + 85_500), []);
});

test('an app that activators no longer list has no request in progress', () => {
  const record = createActivityRecord(15_000);
  record.take([report({ inFlight: 1 })], start);
  record.take([{ apps: {} }], start + 5_000);
  assert.equal(record.find('hello', start + 5_000)?.inFlight, 0);
});

// The task that asks the activators: which apps are looked at again because of what they say.

test('checks every app again when the activators disappear, and when one returns', async () => {
  const states: Activators[] = ['present', 'present', 'absent', 'absent', 'present'];
  const seen: string[][] = [];
  const ended = new AbortController();
  let round = 0;
  const task = createActivityTask({
    pool: {
      readReports: () => {
        seen.push([]);
        return Promise.resolve([]);
      },
    },
    record: {
      take: () => [],
      find: () => undefined,
      getActivatorState: () => {
        const state = states[round] ?? 'present';
        round += 1;
        if (round === states.length) ended.abort();
        return state;
      },
    },
    intervalMs: 1,
    onChange: (app) => seen.at(-1)?.push(app),
    onStateChange: () => seen.at(-1)?.push('every app'),
    log: createLog('test'),
  });
  await Promise.race([task(ended.signal), sleep(5_000)]);
  assert.deepEqual(seen, [[], ['every app'], [], ['every app']]);
});
