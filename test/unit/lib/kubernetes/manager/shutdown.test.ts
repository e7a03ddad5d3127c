// The end of the process: by signal, by fault, by force.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { listenForShutdown } from '../../../../../lib/kubernetes/index.ts';
import { until } from '../../../../support/kubernetes/until.ts';

// A signal that the test runner has no use for.
const signals = ['SIGHUP'] as const;

test('a signal aborts, finish exits with 0, and the handlers are gone', async () => {
  const codes: number[] = [];
  const shutdown = listenForShutdown({ signals, exit: (code) => codes.push(code) });
  process.kill(process.pid, 'SIGHUP');
  await until(() => shutdown.signal.aborted);
  assert.deepEqual(codes, []);
  shutdown.finish();
  assert.deepEqual(codes, [0]);
  assert.equal(process.listenerCount('SIGHUP'), 0);
});

test('a second signal ends it at once', async () => {
  const codes: number[] = [];
  const shutdown = listenForShutdown({ signals, exit: (code) => codes.push(code) });
  process.kill(process.pid, 'SIGHUP');
  await until(() => shutdown.signal.aborted);
  process.kill(process.pid, 'SIGHUP');
  await until(() => codes.length === 1);
  assert.deepEqual(codes, [1]);
  shutdown.finish();
});

test('a fault aborts too, and the exit code says so', () => {
  const codes: number[] = [];
  const shutdown = listenForShutdown({ signals, exit: (code) => codes.push(code) });
  shutdown.fail('leadership is lost');
  assert.match(String(shutdown.signal.reason), /leadership is lost/);
  shutdown.finish();
  assert.deepEqual(codes, [1]);
});

test('an end that takes too long is brought about by force', async () => {
  const codes: number[] = [];
  const shutdown = listenForShutdown({ signals, limitMs: 600_000, exit: (code) => codes.push(code) });
  shutdown.fail('leadership is lost', 10);
  await until(() => codes.length === 1);
  assert.deepEqual(codes, [1]);
  shutdown.finish();
});
