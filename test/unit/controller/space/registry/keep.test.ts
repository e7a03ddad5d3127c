// Which images of an app may be removed: never what serves, nor what a pipeline has pushed that is not recorded yet.
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { test } from 'vitest';
import { removable, type TaggedImage } from '../../../../../controller/space/registry/keep.ts';

const digest = (number: number): string => `sha256:${number.toString(16).padStart(64, '0')}`;
const tagged = (...numbers: number[]): TaggedImage[] =>
  numbers.map((number) => ({ tag: `build-${number}`, digest: digest(number) }));
const past = (...numbers: number[]): { number: number; image: string }[] =>
  numbers.map((number) => ({ number, image: `registry.test/apps/hello.uid-1@${digest(number)}` }));

test('what serves stays however old it is, and so do the newest before it', () => {
  const records = { needed: new Set([digest(1)]), history: past(5, 4, 3, 2, 1) };
  assert.deepEqual(removable(tagged(1, 2, 3, 4, 5), records, 2), [digest(2), digest(3)]);
  assert.deepEqual(removable(tagged(1, 2, 3, 4, 5), records, 0), [2, 3, 4, 5].map(digest));
});

test('what a failed pipeline left goes, and so does a tag that no pipeline was to push', () => {
  const history = [{ number: 3 }, ...past(2), { number: 1 }];
  const images = [...tagged(1, 2, 3), { tag: 'latest', digest: digest(9) }];
  assert.deepEqual(removable(images, { needed: new Set([digest(2)]), history }, 5), [1, 3, 9].map(digest));
});

test('what is not recorded yet stays, also where an older tag names the same image', () => {
  const images = [...tagged(1, 2), { tag: 'build-3', digest: digest(1) }];
  assert.deepEqual(removable(images, { needed: new Set([digest(2)]), history: past(2) }, 0), []);
});

test('of any history, what is needed and the newest others stay, and nothing beyond the limit does', () => {
  const numbers = fc.uniqueArray(fc.integer({ min: 1, max: 30 }), { maxLength: 20 });
  fc.assert(
    fc.property(numbers, numbers, fc.integer({ min: 0, max: 18 }), (built, needed, limit) => {
      const records = { needed: new Set(needed.map(digest)), history: past(...built) };
      const gone = new Set(removable(tagged(...built), records, limit));
      const others = built.filter((number) => !needed.includes(number)).toSorted((a, b) => b - a);
      assert.deepEqual(
        built.filter((number) => !gone.has(digest(number))).toSorted((a, b) => a - b),
        [...built.filter((number) => needed.includes(number)), ...others.slice(0, limit)].toSorted((a, b) => a - b),
      );
    }),
  );
});
