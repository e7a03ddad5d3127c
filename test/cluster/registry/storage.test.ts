// Which images are in use.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { digestsIn } from '../../../cluster/registry/storage.ts';

test('every digest anywhere in the objects counts as in use', () => {
  const [one, two] = ['a', 'b'].map((digit) => `sha256:${digit.repeat(64)}`);
  const text = JSON.stringify({
    items: [
      { spec: { image: `r:5000/apps/x@${one ?? ''}` } },
      { status: { history: [{ image: two }] } },
      { note: 'sha256:short' },
    ],
  });
  assert.deepEqual([...digestsIn(text)], [one, two]);
});
