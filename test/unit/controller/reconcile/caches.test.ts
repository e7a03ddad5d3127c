// Texts come back as they were, whatever they hold, and alike ones take little.
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { test } from 'vitest';
import { createSimilarTexts } from '../../../../controller/reconcile/caches.ts';

test('property: returns each text unchanged, in any order', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: 'grapheme', maxLength: 200 }), { minLength: 1, maxLength: 20 }), (list) => {
      const texts = createSimilarTexts();
      const packed = list.map((text) => texts.pack(text));
      assert.deepEqual(
        packed.toReversed().map((each) => texts.unpack(each)),
        list.toReversed(),
      );
    }),
  );
});

test('stores a text similar to the first in a small part of its length', () => {
  const texts = createSimilarTexts();
  const of = (name: string): string =>
    JSON.stringify({
      kind: 'Service',
      metadata: {
        name,
        labels: Object.fromEntries(
          Array.from({ length: 40 }, (_, index) => [`label-${index}`, `value-${index * 7919}`]),
        ),
      },
    });
  texts.pack(of('one'));
  assert.ok(texts.pack(of('another')).length < of('another').length / 10);
});

test("handles a first text beyond zlib's window", () => {
  const texts = createSimilarTexts();
  const long = Array.from({ length: 20_000 }, (_, index) => String(index)).join(' ');
  const packed = [long, `${long}!`].map((text) => texts.pack(text));
  assert.deepEqual(
    packed.map((each) => texts.unpack(each)),
    [long, `${long}!`],
  );
});
