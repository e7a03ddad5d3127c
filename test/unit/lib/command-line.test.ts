// Command lines: what is read, what is refused.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { parseCommandLine, UsageError, parseWholeNumber } from '../../../lib/command-line.ts';

const commandLine = {
  options: { port: { type: 'string' }, fast: { type: 'boolean', default: false } },
  positionals: 1,
} as const;

test('reads options, their defaults and arguments', () => {
  const { values, positionals } = parseCommandLine(commandLine, ['folder', '--port', '9000']);
  assert.deepEqual([values.port, values.fast, positionals], ['9000', false, ['folder']]);
  assert.equal(parseCommandLine(commandLine, []).values.port, undefined);
});

for (const [args, message] of [
  [['--nonsense'], "unknown option '--nonsense'"],
  [['-x'], "unknown option '-x'"],
  [['--port'], "option '--port <value>' argument missing"],
  [['--port', '--fast'], "option '--port' argument is ambiguous"],
  [['--fast=yes'], "option '--fast' does not take an argument"],
  [['one', 'two'], 'unexpected argument "two"'],
] as const) {
  test(`${args.join(' ')} is refused in one sentence`, () => {
    assert.throws(
      () => parseCommandLine(commandLine, args),
      (error) => error instanceof UsageError && error.message === message,
    );
  });
}

test('reads whole numbers and rejects those out of range', () => {
  assert.equal(parseWholeNumber('--port', '8080', { maximum: 65_535 }), 8080);
  assert.equal(parseWholeNumber('--delay', '0', { minimum: 0 }), 0);
  for (const text of ['', '0', '-1', '1.5', '1e3', '65536', 'x'])
    assert.throws(
      () => parseWholeNumber('--port', text, { maximum: 65_535 }),
      new UsageError(`--port must be a whole number from 1 to 65535, not "${text}"`),
    );
  assert.throws(
    () => parseWholeNumber('--rate', 'x'),
    new UsageError('--rate must be a whole number of 1 or more, not "x"'),
  );
});
