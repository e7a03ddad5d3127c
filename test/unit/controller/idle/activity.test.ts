// What several activators say of an app, put together.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import type { AppReport } from '../../../../crds/activator-reports.ts';
import { activityBook } from '../../../../controller/idle/activity.ts';

const report = (app: Partial<AppReport> = {}): { apps: Record<string, AppReport> } => ({
  apps: { hello: { inFlight: 0, wakes: [], ...app } },
});
const start = 1_800_000_000_000;

test('an app is in use if one activator says so, and was last used when the last one says', () => {
  const book = activityBook(15_000);
  book.take([report({ inFlight: 2 }), report({ idleMs: 90_000 })], start);
  assert.deepEqual(book.of('hello', start), { inFlight: 2, lastUsedAt: start, gaps: [], wakes: [] });
  book.take([report({ idleMs: 4_000 }), report({ idleMs: 95_000 })], start + 5_000);
  assert.equal(book.of('hello', start + 5_000)?.lastUsedAt, start + 1_000);
});

test('nothing is known of any app unless all activators have answered a moment ago', () => {
  const book = activityBook(15_000);
  book.take([report(), undefined], start);
  assert.equal(book.of('hello', start), undefined);
  assert.equal(book.activators(start), 'present');
  book.take([report(), report()], start + 5_000);
  assert.equal(book.of('hello', start + 5_000)?.inFlight, 0);
  assert.equal(book.of('hello', start + 21_000), undefined);
});

test('that there is no activator is believed after a while', () => {
  const book = activityBook(15_000);
  assert.equal(book.activators(start), 'unknown');
  book.take([], start);
  assert.equal(book.activators(start + 10_000), 'unknown');
  book.take([], start + 31_000);
  assert.equal(book.activators(start + 31_000), 'absent');
  book.take([report()], start + 40_000);
  assert.equal(book.activators(start + 40_000), 'present');
});

test('a time without use that ended is a gap, unless it was short; a wake that is new is reported', () => {
  const book = activityBook(15_000);
  assert.deepEqual(book.take([report({ idleMs: 0 })], start), []);
  assert.deepEqual(book.take([report({ idleMs: 0 })], start + 20_000), []);
  const woken = [report({ idleMs: 500, wakes: [{ number: 1, ms: 800 }] })];
  assert.deepEqual(book.take(woken, start + 80_500), ['hello']);
  assert.deepEqual(book.of('hello', start + 80_500)?.gaps, [{ at: start + 80_000, seconds: 60 }]);
  assert.deepEqual(book.take([report({ idleMs: 5_500, wakes: [{ number: 1, ms: 800 }] })], start + 85_500), []);
});

test('an app that no activator names any more has no request in progress', () => {
  const book = activityBook(15_000);
  book.take([report({ inFlight: 1 })], start);
  book.take([{ apps: {} }], start + 5_000);
  assert.equal(book.of('hello', start + 5_000)?.inFlight, 0);
});
