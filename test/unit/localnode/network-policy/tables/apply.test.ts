// Connections are forgotten for addresses whose owner changed or went, and for no others.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { findReassigned } from '../../../../../localnode/network-policy/tables/apply.ts';

test('lists addresses that changed owner or were released, and no new or unchanged ones', () => {
  const before = new Map([
    ['10.244.0.2', 'a'],
    ['10.244.0.3', 'b'],
    ['10.244.0.4', 'c'],
  ]);
  const after = new Map([
    ['10.244.0.2', 'a'],
    ['10.244.0.3', 'other'],
    ['10.244.0.5', 'd'],
  ]);
  assert.deepEqual(findReassigned(before, after), ['10.244.0.3', '10.244.0.4']);
});
