// Querys to the outside run beside each other, once each, and a slow host holds up only itself.
import assert from 'node:assert/strict';
import { setImmediate as turn } from 'node:timers/promises';
import { test } from 'vitest';
import { createBackgroundLookups, type BackgroundLookups } from '../../../../controller/reconcile/controller.ts';

interface Query {
  readonly host: string;
  readonly text: string;
}

function scripted(limit = 1): {
  lookups: BackgroundLookups<Query, string>;
  open: Map<string, (answer: string) => void>;
  answered: string[];
} {
  const open = new Map<string, (answer: string) => void>();
  const answered: string[] = [];
  const run = ({ text }: Query): Promise<string> => new Promise((resolve) => open.set(text, resolve));
  return {
    lookups: createBackgroundLookups({ run, group: ({ host }) => host, limit, onResult: (key) => answered.push(key) }),
    open,
    answered,
  };
}

test('runs the same lookup once, and delivers its result once', async () => {
  const { lookups, open, answered } = scripted();
  lookups.start('a', 'one', { host: 'x', text: 'first' });
  lookups.start('a', 'one', { host: 'x', text: 'again' });
  await turn();
  assert.deepEqual([...open.keys()], ['first']);
  open.get('first')?.('yes');
  await turn();
  assert.deepEqual(answered, ['a']);
  assert.equal(lookups.take('a', 'two'), undefined, 'the result of another lookup is none');
  assert.equal(lookups.take('a', 'one'), 'yes');
  assert.equal(lookups.take('a', 'one'), undefined);
});

test('a host that does not respond does not delay other lookups', async () => {
  const { lookups, open, answered } = scripted(1);
  lookups.start('slow', '1', { host: 'dead', text: 'slow' });
  lookups.start('waits', '1', { host: 'dead', text: 'waits' });
  lookups.start('quick', '1', { host: 'alive', text: 'quick' });
  await turn();
  assert.deepEqual([...open.keys()], ['slow', 'quick']);
  open.get('quick')?.('yes');
  await turn();
  assert.deepEqual(answered, ['quick']);
  open.get('slow')?.('late');
  await turn();
  assert.ok(open.has('waits'));
});

test('drops the result of a lookup that was replaced or forgotten', async () => {
  const { lookups, open, answered } = scripted(5);
  lookups.start('a', 'old', { host: 'x', text: 'old' });
  lookups.start('a', 'new', { host: 'x', text: 'new' });
  lookups.start('b', 'one', { host: 'x', text: 'b' });
  await turn();
  lookups.forget('b');
  for (const answer of open.values()) answer('yes');
  await turn();
  assert.deepEqual(answered, ['a']);
  assert.equal(lookups.take('a', 'old'), undefined);
});
