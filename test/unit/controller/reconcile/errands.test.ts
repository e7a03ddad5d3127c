// Questions to the outside run beside each other, once each, and a slow host holds up only itself.
import assert from 'node:assert/strict';
import { setImmediate as turn } from 'node:timers/promises';
import { test } from 'vitest';
import { createErrands, type Errands } from '../../../../controller/reconcile/errands.ts';

interface Question {
  readonly host: string;
  readonly text: string;
}

function scripted(limit = 1): {
  errands: Errands<Question, string>;
  open: Map<string, (answer: string) => void>;
  answered: string[];
} {
  const open = new Map<string, (answer: string) => void>();
  const answered: string[] = [];
  const run = ({ text }: Question): Promise<string> => new Promise((resolve) => open.set(text, resolve));
  return {
    errands: createErrands({ run, group: ({ host }) => host, limit, answered: (key) => answered.push(key) }),
    open,
    answered,
  };
}

test('the same question is asked once, and its answer is taken once', async () => {
  const { errands, open, answered } = scripted();
  errands.start('a', 'one', { host: 'x', text: 'first' });
  errands.start('a', 'one', { host: 'x', text: 'again' });
  await turn();
  assert.deepEqual([...open.keys()], ['first']);
  open.get('first')?.('yes');
  await turn();
  assert.deepEqual(answered, ['a']);
  assert.equal(errands.take('a', 'two'), undefined, 'an answer to another question is none');
  assert.equal(errands.take('a', 'one'), 'yes');
  assert.equal(errands.take('a', 'one'), undefined);
});

test('a host that does not answer holds up nobody else', async () => {
  const { errands, open, answered } = scripted(1);
  errands.start('slow', '1', { host: 'dead', text: 'slow' });
  errands.start('waits', '1', { host: 'dead', text: 'waits' });
  errands.start('quick', '1', { host: 'alive', text: 'quick' });
  await turn();
  assert.deepEqual([...open.keys()], ['slow', 'quick']);
  open.get('quick')?.('yes');
  await turn();
  assert.deepEqual(answered, ['quick']);
  open.get('slow')?.('late');
  await turn();
  assert.ok(open.has('waits'));
});

test('a question that was overtaken or forgotten is not told', async () => {
  const { errands, open, answered } = scripted(5);
  errands.start('a', 'old', { host: 'x', text: 'old' });
  errands.start('a', 'new', { host: 'x', text: 'new' });
  errands.start('b', 'one', { host: 'x', text: 'b' });
  await turn();
  errands.forget('b');
  for (const answer of open.values()) answer('yes');
  await turn();
  assert.deepEqual(answered, ['a']);
  assert.equal(errands.take('a', 'old'), undefined);
});
