// The command line of up, down and status.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { readArguments, UsageError } from '../../../cluster/arguments.ts';

test('commands and flags are read', () => {
  const plain = {
    context: undefined,
    kind: false,
    values: undefined,
    httpsPort: undefined,
    httpPort: undefined,
    purge: false,
    help: false,
  };
  assert.deepEqual(readArguments(['up']), { ...plain, command: 'up' });
  assert.deepEqual(readArguments(['up', '--https-port', '8443', '--http-port=8080']), {
    ...plain,
    command: 'up',
    httpsPort: 8443,
    httpPort: 8080,
  });
  assert.deepEqual(readArguments(['up', '--kind']), { ...plain, command: 'up', kind: true });
  assert.deepEqual(readArguments(['down', '--purge']), { ...plain, command: 'down', purge: true });
  assert.deepEqual(readArguments(['up', '--context', 'prod', '--values', 'a.yaml']), {
    ...plain,
    command: 'up',
    context: 'prod',
    values: 'a.yaml',
  });
});

for (const [args, message] of [
  [[], /give one of up, down and status, not ""/],
  [['start'], /not "start"/],
  [['up', 'now'], /"now" is one word too many/],
  [['up', '--https-port', '0'], /--https-port is "0": give a port between 1 and 65535/],
  [['up', '--http-port', '80a'], /--http-port is "80a"/],
  [['up', '--http-port', '70000'], /--http-port is "70000"/],
  [['up', '--http-port', '8443', '--https-port', '8443'], /are both 8443: give two ports/],
  [['up', '--values', 'a.yaml'], /--values goes with --context/],
  [['up', '--kind', '--context', 'prod'], /--kind and --context name two clusters/],
  [['up', '--fast'], /--fast/],
] as const) {
  test(`${args.join(' ') || '(nothing)'} is refused with the fix`, () => {
    assert.throws(
      () => readArguments(args),
      (error) => error instanceof UsageError && message.test(error.message),
    );
  });
}
