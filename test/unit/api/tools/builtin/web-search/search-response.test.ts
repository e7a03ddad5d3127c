// Text of engines as plain text: markup and entities go, words that look like them stay.
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { test } from 'vitest';
import { toPlainText } from '../../../../../../api/tools/builtin/web-search/search-response.ts';

for (const [text, plain] of [
  ['  some \n words ', 'some words'],
  ['<b>bold</b> and <em>more</em>', 'bold and more'],
  ['<span class="searchmatch">Ada</span> Lovelace', 'Ada Lovelace'],
  ['one<br>two<p>three</p>four', 'one two three four'],
  ['Tom &amp; Jerry&#39;s &#x2013; &quot;x&quot;&nbsp;y', 'Tom & Jerry\'s – "x" y'],
  ['AT&amp;amp;T', 'AT&T'],
  ['&lt;b&gt;x&lt;/b&gt; y', 'x y'],
  ['cut off <b>in the mid', 'cut off in the mid'],
  ['cut off </b> after', 'cut off after'],
  ['<a>: The Anchor element - HTML | MDN', '<a>: The Anchor element - HTML | MDN'],
  ['Use the &lt;div&gt; element', 'Use the <div> element'],
  ['std::vector<int> and Map<K, V>', 'std::vector<int> and Map<K, V>'],
  ['a < b && c > d', 'a < b && c > d'],
  ['I <3 cats', 'I <3 cats'],
  ['mail <ada@example.org>', 'mail <ada@example.org>'],
  ['R&D, Q&A', 'R&D, Q&A'],
  ['\u0000a\u0007b\u009fc\u2028d', 'a b c d'],
  ['x\ud83d y\ude00', 'x y'],
  ['\u202egnp.exe', 'gnp.exe'],
  ['<!-- hidden -->shown', 'shown'],
  ['', ''],
] as const)
  test(JSON.stringify(text), () => {
    assert.equal(toPlainText(text, 300), plain);
  });

test('cuts text between characters', () => {
  assert.equal(toPlainText('\u{1F600}\u{1F600}', 3), '\u{1F600}');
  assert.equal(toPlainText('ab cd', 3), 'ab');
});

test('turns any text into well-formed text within the limit, without control characters', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: 'binary', maxLength: 80 }),
      fc.array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 20 }),
      (text, units) => {
        const plain = toPlainText(`<b>${text}${String.fromCharCode(...units)}&lt;/b&gt;`, 60);
        assert.ok(plain.isWellFormed() && plain.length <= 60);
        assert.doesNotMatch(plain, /[\p{Cc}\p{Cs}]/u);
      },
    ),
    { numRuns: 500 },
  );
});

test('takes linear time for nested and unclosed tags', () => {
  const since = performance.now();
  for (const text of ['<b>'.repeat(100_000), '<a '.repeat(100_000), '&lt;'.repeat(100_000), '</b>'.repeat(100_000)])
    toPlainText(text, 1_000);
  assert.ok(performance.now() - since < 1_000);
});
