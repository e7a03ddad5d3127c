// What a workers' pod takes for a task, and which modules it would run for it.
import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { pathToFileURL } from 'node:url';
import { test } from 'vitest';
import {
  serializeMessage,
  parseTaskPath,
  toTaskHead,
  resolveModule,
  formatTaskPath,
  readMessage,
} from '../../../../../../../api/tools/engine/workers/remote/protocol.ts';
import { programFolder } from '../../../../../../../api/tools/engine/workers/worker-process.ts';

const program = pathToFileURL(`${programFolder}/`);
const folder = new URL('api/', program);
const module = new URL('tools/builtin/run-code/worker.ts', folder);
const head = toTaskHead({ module, timeoutMs: 1_000 }, 'somebody & co = 1');

test('reads a task as it was written, with the usual limits', () => {
  assert.deepEqual(parseTaskPath(formatTaskPath(head)), head);
  assert.deepEqual(head, {
    module: 'api/tools/builtin/run-code/worker.ts',
    owner: 'somebody & co = 1',
    timeoutMs: 1_000,
    memoryMb: 256,
    quickStart: false,
    startsProgram: false,
    warm: false,
  });
  assert.equal(resolveModule(folder, head)?.href, module.href);
});

test('rejects data that is not a task', () => {
  const other = (change: object): string => formatTaskPath({ ...head, ...change });
  for (const path of [
    '/',
    '/run',
    '/run?task=',
    '/run?task={}',
    '/run?task=%7B',
    formatTaskPath(head).replace('/run', '/x'),
    other({ timeoutMs: 1e9 }),
    other({ timeoutMs: -1 }),
    other({ memoryMb: 1e6 }),
    other({ module: 1 }),
  ])
    assert.equal(parseTaskPath(path), undefined, path);
});

test('runs no module outside the folder', () => {
  for (const path of [
    '../x.ts',
    'api/../lib/problem.ts',
    'api/%2e%2e/lib/problem.ts',
    'apix/x.ts',
    '/etc/x.ts',
    'file:///etc/x.ts',
    'https://example.org/api/x.ts',
    '//example.org/x.ts',
    'data:text/javascript,1.ts',
    'api/tools/builtin/run-code/prelude.js',
  ])
    assert.equal(resolveModule(folder, { ...head, module: path }), undefined, path);
});

test('transfers values as structured clones', async () => {
  const value = { bytes: new Uint8Array([1, 2]), map: new Map([['a', undefined]]), text: '\u{1F600}' };
  assert.deepEqual(await readMessage(Readable.from([serializeMessage(value, 'input')]), 'input'), value);
  await assert.rejects(readMessage(Readable.from([serializeMessage(value, 'input').subarray(0, 9)]), 'input'));
  assert.throws(
    () => serializeMessage(new Uint8Array(65 * 1_048_576), 'result'),
    /The result of the call is larger than 64 MB/,
  );
});
