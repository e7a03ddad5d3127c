// The limit of CPU time counts what the process has used, not what it has waited for.
import assert from 'node:assert/strict';
import { afterEach, beforeEach, test, vi } from 'vitest';
import { limitCpuTime } from '../../../../../../api/tools/builtin/run-code/outcome.ts';

let usedMs = 0;
beforeEach(() => {
  usedMs = 0;
  vi.useFakeTimers();
  vi.spyOn(process, 'cpuUsage').mockImplementation((before) => ({
    user: usedMs * 1_000 - (before?.user ?? 0),
    system: 0,
  }));
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

test('ends a process that computes for longer than the limit, once', () => {
  usedMs = 7_000;
  const end = vi.fn<() => void>();
  limitCpuTime(1_000, end);
  usedMs = 8_000;
  vi.advanceTimersByTime(5_000);
  assert.equal(end.mock.calls.length, 0);
  usedMs = 8_001;
  vi.advanceTimersByTime(5_000);
  assert.equal(end.mock.calls.length, 1);
});

test('ends no process that waits for a processor, however long, and none after the watch', () => {
  const end = vi.fn<() => void>();
  const stop = limitCpuTime(1_000, end);
  vi.advanceTimersByTime(3_600_000);
  stop();
  usedMs = 9_000;
  vi.advanceTimersByTime(5_000);
  assert.equal(end.mock.calls.length, 0);
});
