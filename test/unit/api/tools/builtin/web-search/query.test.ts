// Queries and languages as SearXNG takes them; what it would not search is refused by name.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { webSearchTool } from '../../../../../../api/tools/builtin/web-search/web-search.ts';
import { searchLanguage } from '../../../../../../api/tools/builtin/web-search/query.ts';
import { readPart } from '../../../../../../api/http/index.ts';
import { Problem } from '../../../../../../lib/problem.ts';
import { servicesWith } from '../../../../../support/tools/call.ts';

const { input } = webSearchTool(servicesWith({}));
const read = (fields: Record<string, unknown>): Record<string, unknown> => readPart('query', input, fields);

for (const [given, code] of [
  ['all', 'all'],
  ['ALL', 'all'],
  ['en', 'en'],
  ['pt-BR', 'pt-BR'],
  ['pt_br', 'pt-BR'],
  ['fil-PH', 'fil-PH'],
  ['zh-Hant', 'zh-TW'],
  ['zh-hans', 'zh-CN'],
  ['zh-Hant-HK', 'zh-HK'],
  ['zh-Hant-TW', 'zh-TW'],
  ['zh', 'zh'],
  ['de-Latn', 'de'],
  ['sr-Cyrl', 'sr'],
  ['German', 'de'],
] as const)
  test(`language ${given} is ${code}`, () => {
    assert.equal(read({ query: 'x', language: given })['language'], code);
    // SearXNG's own rule (webutils.py, VALID_LANGUAGE_CODE).
    assert.match(code, /^[a-z]{2,3}(-[a-zA-Z]{2})?$/);
  });

for (const language of ['sr-Latn', 'es-419', 'xx', 'zh-Latn', 'zh-Hant-CN', 'nonsense', 'en-US-posix-x-y', '!!'])
  test(`language ${language} is refused by name`, () => {
    assert.throws(
      () => read({ query: 'x', language }),
      (error) => {
        assert.ok(error instanceof Problem, String(error));
        assert.equal(error.errors[0]?.field, 'language');
        assert.match(error.errors[0].fix, /zh-TW/);
        return true;
      },
    );
    assert.equal(searchLanguage(language), undefined);
  });

for (const query of ['!!g cats', 'cats !!', '!! cats', 'cats\t!!wikipedia'])
  test(`refused: ${JSON.stringify(query)}`, () => {
    assert.throws(
      () => read({ query }),
      (error) => {
        assert.ok(error instanceof Problem, String(error));
        assert.match(error.message, /"query" contains !!\w*, which redirects/);
        assert.match(error.errors[0]?.fix ?? '', /!wikipedia/);
        return true;
      },
    );
  });

for (const query of ['!wikipedia cats', 'wow!! really', '"!!" in Kotlin', 'a!!b', ':de katzen'])
  test(`taken: ${JSON.stringify(query)}`, () => {
    assert.equal(read({ query })['query'], query);
  });

test('the language is all unless it is set', () => {
  assert.equal(read({ query: 'x' })['language'], 'all');
});
