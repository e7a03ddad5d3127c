// Patterns of strangers mean what they mean in JavaScript, end in time, and are refused by name where they cannot.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { BoundedPattern } from '../../../../../api/tools/patterns/bounded-pattern.ts';
import { isProblem } from '../../../../support/tools/call.ts';

const same: readonly (readonly [string, string, string])[] = [
  ['^[a-z]+@(?<host>[a-z.]+)$', 'u', 'me@example.org'],
  ['\\s+', 'gu', 'a\u00a0\u2003b\tc\ufeffd e'],
  ['[^\\s]+', 'g', 'a\u00a0b c'],
  ['a.b', '', 'a\rb a\u2028b axb'],
  ['a.b', 's', 'a\nb'],
  ['^b$', 'm', 'a\nb\nc'],
  ['a$', '', 'a\n'],
  ['\\p{Script=Greek}+|\\p{Letter}', 'u', '1 αβγ z'],
  ['\\u{1F600}|\\u0041', 'u', 'x😀A'],
  ['[\\b]|[^]', '', '\b'],
  ['(a)|(b)', 'g', 'xbya'],
  ['\\bfoo\\b', 'gi', 'foo Foo food'],
  ['', 'g', 'ab'],
  ['(?:)x*', 'y', 'xxa'],
  ['[.\\/\\-]', '', 'a-b'],
  ['[(?=]', '', '='],
  ['\\(\\?=', '', '(?='],
];

test('behaves like a RegExp in every method of String and RegExp', () => {
  for (const [source, flags, text] of same) {
    const [own, native] = [new BoundedPattern(source, flags), new RegExp(source, flags)];
    const label = `/${source}/${flags}`;
    assert.deepEqual(plain(own.exec(text)), plain(native.exec(text)), label);
    assert.equal(own.lastIndex, native.lastIndex, label);
    [own.lastIndex, native.lastIndex] = [0, 0];
    assert.deepEqual(plain(text.match(own)), plain(text.match(native)), label);
    assert.deepEqual(text.split(own), text.split(native), label);
    assert.equal(text.replace(own, '<$&|$1>'), text.replace(native, '<$&|$1>'), label);
    assert.equal(text.search(own), text.search(native), label);
    if (flags.includes('g'))
      assert.deepEqual([...text.matchAll(own)].map(plain), [...text.matchAll(native)].map(plain), label);
  }
});

test('attack: evaluates patterns with exponential backtracking in no time', () => {
  const text = `${'a'.repeat(50_000)}!`;
  const since = performance.now();
  for (const source of ['^(a+)+$', '^(a|aa)+$', '^(a|a)*$', '(.*a){30}b', '^(([a-z])+.)+[A-Z]([a-z])+$']) {
    assert.equal(new BoundedPattern(source, 'u').test(text), false, source);
    assert.deepEqual(text.split(new BoundedPattern(`${source}x`)), [text], source);
  }
  assert.ok(performance.now() - since < 5_000);
});

test('rejects by name what RE2 cannot match, and suggests an alternative', () => {
  for (const [source, words] of [
    ['^(?=.*\\d).+$', /uses a look-ahead.*allOf/],
    ['^(?!admin)', /uses a negative look-ahead.*into not/],
    ['(?<=a)b', /uses a look-behind.*as part of the pattern/],
    ['(?<!a)b', /uses a look-behind/],
    ['(a)\\1', /uses a back-reference.*enum/],
    ['(?<n>a)\\k<n>', /uses a back-reference/],
    ['\\p{scx=Greek}', /uses a Unicode property with a value.*Script=/],
    ['a{1,5000}', /invalid repeat count.*maxLength/],
    ['((a{100}){100}){100}', /invalid repeat count/],
  ] as const)
    assert.throws(() => new BoundedPattern(source, 'u'), isProblem('unprocessable', words), source);
  assert.throws(() => new BoundedPattern('(', 'u'), SyntaxError);
});

/** Only what can be compared. */
function plain(match: RegExpExecArray | RegExpMatchArray | null): unknown {
  return match === null ? null : { all: [...match], index: match.index, groups: { ...match.groups } };
}
