// Patterns end on any text, however long and odd.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { protectedRanges } from '../../../../../../api/tools/builtin/check-grammar/protect.ts';

test('ends on texts that are made to take long', () => {
  for (const part of [
    'a',
    '<a',
    '`',
    '{',
    'a.',
    'a_',
    '-',
    '/a',
    'a/',
    'A',
    '1',
    '@a',
    '```',
    '${',
    'aA',
    'www.',
    'a://',
  ]) {
    // A pattern that backtracks without end would outlast the time limit of this test.
    const text = part.repeat(20_000 / part.length);
    assert.ok(protectedRanges(text).every(([from, to]) => from < to && to <= text.length));
  }
});

test('finds what is no word', () => {
  const text = 'Use `x y`, node.js, $HOME, fooBar(), --flag, #12, @me and v2.1 but not these words.';
  const found = protectedRanges(text).map(([from, to]) => text.slice(from, to));
  for (const each of ['`x y`', 'node.js', '$HOME', 'fooBar', '--flag', '#12', '@me', 'v2.1'])
    assert.ok(found.includes(each), `${each} in ${found.join(' ')}`);
  assert.ok(!found.some((each) => /but|not|these|words/.test(each)), found.join(' '));
});
