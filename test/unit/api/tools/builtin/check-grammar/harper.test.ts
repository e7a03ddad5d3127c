// Texts in another language than was named are recognized, and short ones are not guessed at.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { detectLanguage, findOtherLanguage } from '../../../../../../api/tools/builtin/check-grammar/harper.ts';
import { languages, sentencesOf } from '../../../../../corpus/grammar/corpus.ts';

test('detects the language of a sentence with an error or a name', () => {
  for (const language of languages)
    for (const { given } of sentencesOf(language)) assert.equal(findOtherLanguage(given, language), undefined, given);
});

test('detects another language in two thirds of short sentences, and rarely a third language', () => {
  for (const [language, stated] of [
    ['de', 'en'],
    ['fr', 'en'],
    ['es', 'en-GB'],
    ['en', 'de'],
  ] as const) {
    const sentences = sentencesOf(language);
    const recognized = sentences.filter(({ given }) => findOtherLanguage(given, stated) === language);
    const wrong = sentences.filter(
      ({ given }) => ![undefined, language as string].includes(findOtherLanguage(given, stated)),
    );
    assert.ok(recognized.length >= sentences.length * 0.65, `${language}: ${recognized.length} of ${sentences.length}`);
    assert.ok(wrong.length <= sentences.length * 0.1, wrong.map(({ given }) => given).join('\n'));
  }
});

test('does not guess the language of short text or code', () => {
  for (const text of ['Hello', 'Bonjour', 'x', 'teh '.repeat(2), 'const x = foo(bar);', 'npm install', '42', ''])
    assert.equal(findOtherLanguage(text, 'en'), undefined, text);
  assert.equal(detectLanguage('Ok'), undefined);
  assert.equal(detectLanguage('Ich habe gestern ein gutes Buch gelesen.'), 'de');
  assert.equal(findOtherLanguage('你好,世界,今天天气很好', 'en'), 'zh');
});
