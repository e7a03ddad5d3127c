// Texts in another language than was named are recognized, and short ones are not guessed at.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { detected, otherLanguage } from '../../../../../../api/tools/builtin/check-grammar/detect.ts';
import { languages, sentencesOf } from '../../../../../corpus/grammar/corpus.ts';

test('a sentence with a fault or a name is of its language', () => {
  for (const language of languages)
    for (const { given } of sentencesOf(language)) assert.equal(otherLanguage(given, language), undefined, given);
});

test('two thirds of short sentences are seen to be in another language, and few are taken for a third', () => {
  for (const [language, stated] of [
    ['de', 'en'],
    ['fr', 'en'],
    ['es', 'en-GB'],
    ['en', 'de'],
  ] as const) {
    const sentences = sentencesOf(language);
    const recognized = sentences.filter(({ given }) => otherLanguage(given, stated) === language);
    const wrong = sentences.filter(
      ({ given }) => ![undefined, language as string].includes(otherLanguage(given, stated)),
    );
    assert.ok(recognized.length >= sentences.length * 0.65, `${language}: ${recognized.length} of ${sentences.length}`);
    assert.ok(wrong.length <= sentences.length * 0.1, wrong.map(({ given }) => given).join('\n'));
  }
});

test('does not guess at what is short, or code', () => {
  for (const text of ['Hello', 'Bonjour', 'x', 'teh '.repeat(2), 'const x = foo(bar);', 'npm install', '42', ''])
    assert.equal(otherLanguage(text, 'en'), undefined, text);
  assert.equal(detected('Ok'), undefined);
  assert.equal(detected('Ich habe gestern ein gutes Buch gelesen.'), 'de');
  assert.equal(otherLanguage('你好,世界,今天天气很好', 'en'), 'zh');
});
