// Comparing what is wanted with what is: hashes, subsets, and the server's own ways of writing the same thing.
import assert from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { test } from 'vitest';
import { computeHash, isSubset } from '../../../../../lib/kubernetes/index.ts';

function shuffled(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(shuffled);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .toReversed()
      .map(([key, inner]) => [key, shuffled(inner)]),
  );
}

test('the hash depends on everything except the order of keys', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      assert.equal(computeHash(shuffled(value)), computeHash(value));
    }),
  );
  const plain = fc.jsonValue().map((value) => JSON.parse(JSON.stringify(value)) as unknown);
  fc.assert(
    fc.property(plain, plain, (a, b) => {
      assert.equal(computeHash(a) === computeHash(b), isDeepStrictEqual(a, b));
    }),
  );
  assert.notEqual(computeHash({ a: 1 }), computeHash({ a: 2 }));
  assert.notEqual(computeHash([1, 2]), computeHash([2, 1]));
  assert.equal(computeHash({ a: 1, b: undefined }), computeHash({ a: 1 }));
});

test('anything is a subset of itself, and of itself with more fields', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.jsonValue(), (value, more) => {
      assert.ok(isSubset(value, value));
      assert.ok(isSubset(value, { 'a field of no other name': more, ...value }));
    }),
  );
});

const CASES: readonly [string, unknown, unknown, boolean][] = [
  ['a field with another value', { replicas: 1 }, { replicas: 2 }, false],
  ['a field that is missing', { replicas: 1 }, {}, false],
  ['a field that need not be there', { replicas: undefined }, { replicas: 3 }, true],
  [
    'an item with defaults added by the server',
    { ports: [{ port: 80 }] },
    { ports: [{ port: 80, protocol: 'TCP' }] },
    true,
  ],
  ['an item more', { args: ['a'] }, { args: ['a', 'b'] }, false],
  ['an item less', { args: ['a', 'b'] }, { args: ['a'] }, false],
  ['another order', { args: ['a', 'b'] }, { args: ['b', 'a'] }, false],
  ['a quantity in another unit', { cpu: '1000m', memory: '1Gi' }, { cpu: '1', memory: '1024Mi' }, true],
  ['a quantity as a number', { cpu: 0.5 }, { cpu: '500m' }, true],
  ['another quantity', { cpu: '1001m' }, { cpu: '1' }, false],
  ['an empty list that the server drops', { env: [] }, {}, true],
  ['an empty value that the server drops', { value: '' }, {}, true],
  ['a switch that is off', { stdin: false }, {}, true],
  ['a switch that is on', { stdin: true }, {}, false],
  ['words that look like no quantity', { a: 'x1' }, { a: 'x2' }, false],
];

for (const [what, wanted, actual, expected] of CASES) {
  test(`${what} ${expected ? 'holds' : 'does not hold'}`, () => {
    assert.equal(isSubset(wanted, actual), expected);
  });
}
