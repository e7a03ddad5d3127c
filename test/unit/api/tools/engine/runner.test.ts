// The clock of a call counts its work, and not what others make it wait for.
import assert from 'node:assert/strict';
import { afterEach, beforeEach, test, vi } from 'vitest';
import { TimeLimit } from '../../../../../api/tools/engine/runner.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});
const wait = (ms: number): Promise<string> => new Promise((resolve) => setTimeout(resolve, ms, 'done'));

test('attack: calls queued behind a flood do not time out before they start', async () => {
  const late = vi.fn();
  const clock = new TimeLimit(1_000, late);
  await vi.advanceTimersByTimeAsync(400);
  const waits = [clock.waiting(wait(5_000)), clock.waiting(wait(7_000))];
  await vi.advanceTimersByTimeAsync(7_000);
  assert.deepEqual(await Promise.all(waits), ['done', 'done']);
  await vi.advanceTimersByTimeAsync(590);
  assert.equal(late.mock.calls.length, 0);
  await vi.advanceTimersByTimeAsync(20);
  assert.equal(late.mock.calls.length, 1);
});

test('restarts the clock after a wait that fails, but not after one that ends later than the call', async () => {
  const late = vi.fn();
  const clock = new TimeLimit(1_000, late);
  await assert.rejects(clock.waiting(Promise.reject(new Error('no'))), /no/);
  void clock.waiting(wait(100));
  clock.end();
  await vi.advanceTimersByTimeAsync(5_000);
  assert.equal(late.mock.calls.length, 0);
});
