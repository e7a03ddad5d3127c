// What registries answer when they are full, and what they answer else.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { createFullness } from '../../../../controller/registry-proxy/proxy.ts';

const answers: readonly [name: string, status: number, body: string, isFull: boolean][] = [
  ['a full disk, in words', 500, '{"errors":[{"detail":"write /data: no space left on device"}]}', true],
  ['a full disk, by its number', 500, '{"errors":[{"detail":{"Op":"write","Path":"/data","Err":28}}]}', true],
  ['507', 507, '', true],
  ['a quota of a project', 412, 'will exceed the configured upper limit of 10.0 GiB', true],
  ['an object store', 500, 'XMinioStorageFull: Storage backend has reached its minimum free drive threshold.', true],
  ['any other fault', 500, 'internal server error', false],
  ['a layer that is too large for what is in front', 413, 'Request Entity Too Large', false],
  ['a blob that holds such words', 201, 'no space left on device', false],
];

for (const [name, status, body, isFull] of answers)
  test(`${name}: ${isFull ? 'full' : 'not full'}`, () => {
    const state = createFullness(() => Date.parse('2026-11-21T12:00:00Z'));
    assert.equal(state.noteStatus(status, body), isFull);
    assert.equal(state.refusal?.at, isFull ? '2026-11-21T12:00:00.000Z' : undefined);
  });

test('stays full until a push succeeds, whatever other responses report', () => {
  const state = createFullness();
  state.noteStatus(507, '');
  for (const status of [202, 404, 500]) state.noteStatus(status, '');
  assert.ok(state.refusal);
  state.noteStatus(201, '');
  assert.equal(state.refusal, undefined);
});
