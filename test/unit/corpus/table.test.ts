// Tables whose cells stay in their place, whatever stands in them.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { markdownTable, shorten } from '../../corpus/table.ts';

test('a cell is one line, and its bars are no borders', () => {
  const text = markdownTable(
    ['a', 'b'],
    [
      ['x | y\nz', undefined],
      [1, 'ok'],
    ],
  );
  assert.equal(text, '| a | b |\n|---|---|\n| x \\| y z |  |\n| 1 | ok |');
});

test('a text is cut with a mark, and not inside a character', () => {
  assert.equal(shorten('a  b\nc', 10), 'a b c');
  assert.equal(shorten('语语语语', 10), '语语…');
});
