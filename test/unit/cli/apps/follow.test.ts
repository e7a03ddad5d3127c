// Following apps: each change is said once, and the end is when nothing of them is in progress.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { follow } from '../../../../cli/apps/follow.ts';
import { app } from '../../../support/operator/scenario.ts';

const named = (name: string, generation: number, status: object): object => {
  const made = app();
  return { ...made, metadata: { ...made.metadata, name, generation }, status };
};
const served = { image: 'i@sha256:1', commit: 'c', since: '2026-11-22T00:00:00Z' };
const live = { observedGeneration: 1, phase: 'Live', url: 'https://one.example.org', served };
const rejection = { rule: 'build/failed', message: 'It does not compile.', fix: 'Fix it.' };

test('apps are followed until each is live or rejected', async () => {
  const states = [
    [named('one', 1, { observedGeneration: 1, phase: 'Building' }), named('other', 1, live)],
    [named('one', 1, { observedGeneration: 1, phase: 'Building' })],
    // Of the manifest before.
    [named('one', 2, live), named('two', 1, { observedGeneration: 1, phase: 'Rejected', rejection })],
    [
      named('one', 2, { ...live, observedGeneration: 2 }),
      named('two', 1, { observedGeneration: 1, phase: 'Rejected', rejection }),
    ],
  ];
  const lines: string[] = [];
  let reads = 0;
  const kubectl = (): Promise<string> => {
    reads += 1;
    return Promise.resolve(JSON.stringify({ items: states[reads - 1] ?? assert.fail('read after the end') }));
  };
  const outcomes = await follow(['one', 'two'], {
    kubectl,
    namespace: 'apps',
    say: (line) => lines.push(line.replace(/ +/, ' ')),
    lookMs: 1,
  });
  assert.equal(reads, states.length);
  assert.deepEqual(
    outcomes.map(({ slug, status }) => [slug, status.status]),
    [
      ['one', 'live'],
      ['two', 'rejected'],
    ],
  );
  assert.deepEqual(lines, ['one building', 'one live', 'two rejected']);
});
