// A rule of one field among several: the field that is wrong and its fix, by a schema as by a call.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { z } from 'zod';
import { readPart } from '../../../../../api/http/index.ts';
import { requireOne, requireOneRule } from '../../../../../api/tools/inputs/field-rules.ts';
import { Problem } from '../../../../../lib/problem.ts';

const names = ['a', 'b', 'c'] as const;
const schema = z
  .strictObject({
    a: z.string().optional(),
    b: z.string().optional(),
    c: z.string().optional(),
    d: z.string().optional(),
  })
  .superRefine(requireOneRule(names));

for (const [given, field, message] of [
  [{}, 'a', 'is missing, and so are b and c'],
  [{ d: 'x' }, 'a', 'is missing, and so are b and c'],
  [{ a: 'x', c: 'y' }, 'c', 'cannot be combined with a'],
  [{ b: 'x', c: 'y' }, 'c', 'cannot be combined with b'],
] as const)
  test(`refused: ${JSON.stringify(given)}`, () => {
    const said = (error: unknown): boolean => {
      assert.ok(error instanceof Problem, String(error));
      assert.deepEqual(error.errors, [{ in: 'query', field, message, fix: 'Send exactly one of a, b and c.' }]);
      return true;
    };
    assert.throws(() => {
      requireOne(names, given);
    }, said);
    assert.throws(() => readPart('query', schema, given), said);
  });

test('one is taken', () => {
  requireOne(names, { b: '' });
  assert.deepEqual(readPart('query', schema, { b: '', d: 'x' }), { b: '', d: 'x' });
});
