// A rule of one field among several: the field that is wrong and its fix, by a schema as by a call.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { z } from 'zod';
import fc from 'fast-check';
import { readPart } from '../../../../../api/http/index.ts';
import { requireOne, requireOneRule, parseData, pictureFormat } from '../../../../../api/tools/inputs/fields.ts';
import { Problem } from '../../../../../lib/problem.ts';
import { createBuiltinTools } from '../../../../../api/tools/builtin/all.ts';
import { coerceQuery } from '../../../../../api/tools/engine/reading.ts';
import { urlServices } from '../../../../support/tools/url-services.ts';

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
  test(`rejects ${JSON.stringify(given)}`, () => {
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

test('accepts exactly one', () => {
  requireOne(names, { b: '' });
  assert.deepEqual(readPart('query', schema, { b: '', d: 'x' }), { b: '', d: 'x' });
});

// Bytes in a data field: what RFC 2397 and RFC 4648 show, and what is no base64.

const taken: readonly (readonly [data: string, text: string, contentType: string])[] = [
  ['Zm9vYmFy', 'foobar', ''],
  ['Zm9vYg==', 'foob', ''],
  ['Zm9vYg', 'foob', ''],
  ['Zm9v\r\nYmFy\n', 'foobar', ''],
  ['data:,A%20brief%20note', 'A brief note', 'text/plain'],
  ['data:text/plain;charset=iso-8859-7,%be%fg%be', '\u00be%fg\u00be', 'text/plain; charset=iso-8859-7'],
  ['DATA:image/gif;BASE64,R0lGODdh', 'GIF87a', 'image/gif'],
  ['data:text/html;charset=utf-8;base64,PGI+', '<b>', 'text/html; charset=utf-8'],
  ['data:;base64,Zg==', 'f', 'text/plain'],
];
for (const [data, text, contentType] of taken)
  test(`accepts ${JSON.stringify(data)}`, () => {
    const read = parseData(data);
    assert.deepEqual([Buffer.from(read.bytes).toString('latin1'), read.contentType], [text, contentType]);
  });

for (const [data, words] of [
  ['!!!', /is not base64/],
  ['Zm9vY', /is not base64/],
  ['Zm9vYg===', /is not base64/],
  ['http://127.0.0.1/', /is not base64/],
  ['\n', /is empty/],
  ['data:,', /is empty/],
  ['data:image/png;base64', /without a comma/],
  ['data:image/png;base64,é', /is not base64/],
] as const)
  test(`rejects ${JSON.stringify(data)}`, () => {
    assert.throws(() => parseData(data), words);
  });

test('decodes any bytes, in either alphabet, and as a query leaves them', () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 1, maxLength: 64 }), (bytes) => {
      const base64 = Buffer.from(bytes).toString('base64');
      const all = [
        base64,
        base64.replaceAll('+', ' '),
        Buffer.from(bytes).toString('base64url'),
        `data:;base64,${base64}`,
      ];
      for (const data of all) assert.deepEqual(new Uint8Array(parseData(data).bytes), bytes, data);
    }),
  );
});

test('takes linear time for text that is almost base64', () => {
  const since = performance.now();
  assert.throws(() => parseData(`${' '.repeat(700_000)}!`));
  assert.throws(() => parseData(`${'\n'.repeat(700_000)}!`));
  assert.throws(() => parseData(`${'A'.repeat(1_300_000)}=!`));
  assert.ok(performance.now() - since < 1_000);
});

// jpg is read as jpeg wherever a picture format is chosen, in a query too.

test('treats jpg as jpeg, and changes nothing else', () => {
  const schema = z.strictObject({ format: pictureFormat(['png', 'jpeg']).prefault('png') });
  assert.deepEqual(schema.parse({ format: 'jpg' }), { format: 'jpeg' });
  assert.deepEqual(schema.parse({}), { format: 'png' });
  assert.deepEqual(schema.parse(coerceQuery(schema, { format: 'jpg' })), { format: 'jpeg' });
  assert.throws(() => schema.parse({ format: 'tif' }), /png/);
  assert.deepEqual(z.toJSONSchema(schema, { io: 'input' }).properties?.['format'], {
    type: 'string',
    enum: ['png', 'jpeg', 'jpg'],
    default: 'png',
  });
});

test('accepts jpg in every tool that creates a JPEG', async () => {
  const services = urlServices([]);
  try {
    const makers = createBuiltinTools(services).filter(({ artifacts = [] }) => artifacts.includes('image/jpeg'));
    assert.ok(makers.length >= 2);
    for (const { name, input, example } of makers)
      assert.equal(input.parse({ ...example, format: 'jpg' })['format'], 'jpeg', name);
  } finally {
    await services.workers.close();
  }
});
