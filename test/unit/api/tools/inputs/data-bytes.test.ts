// Bytes in a data field: what RFC 2397 and RFC 4648 show, and what is no base64.
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { test } from 'vitest';
import { dataBytes } from '../../../../../api/tools/inputs/data-bytes.ts';

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
  test(`taken: ${JSON.stringify(data)}`, () => {
    const read = dataBytes(data);
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
  test(`refused: ${JSON.stringify(data)}`, () => {
    assert.throws(() => dataBytes(data), words);
  });

test('gives back any bytes, in either alphabet, and as a query leaves them', () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 1, maxLength: 64 }), (bytes) => {
      const base64 = Buffer.from(bytes).toString('base64');
      const all = [
        base64,
        base64.replaceAll('+', ' '),
        Buffer.from(bytes).toString('base64url'),
        `data:;base64,${base64}`,
      ];
      for (const data of all) assert.deepEqual(new Uint8Array(dataBytes(data).bytes), bytes, data);
    }),
  );
});

test('takes no longer than its length for text that is nearly base64', () => {
  const since = performance.now();
  assert.throws(() => dataBytes(`${' '.repeat(700_000)}!`));
  assert.throws(() => dataBytes(`${'\n'.repeat(700_000)}!`));
  assert.throws(() => dataBytes(`${'A'.repeat(1_300_000)}=!`));
  assert.ok(performance.now() - since < 1_000);
});
