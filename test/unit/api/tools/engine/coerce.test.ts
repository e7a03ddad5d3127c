// Text from a query becomes what the fields of a tool want; what cannot is left for validation to name.
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { test } from 'vitest';
import { z } from 'zod';
import { readToolSettings } from '../../../../../api/tools/config.ts';
import { coerceQuery, jsonField } from '../../../../../api/tools/engine/reading.ts';

const schema = z.strictObject({
  text: z.string(),
  count: z.int().min(1).optional(),
  scale: z.number().default(1),
  deep: z.boolean().optional(),
  names: z.array(z.string()).max(5).optional(),
  sizes: z.array(z.int()).optional(),
  kind: z.enum(['a', 'b']).optional(),
  spec: jsonField(z.looseObject({ mark: z.string() })).optional(),
});

test('converts each value to the type of its field', () => {
  assert.deepEqual(
    schema.parse(
      coerceQuery(schema, {
        text: '12',
        count: '3',
        scale: '1.5e1',
        deep: 'TRUE',
        names: 'a, b,,c',
        sizes: ['1', '2'],
        kind: 'a',
        spec: '{"mark":"bar"}',
      }),
    ),
    {
      text: '12',
      count: 3,
      scale: 15,
      deep: true,
      names: ['a', 'b', 'c'],
      sizes: [1, 2],
      kind: 'a',
      spec: { mark: 'bar' },
    },
  );
});

test('treats a repeated parameter as a list, and keeps its commas', () => {
  assert.deepEqual(coerceQuery(schema, { names: ['a,b', 'c'] }), { names: ['a,b', 'c'] });
});

test('accepts common words for booleans', () => {
  const read = (deep: string): unknown => coerceQuery(schema, { deep })['deep'];
  assert.deepEqual(['1', 'yes', 'on', '0', 'no', 'off', 'maybe', 'constructor'].map(read), [
    true,
    true,
    true,
    false,
    false,
    false,
    'maybe',
    'constructor',
  ]);
});

test('leaves unparsable numbers and unknown fields unchanged', () => {
  const given = { count: '0x10', scale: 'Infinity', other: '1', constructor: 'x', text: ['a', 'b'] };
  assert.deepEqual(coerceQuery(schema, given), given);
});

test('keeps every finite number through a round trip as text', () => {
  fc.assert(
    fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (number) => {
      const { scale } = coerceQuery(schema, { scale: String(number) });
      assert.ok(scale === number || (scale === 0 && number === 0));
    }),
  );
});

test('keeps JSON as is, decodes it once from a query, and rejects invalid JSON by name', () => {
  const field = z.strictObject({ spec: jsonField(z.looseObject({})) });
  assert.deepEqual(field.parse({ spec: { a: 1 } }), { spec: { a: 1 } });
  assert.equal(field.safeParse({ spec: '{"a":1}' }).success, false);
  assert.deepEqual(field.parse(coerceQuery(field, { spec: '{"a":1}' })), { spec: { a: 1 } });
  const any = z.strictObject({ spec: jsonField(z.unknown()).describe('Any.').optional() });
  for (const [text, value] of [
    ['null', null],
    ['"12"', '12'],
    [String.raw`"\"12\""`, '"12"'],
  ])
    assert.deepEqual(any.parse(coerceQuery(any, { spec: text ?? '' })), { spec: value });
  const refused = field.safeParse(coerceQuery(field, { spec: '{"a":1,}' }));
  assert.match(refused.error?.issues[0]?.message ?? '', /^is not valid JSON: /);
  assert.deepEqual(refused.error?.issues[0]?.path, ['spec']);
  assert.deepEqual(
    (z.toJSONSchema(field, { io: 'input' }).properties as Record<string, { type: string }>)['spec']?.type,
    'object',
  );
});

test('strips the last slash from service addresses, and names an invalid address', () => {
  assert.deepEqual(
    readToolSettings({
      MOORAGE_GOTENBERG_URL: 'http://gotenberg:3000/',
      MOORAGE_SEARXNG_URL: '',
      MOORAGE_SEARXNG_OFF_BECAUSE: 'no internet',
    }),
    {
      maxConcurrent: 64,
      maxConcurrentPerCaller: 16,
      workersUrl: undefined,
      speechModel: 'Systran/faster-whisper-small',
      urls: { gotenberg: 'http://gotenberg:3000' },
      offCauses: { searxng: 'no internet' },
    },
  );
  assert.throws(
    () => readToolSettings({ MOORAGE_SPEECH_URL: 'speech:9000' }),
    /MOORAGE_SPEECH_URL: must be the base URL/,
  );
});
