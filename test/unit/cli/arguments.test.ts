// The command line of up, down and status.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { commandLine, readArguments, type Arguments } from '../../../cli/arguments.ts';
import { parseCommandLine, UsageError } from '../../../lib/command-line.ts';

const read = (...args: readonly string[]): Arguments => readArguments(parseCommandLine(commandLine, args));

test('reads commands and flags', () => {
  const plain = {
    context: undefined,
    kind: false,
    values: undefined,
    httpsPort: undefined,
    httpPort: undefined,
    purge: false,
    baseImages: [],
    tools: ['speech', 'languagetool', 'pdftranslator', 'gotenberg', 'searxng'],
  };
  assert.deepEqual(read('up'), { ...plain, command: 'up' });
  assert.deepEqual(read('up', '--https-port', '8443', '--http-port=8080'), {
    ...plain,
    command: 'up',
    httpsPort: 8443,
    httpPort: 8080,
  });
  assert.deepEqual(read('up', '--base-images', 'planned, ruby').baseImages, ['planned', 'ruby']);
  assert.deepEqual(read('up', '--tools', 'none').tools, []);
  assert.deepEqual(read('up', '--tools', 'gotenberg, speech').tools, ['speech', 'gotenberg']);
  assert.deepEqual(read('up', '--kind'), { ...plain, command: 'up', kind: true });
  assert.deepEqual(read('down', '--purge'), { ...plain, command: 'down', purge: true });
  assert.deepEqual(read('up', '--context', 'prod', '--values', 'a.yaml'), {
    ...plain,
    command: 'up',
    context: 'prod',
    values: 'a.yaml',
  });
});

for (const [args, message] of [
  [[], /must be up, down or status, not ""/],
  [['start'], /not "start"/],
  [['up', 'now'], /unexpected argument "now"/],
  [['up', '--https-port', '0'], /--https-port must be a whole number from 1 to 65535, not "0"/],
  [['up', '--http-port', '80a'], /--http-port .* not "80a"/],
  [['up', '--http-port', '70000'], /--http-port .* not "70000"/],
  [['up', '--http-port', '8443', '--https-port', '8443'], /must differ; both are 8443/],
  [['up', '--values', 'a.yaml'], /--values requires --context/],
  [['up', '--kind', '--context', 'prod'], /--kind and --context cannot be used together/],
  [['up', '--kind', '--base-images', 'all'], /--base-images is for the one-machine node/],
  [['up', '--tools', 'gotenburg'], /--tools: there is no "gotenburg"; give all, none, or some of speech, /],
  [['up', '--context', 'prod', '--tools', 'all'], /--tools is for local clusters: set tools\.<service>\.enabled/],
  [['up', '--fast'], /--fast/],
] as const) {
  test(`${args.join(' ') || '(nothing)'} is refused with the fix`, () => {
    assert.throws(
      () => read(...args),
      (error) => error instanceof UsageError && message.test(error.message),
    );
  });
}
